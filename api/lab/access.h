/* The benchmark `shared_access` on the wire: which accesses a request asks for, and what a probe of them
 * found, as JSON and as a table for a terminal. For the files of api/ alone: it shows Jansson. */
#ifndef MM_API_LAB_ACCESS_H
#define MM_API_LAB_ACCESS_H

#include "api/json/json_text.h"
#include "gpu/lab/probe.h"

#include <jansson.h>

/* The sets that a request names. */
enum mm_access_set {
    MM_ACCESS_PATTERNS,
    MM_ACCESS_STRIDES,
    MM_ACCESS_WORD_BYTES,
    MM_ACCESS_PADDED,
    MM_ACCESS_SET_COUNT
};

/* Adds a member's value, or list of different ones, to *set, which is 0. `text` is the request's, checked.
 * MM_BAD_REQUEST: a value of another form, an empty list, or a value twice. */
enum mm_status mm_access_read_set(enum mm_access_set kind, const char *name, const char *text,
                                  const struct mm_json_member *member, uint32_t *set, struct mm_error *error);

/* Makes probe->accesses of the sets; a set of 0 stands for all values. First every combination in shared
 * memory, then, if `stride` is among the patterns, each word and stride in global memory. All else of the
 * probe becomes zeros. MM_BAD_REQUEST: strides without the pattern; the probe is untouched then. */
enum mm_status mm_access_combine(const uint32_t sets[MM_ACCESS_SET_COUNT], struct mm_probe *probe,
                                 struct mm_error *error);

/* What a finished probe found on the device. A new reference; NULL if memory runs out. */
json_t *mm_access_report(const struct mm_probe *probe, const struct mm_device *device);

/* The same as tables. malloc'ed, ended by NUL, the caller frees; NULL if memory runs out. */
char *mm_access_table(const struct mm_probe *probe, const struct mm_device *device, size_t *length);

#endif
