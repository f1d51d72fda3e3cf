/* A made-up device for tests of benchmarks: it computes on the host, right and wrong in known ways, by a
 * clock of its own, and notes what it was asked for. */
#ifndef TESTS_UNIT_GPU_LAB_H
#define TESTS_UNIT_GPU_LAB_H

#include "gpu/benchmark.h"

enum { LAB_RUNS_MAX = 4096, LAB_MEMORY_MAX = 1 << 20 };

/* What the device was asked to run, what it holds, and what it is told to do. */
struct lab {
    const struct mm_variant *variants[LAB_RUNS_MAX];
    const char *sets[LAB_RUNS_MAX]; /* where A lay */
    unsigned runs;
    unsigned uploads;
    unsigned downloads;
    unsigned held; /* pieces of memory */
    size_t held_bytes;
    bool no_memory;
    bool no_fill;
    unsigned failing_copy; /* the number of the upload and of the download that fails; 0: none */
    long copy_ns;          /* what every copy takes, less than a second */
    uint64_t slow_ns;      /* what a run of `slow` takes by the device's clock */
};

extern struct lab lab;
extern struct mm_device lab_device;
extern const struct mm_backend lab_backend;
extern const struct mm_backend lab_host_backend; /* the same, as a backend of the host */

/* A fixture's setup: all as new. */
int lab_reset(void **state);

struct mm_benchmark_request lab_product_of(size_t m, size_t k, size_t n, unsigned repeats);
void lab_ask(struct mm_benchmark_request *request, enum mm_op op, const char *variant);

/* Runs the next backend's task to its end; false where there is none. */
bool lab_run_next(struct mm_benchmark *benchmark, struct mm_device *device);

/* A benchmark on the one device, which is over. */
struct mm_benchmark *lab_run(const struct mm_benchmark_request *request);

#endif
