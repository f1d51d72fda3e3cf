/* A made-up CUDA device for tests of jobs, on the runtime of fake_cuda.h, and jobs for it. */
#ifndef TESTS_UNIT_GPU_CUDA_JOB_H
#define TESTS_UNIT_GPU_CUDA_JOB_H

#include "fake_cuda.h"

enum { LANES = MM_CUDA_LANES };

extern struct mm_cuda_device device;

/* A variant that has a kernel for batches as well, and one that has none. */
extern const struct mm_variant ours;
extern const struct mm_variant alone;

/* A product with its matrices, and room behind them. */
struct test_job {
    struct mm_job job;
    float a[2000];
    float b[2000];
    float c[2000];
};

/* op(A) is m×k, op(B) k×n, of small whole numbers; in locked pages, as far as the device knows. */
void job_init(struct test_job *test, const struct mm_variant *ran, size_t m, size_t k, size_t n);
void set_key(struct test_job *test);

/* That C is the product, and what lies behind it as it was. */
void expect_product(const struct test_job *test);

/* Begins the jobs in a lane, and ends them. */
void run(unsigned lane, struct mm_job *const *jobs, unsigned count);

/* A product of squares, by `ours`: right, or refused as it is begun. */
void run_square(unsigned lane, size_t edge, enum mm_status expected);

/* Before and after each test: a device as new, and one that has given back all memory. */
int reset(void **state);
int drop(void **state);
#define WITH_DEVICE(test) cmocka_unit_test_setup_teardown(test, reset, drop)

#endif
