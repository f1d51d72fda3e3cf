/* A fake CUDA device on the fake runtime of fake_cuda.h, and jobs for the device. */
#pragma once

#include "fake_cuda.h"
#include "tests/unit/unit.h"

enum { LANES = MM_CUDA_LANES, ELEMENTS_MAX = 2000, WORKSPACE_BYTES = 4096 };

extern struct mm_cuda_device device;

/* `ours` has a kernel for batches, and `alone` has none. `scratching` has none, and fills a workspace. */
extern const struct mm_variant ours, alone, scratching;
enum mm_status plan_ours(const struct mm_product *product, struct mm_plan *plan, struct mm_error *error);

struct test_job {
    struct mm_job job;
    float a[ELEMENTS_MAX], b[ELEMENTS_MAX], c[ELEMENTS_MAX];
};

/* Fills `test` with a product of small integers, so sums are exact. op(A) is m×k and op(B) is k×n. The device
 * treats the matrices as page-locked memory. */
void job_init(struct test_job *test, const struct mm_variant *variant, size_t m, size_t k, size_t n);
void plan_job(struct test_job *test);
void transpose_job(struct test_job *test); /* stores A transposed, and plans the job */

/* Asserts that C is right and that the memory behind C is unchanged. */
void expect_product(const struct test_job *test);
void expect_spans_ms(const struct mm_job *job, uint64_t upload, uint64_t kernel, uint64_t download);

/* Frees all device copies of the value. Asserts that the device then has no copies and no events. */
void release_copies(struct mm_stored *value);

/* Begins the jobs in the lane, and waits for their end. */
void run(unsigned lane, struct mm_job *const *jobs, unsigned count);

/* Runs a square product by `ours`. Asserts that beginning the job gives the status `expected`. */
void run_square(unsigned lane, size_t edge, enum mm_status expected);

/* Setup and teardown of a test. reset makes a new device. drop asserts that no device memory is leaked. */
int reset(void **state);
int drop(void **state);
