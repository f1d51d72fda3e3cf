/* The benchmark `shared_access`: reads a request for memory accesses, and writes measured times and
 * predictions as JSON or as tables. Any thread may call these functions. No pointer may be NULL except
 * `error`. */
#pragma once

#include "api/parameter.h"
#include "gpu/lab/probe.h"

#include <stdio.h>

/* The members of a request that are sets of values. */
enum mm_access_set {
    MM_ACCESS_PATTERNS,
    MM_ACCESS_STRIDES,
    MM_ACCESS_WORD_BYTES,
    MM_ACCESS_PADDED,
    MM_ACCESS_BANK_BYTES,
    MM_ACCESS_KIND,
    MM_ACCESS_SET_COUNT
};

/* A request for times or predictions of memory accesses; call mm_access_init first. */
struct mm_access_request {
    struct mm_parameters parameters;         /* must be first: pointers to it are cast to this struct */
    uint64_t timeout_ms;                     /* 0 if none was given */
    char backend[MM_PARAMETER_NAME_MAX + 1]; /* "auto" if none was given */
    uint32_t sets[MM_ACCESS_SET_COUNT];      /* bit i stands for value i; 0 if the client gave no set */
    bool has_offsets;
    uint32_t words[MM_WARP_LANES]; /* `words` of struct mm_access, if has_offsets */
    unsigned shift;                /* `shift` of struct mm_access; the request calls it "offset" */
};

/* A probe is not drawn if more than this many of its accesses are in shared memory. */
enum { MM_ACCESS_DRAWN_MAX = 8 };

/* Initializes a request. The parameters are members of a JSON body. A set is one value or a list of different
 * values. `offsets` is a list of 1 to 32 numbers and nulls: one for each lane of a warp. A lane without a
 * number is inactive. */
void mm_access_init(struct mm_access_request *request);

/* Fills a probe with every combination of the sets. Accesses in shared memory come first. If `stride` is
 * among the patterns, accesses in global memory follow: one for each word size and stride. Without a kind of
 * access, the accesses are reads. Without a bank width, the device's width is used. Every other missing set
 * has all values.
 *
 * Fails with MM_BAD_REQUEST if strides come with patterns but without `stride`, or if offsets come with
 * patterns, strides or an offset. On failure the probe is unchanged. */
enum mm_status mm_access_combine(const struct mm_access_request *request, struct mm_probe *probe,
                                 struct mm_error *error);

size_t mm_access_shared_count(const struct mm_probe *probe);

/* Both functions write a probe's predictions and measured times. They return malloc'ed text, which the caller
 * frees, or NULL if memory runs out. *length does not count the NUL at the end. */
char *mm_access_json(const struct mm_probe *probe, size_t *length);
char *mm_access_table(const struct mm_probe *probe, size_t *length);

/* Draws which lanes of an access use which banks of shared memory. */
void mm_access_draw(FILE *out, const struct mm_probe *probe, size_t index);
