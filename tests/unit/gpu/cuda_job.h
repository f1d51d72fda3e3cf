/* A made-up CUDA device for tests of jobs, on the runtime of fake_cuda.h, and jobs for it. */
#pragma once

#include "fake_cuda.h"
#include "tests/unit/unit.h"

enum { LANES = MM_CUDA_LANES, ELEMENTS_MAX = 2000 };

extern struct mm_cuda_device device;

/* A variant that has a kernel for batches as well, and one that has none. */
extern const struct mm_variant ours, alone;
enum mm_status plan_ours(const struct mm_product *product, struct mm_plan *plan, struct mm_error *error);

/* A product with its matrices, and room behind them. */
struct test_job {
    struct mm_job job;
    float a[ELEMENTS_MAX], b[ELEMENTS_MAX], c[ELEMENTS_MAX];
};

/* op(A) is m×k, op(B) k×n, of small whole numbers; in locked pages, as far as the device knows. */
void job_init(struct test_job *test, const struct mm_variant *variant, size_t m, size_t k, size_t n);
void plan_job(struct test_job *test); /* anew, as it is now */
void turn_job(struct test_job *test); /* stores A transposed, and plans anew */

/* That C is the product, and what lies behind it as it was. */
void expect_product(const struct test_job *test);
void expect_spans_ms(const struct mm_job *job, uint64_t upload, uint64_t kernel, uint64_t download);

/* Begins the jobs in a lane, and ends them. */
void run(unsigned lane, struct mm_job *const *jobs, unsigned count);

/* A product of squares, by `ours`: right, or refused as it is begun. */
void run_square(unsigned lane, size_t edge, enum mm_status expected);

/* Before and after each test: a device as new, and one that has given back all memory. */
int reset(void **state);
int drop(void **state);
