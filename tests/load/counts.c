/* A histogram that never grows, however long a run is, and the table. */
#include "tests/load/counts.h"

#include <inttypes.h>
#include <stddef.h>

/* Below SUB nanoseconds a bucket each; from there on SUB buckets between a power of two and the next. */
enum { SUB_BITS = 5, SUB = 1 << SUB_BITS };

static size_t bucket_of(uint64_t ns) {
    if (ns < SUB)
        return (size_t)ns;
    unsigned exponent = 63 - (unsigned)__builtin_clzll(ns);
    size_t bucket = (exponent - SUB_BITS + 1) * SUB + (size_t)(ns >> (exponent - SUB_BITS)) - SUB;
    return bucket < MM_LOAD_BUCKETS ? bucket : MM_LOAD_BUCKETS - 1;
}

/* The first value beyond the bucket. */
static uint64_t bucket_end(size_t bucket) {
    if (bucket < SUB)
        return bucket + 1;
    return (uint64_t)(SUB + bucket % SUB + 1) << (bucket / SUB - 1);
}

void mm_load_count_latency(struct mm_load_counts *counts, uint64_t ns) {
    counts->latencies[bucket_of(ns)]++;
    if (ns > counts->latency_max_ns)
        counts->latency_max_ns = ns;
}

static void add_all(uint64_t *counts, const uint64_t *more, size_t count) {
    for (size_t index = 0; index < count; index++)
        counts[index] += more[index];
}

void mm_load_counts_add(struct mm_load_counts *counts, const struct mm_load_counts *more) {
    counts->requests += more->requests;
    counts->exact += more->exact;
    counts->bounded += more->bounded;
    counts->chunked += more->chunked;
    counts->pipelined += more->pipelined;
    counts->left += more->left;
    counts->mismatches += more->mismatches;
    counts->broken += more->broken;
    add_all(counts->codes, more->codes, MM_LOAD_CODE_COUNT);
    add_all(counts->variants, more->variants, MM_LOAD_VARIANTS_MAX);
    add_all(counts->latencies, more->latencies, MM_LOAD_BUCKETS);
    if (more->latency_max_ns > counts->latency_max_ns)
        counts->latency_max_ns = more->latency_max_ns;
}

/* The latency that `share` of all requests stay under. */
static double percentile_ms(const struct mm_load_counts *counts, double share) {
    uint64_t all = 0;
    uint64_t so_far = 0;
    size_t bucket = 0;
    for (size_t index = 0; index < MM_LOAD_BUCKETS; index++)
        all += counts->latencies[index];
    while (bucket < MM_LOAD_BUCKETS - 1 &&
           (double)(so_far += counts->latencies[bucket]) < share * (double)all)
        bucket++;
    uint64_t end = bucket_end(bucket);
    return (double)(end < counts->latency_max_ns ? end : counts->latency_max_ns) / 1e6;
}

static void print_row(FILE *out, const char *name, uint64_t count) {
    fprintf(out, "%-36s %12" PRIu64 "\n", name, count);
}

static void print_number(FILE *out, const char *name, double number) {
    fprintf(out, "%-36s %12.3f\n", name, number);
}

void mm_load_counts_print(const struct mm_load_counts *counts, const struct mm_load_catalogue *catalogue,
                          double seconds, FILE *out) {
    char name[3 * MM_LOAD_NAME_BYTES];
    print_row(out, "requests", counts->requests);
    print_number(out, "requests a second", (double)counts->requests / seconds);
    print_row(out, "  in chunks", counts->chunked);
    print_row(out, "  pipelined", counts->pipelined);
    print_row(out, "left before the reply", counts->left);
    print_row(out, "products right", counts->exact + counts->bounded);
    print_row(out, "  exactly", counts->exact);
    print_row(out, "  within the bound", counts->bounded);
    for (size_t index = 0; index < catalogue->count; index++) {
        const struct mm_load_variant *variant = &catalogue->variants[index];
        snprintf(name, sizeof name, "  by %s:%s", variant->backend, variant->name);
        print_row(out, name, counts->variants[index]);
    }
    for (size_t index = 0; index < MM_LOAD_CODE_COUNT; index++) {
        snprintf(name, sizeof name, "%u %s", mm_load_codes[index].status, mm_load_codes[index].name);
        if (counts->codes[index] > 0)
            print_row(out, name, counts->codes[index]);
    }
    print_number(out, "latency p50, ms", percentile_ms(counts, 0.5));
    print_number(out, "latency p99, ms", percentile_ms(counts, 0.99));
    print_number(out, "latency max, ms", (double)counts->latency_max_ns / 1e6);
    print_row(out, "broken connections", counts->broken);
    print_row(out, "mismatches", counts->mismatches);
}
