/* A fake device for tests of benchmarks. It computes on the host, correctly or wrongly, with a simulated
 * clock, and records what it is asked for. */
#pragma once

#include "gpu/lab/benchmark.h"
#include "tests/unit/unit.h"

enum { LAB_RUNS_MAX = 4096, LAB_MEMORY_MAX = 1 << 20 };

/* What the fake device was asked to do, and how it must behave. */
struct lab {
    const struct mm_variant *variants[LAB_RUNS_MAX];
    const char *sets[LAB_RUNS_MAX]; /* address of A in each run */
    unsigned runs, uploads, downloads;
    unsigned held; /* allocations that are not freed */
    size_t held_bytes;
    void *memory; /* the last allocation */
    bool no_memory, no_fill;
    const void *a;         /* expected A of every run; NULL: any */
    unsigned failing_copy; /* number of the upload and of the download that fails; 0: none */
    long copy_ns;          /* duration of each copy, less than a second */
    uint64_t slow_ns;      /* duration of each run of `slow` */
};

extern struct lab lab;
extern struct mm_device lab_device, lab_host;
extern const struct mm_backend lab_backend;
extern const struct mm_backend lab_host_backend; /* lab_backend as a backend of the host */

/* The benchmark of the running test. lab_open and lab_close close it. */
extern struct mm_benchmark *benchmark;

/* Setup and teardown of a test: lab_reset resets the fake device, lab_close closes the benchmark. */
int lab_reset(void **state);
int lab_close(void **state);

/* Return a request for these variants. `names` has spaces between them. */
struct mm_benchmark_request lab_product(size_t m, size_t k, size_t n, unsigned repeats, const char *names);
struct mm_benchmark_request lab_transposition(size_t m, size_t n, enum mm_dtype dtype, const char *names);
void lab_ask(struct mm_benchmark_request *request, const char *names); /* adds variants to the request */

/* Runs the next backend's task to its end. Returns false if there is none. */
bool lab_run_next(struct mm_device *device);

void lab_open(const struct mm_benchmark_request *request);
/* Opens the benchmark, resets the counter of runs, and runs the benchmark to its end on lab_device. Returns
 * its rows. */
const struct mm_benchmark_row *lab_run(const struct mm_benchmark_request *request);
