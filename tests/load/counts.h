/* What a client counts, and the table that is printed of it. */
#ifndef MM_LOAD_COUNTS_H
#define MM_LOAD_COUNTS_H

#include "tests/load/catalogue.h"
#include "tests/load/refusals.h"

#include <stdint.h>
#include <stdio.h>

/* Latencies are counted in buckets of 3% of their size: see counts.c. */
enum { MM_LOAD_BUCKETS = 1408 };

struct mm_load_counts {
    uint64_t requests;                       /* that were answered, in whatever way */
    uint64_t exact;                          /* products of whole numbers, all of whose elements were right */
    uint64_t bounded;                        /* products within the error bound */
    uint64_t chunked;                        /* requests sent so, of all */
    uint64_t pipelined;                      /* sent before the one before was answered */
    uint64_t left;                           /* whose reply was not waited for; not in `requests` */
    uint64_t mismatches;                     /* replies that are wrong */
    uint64_t broken;                         /* connections reset or closed, replies malformed or missing */
    uint64_t codes[MM_LOAD_CODE_COUNT];      /* of all replies that were no mismatch */
    uint64_t variants[MM_LOAD_VARIANTS_MAX]; /* right products, by the variant asked for */
    uint64_t latencies[MM_LOAD_BUCKETS];
    uint64_t latency_max_ns;
};

void mm_load_count_latency(struct mm_load_counts *counts, uint64_t ns);

/* Adds `more` to `counts`. */
void mm_load_counts_add(struct mm_load_counts *counts, const struct mm_load_counts *more);

void mm_load_counts_print(const struct mm_load_counts *counts, const struct mm_load_catalogue *catalogue,
                          double seconds, FILE *out);

#endif
