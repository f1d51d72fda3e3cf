/* A fake device for tests of benchmarks. The device computes on the host and returns fake times. */
#pragma once

#include "gpu/lab/benchmark.h"
#include "tests/unit/unit.h"

enum { LAB_RUNS_MAX = 4096, LAB_MEMORY_MAX = 1 << 20 };

/* How the fake device must behave, and what it has done. */
struct lab {
    const struct mm_variant *variants[LAB_RUNS_MAX];
    const char *sets[LAB_RUNS_MAX]; /* address of A in each run */
    unsigned runs, uploads, downloads;
    unsigned held; /* allocations not yet freed */
    size_t held_bytes;
    void *memory; /* the last allocation */
    bool no_memory, no_fill;
    const void *a;         /* expected A of every run; NULL for any */
    unsigned failing_copy; /* upload and download with this number fail; 0 for none */
    long copy_ns;          /* duration of each copy, below a second */
    uint64_t slow_ns;      /* duration of each run of the variant `slow` */
};

extern struct lab lab;
extern struct mm_device lab_device, lab_host;
extern const struct mm_backend lab_backend;
extern const struct mm_backend lab_host_backend; /* lab_backend as a backend of the host */

/* The benchmark of the running test. lab_open replaces it, and lab_close frees it. */
extern struct mm_benchmark *benchmark;

/* Setup and teardown of a test. lab_reset resets the fake device. lab_close frees the benchmark. */
int lab_reset(void **state);
int lab_close(void **state);

/* Both functions return a request. `names` lists the variants, separated by spaces. */
struct mm_benchmark_request lab_product(size_t m, size_t k, size_t n, unsigned repeats, const char *names);
struct mm_benchmark_request lab_transposition(size_t m, size_t n, enum mm_dtype dtype, const char *names);
void lab_ask(struct mm_benchmark_request *request, const char *names); /* adds variants */

/* Runs the task of the next backend to its end. Returns false if no backend is left. */
bool lab_run_next(struct mm_device *device);

void lab_open(const struct mm_benchmark_request *request);
/* Opens the benchmark and runs it on lab_device. Returns its rows, which belong to the benchmark. */
const struct mm_benchmark_row *lab_run(const struct mm_benchmark_request *request);
