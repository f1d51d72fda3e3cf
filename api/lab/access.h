/* The benchmark `shared_access` on the wire: reads a request for memory accesses, and writes a probe's times
 * and predictions as JSON or as tables for a terminal. Any thread may call these functions. No pointer may be
 * NULL except `error`. */
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

/* A request for accesses. Call mm_access_init first. */
struct mm_access_request {
    struct mm_parameters parameters;         /* the first member */
    uint64_t timeout_ms;                     /* 0: none was given */
    char backend[MM_PARAMETER_NAME_MAX + 1]; /* "auto" if none was given */
    uint32_t sets[MM_ACCESS_SET_COUNT];      /* bit i stands for value i; 0: the set was not given */
    bool has_offsets;
    uint32_t words[MM_WARP_LANES]; /* becomes struct mm_access's `words`, if has_offsets */
    unsigned shift;                /* the request's member `offset`: struct mm_access's `shift` */
};

/* The most rows of shared memory that the table draws. */
enum { MM_ACCESS_DRAWN_MAX = 8 };

/* Clears a request. Its parameters are members of a JSON body. A set is a value or a list of different
 * values. `offsets` is a list of 1 to 32 numbers and nulls; lanes after its end are inactive. */
void mm_access_init(struct mm_access_request *request);

/* Fills a probe with every combination of the sets. A set that the client did not give has all its values,
 * with two exceptions: without `access` the accesses are reads, and without `bank_bytes` the banks are as
 * wide as the device's. Accesses in shared memory come first. If `stride` is among the patterns, each word
 * and stride in global memory follows. MM_BAD_REQUEST: strides without the pattern, or offsets beside
 * patterns; the probe is then untouched. */
enum mm_status mm_access_combine(const struct mm_access_request *request, struct mm_probe *probe,
                                 struct mm_error *error);

/* The number of a probe's accesses in shared memory. They come first. */
size_t mm_access_shared_count(const struct mm_probe *probe);

/* Write a finished probe's times and predictions; without a job, only predictions. Both return malloc'ed
 * text, which ends by NUL and which the caller frees, or NULL if memory runs out. *length is in bytes. */
char *mm_access_json(const struct mm_probe *probe, size_t *length);
char *mm_access_table(const struct mm_probe *probe, size_t *length);

/* Draws the lanes of an access in shared memory with their banks, for mm_access_table. */
void mm_access_draw(FILE *out, const struct mm_probe *probe, size_t index);
