/* The benchmark `shared_access` on the wire: the accesses that a request asks for, and the times of a probe
 * as JSON and as tables for a terminal. The functions keep no state: any thread. No pointer may be NULL
 * except `error`. */
#pragma once

#include "api/json/json_text.h"
#include "gpu/lab/probe.h"

/* The sets that a request names. */
enum mm_access_set {
    MM_ACCESS_PATTERNS,
    MM_ACCESS_STRIDES,
    MM_ACCESS_WORD_BYTES,
    MM_ACCESS_PADDED,
    MM_ACCESS_SET_COUNT
};

/* Adds a member's value, or list of different values, to *set, which is 0. `text` is the checked request.
 * MM_BAD_REQUEST: a value of another form, an empty list, or a value twice. */
enum mm_status mm_access_read_set(enum mm_access_set kind, const char *name, const char *text,
                                  const struct mm_json_member *member, uint32_t *set, struct mm_error *error);

/* Makes a probe of the sets; a set of 0 stands for all values. First every combination in shared memory,
 * then, if `stride` is among the patterns, each word and stride in global memory. MM_BAD_REQUEST: strides
 * without the pattern; the probe is untouched then. */
enum mm_status mm_access_combine(const uint32_t sets[MM_ACCESS_SET_COUNT], struct mm_probe *probe,
                                 struct mm_error *error);

/* The times of a finished probe: malloc'ed, ended by NUL, the caller frees; NULL if memory runs out. *length
 * is the text's, in bytes. */
char *mm_access_json(const struct mm_probe *probe, size_t *length);
char *mm_access_table(const struct mm_probe *probe, size_t *length);
