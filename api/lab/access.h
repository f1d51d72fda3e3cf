/* The benchmark `shared_access` on the wire: the accesses that a request asks for, and the times and
 * predictions of a probe as JSON or as tables for a terminal. The functions keep no state: any thread. No
 * pointer may be NULL except `error`. */
#pragma once

#include "api/parameter.h"
#include "gpu/lab/probe.h"

#include <stdio.h>

/* The sets that a request names. */
enum mm_access_set {
    MM_ACCESS_PATTERNS,
    MM_ACCESS_STRIDES,
    MM_ACCESS_WORD_BYTES,
    MM_ACCESS_PADDED,
    MM_ACCESS_BANK_BYTES,
    MM_ACCESS_KIND,
    MM_ACCESS_SET_COUNT
};

/* What a request asks for. Begin with mm_access_init. */
struct mm_access_request {
    struct mm_parameters parameters;         /* first */
    uint64_t timeout_ms;                     /* 0: none was given */
    char backend[MM_PARAMETER_NAME_MAX + 1]; /* "auto" if none was given */
    uint32_t sets[MM_ACCESS_SET_COUNT];      /* bit i stands for value i; 0: the set was not given */
    bool has_offsets;
    uint32_t words[MM_WARP_LANES]; /* the offsets, as in struct mm_access */
    unsigned shift;                /* the member `offset`, as in struct mm_access */
};

/* The most rows of shared memory that the table draws. */
enum { MM_ACCESS_DRAWN_MAX = 8 };

/* With the parameters of the experiment, all of them members of a JSON body. A set is a value or a list of
 * different values. `offsets` is a list of 1 to 32 numbers and nulls; lanes behind its end are inactive. */
void mm_access_init(struct mm_access_request *request);

/* Makes a probe of the sets. A set that was not given stands for all values. Without `access` the accesses
 * are reads, and without `bank_bytes` the banks are as wide as the device's. First every combination in
 * shared memory, then, if `stride` is among the patterns, each word and stride in global memory.
 * MM_BAD_REQUEST: strides without the pattern, or offsets beside patterns; the probe is untouched then. */
enum mm_status mm_access_combine(const struct mm_access_request *request, struct mm_probe *probe,
                                 struct mm_error *error);

/* How many of a probe's accesses are in shared memory: the first ones. */
size_t mm_access_shared_count(const struct mm_probe *probe);

/* The times of a finished probe, or the predictions of one without a job: malloc'ed, ended by NUL, the caller
 * frees; NULL if memory runs out. *length is the text's, in bytes. */
char *mm_access_json(const struct mm_probe *probe, size_t *length);
char *mm_access_table(const struct mm_probe *probe, size_t *length);

/* For the table: draws the lanes of an access in shared memory with their banks. */
void mm_access_draw(FILE *out, const struct mm_probe *probe, size_t index);
