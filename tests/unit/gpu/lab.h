/* A made-up device for tests of benchmarks: it computes on the host, right and wrong in known ways, by a
 * clock of its own, and notes what it was asked for. */
#pragma once

#include "gpu/lab/benchmark.h"
#include "tests/unit/unit.h"

enum { LAB_RUNS_MAX = 4096, LAB_MEMORY_MAX = 1 << 20 };

/* What the device was asked to run, what it holds, and what it is told to do. */
struct lab {
    const struct mm_variant *variants[LAB_RUNS_MAX];
    const char *sets[LAB_RUNS_MAX]; /* where A lay */
    unsigned runs, uploads, downloads;
    unsigned held; /* pieces of memory */
    size_t held_bytes;
    void *memory; /* acquired last */
    bool no_memory, no_fill;
    const void *a;         /* what A is in every run; NULL: anything */
    unsigned failing_copy; /* the number of the upload and of the download that fails; 0: none */
    long copy_ns;          /* what every copy takes, less than a second */
    uint64_t slow_ns;      /* what a run of `slow` takes by the device's clock */
};

extern struct lab lab;
extern struct mm_device lab_device, lab_host;
extern const struct mm_backend lab_backend;
extern const struct mm_backend lab_host_backend; /* the same, as a backend of the host */

/* The benchmark at hand, which is closed by the next one and by lab_close. */
extern struct mm_benchmark *benchmark;

/* A fixture's setup and teardown: all as new. */
int lab_reset(void **state);
int lab_close(void **state);

/* Of these variants, by names with spaces between them. */
struct mm_benchmark_request lab_product(size_t m, size_t k, size_t n, unsigned repeats, const char *names);
struct mm_benchmark_request lab_transposition(size_t m, size_t n, enum mm_dtype dtype, const char *names);
void lab_ask(struct mm_benchmark_request *request, const char *names); /* for more rows */

/* Runs the next backend's task to its end; false where there is none. */
bool lab_run_next(struct mm_device *device);

void lab_open(const struct mm_benchmark_request *request);
/* Opens it, and runs it to its end on the one device, whose runs are counted anew. */
const struct mm_benchmark_row *lab_run(const struct mm_benchmark_request *request);
