/* Forecasts: how long a job will take on a device, by the times of earlier jobs there. */
#pragma once

#include "gpu/product/product.h"

struct mm_device;
struct mm_job;
struct mm_variant;

enum { MM_FORECAST_VARIANTS_MAX = 64 };

/* A device's rates, by the best times so far, so forecasts are rather too short. All 0: nothing is known, and
 * forecasts are 0. Any thread reads and writes without a lock: a lost update does no harm. */
struct mm_forecast {
    /* Nanoseconds for an operation, or for a byte of a transposition, by the variant's row and the operands'
     * type. */
    double kernel_ns[MM_FORECAST_VARIANTS_MAX][MM_DTYPE_COUNT];
    bool measured[MM_FORECAST_VARIANTS_MAX][MM_DTYPE_COUNT];  /* by a job; else kernel_ns was assumed */
    double byte_ns[MM_FORECAST_VARIANTS_MAX][MM_DTYPE_COUNT]; /* for a byte of the three matrices of a thin
                                                                 product, never assumed */
    double copy_ns;                                           /* for a byte, there or back */
    double check_ns[MM_DTYPE_COUNT]; /* for a byte of the three matrices, where they are checked: of operands
                                        of a type */
};

/* Sets the rates of a variant until a job is measured: by a float32 product or transposition that took
 * took_ns, and by a guess from it for the other types. */
void mm_forecast_assume(struct mm_device *device, const struct mm_variant *ran,
                        const struct mm_product *product, double took_ns);

/* A product is thin if 2·m·n·k is less than 32 times the elements of its matrices. The device then waits for
 * memory (the roofline model): a vector by a matrix takes 30 times as long for each operation as a square
 * product. By the rate of a thin product, all large squares would be refused. */
enum { MM_FORECAST_THIN = 32 };

/* Updates the rates by a job that ended well. Any job may improve a measured rate. The first measured rate
 * comes from a job of at least 50 µs, a million operations and a million bytes, which took less than 32 times
 * the assumed time. The first rate for an operation comes from a product that is not thin. A thin product
 * gives a rate for its bytes, if it took longer than its operations should. */
void mm_forecast_learn(struct mm_device *device, const struct mm_job *job);

/* Forecasts the kernel time of the product by this variant (not `auto`), in nanoseconds: by its operations or
 * by its bytes, whichever is longer. On a GPU C counts as at least MM_FORECAST_ELEMENTS_MIN elements, because
 * a deep product takes long however small C is. 0 without a rate. */
double mm_forecast_kernel_ns(const struct mm_device *device, const struct mm_variant *ran,
                             const struct mm_product *product);
enum { MM_FORECAST_ELEMENTS_MIN = 65536 };

/* Checks mm_forecast_kernel_ns against a limit (0: none): MM_TOO_LARGE names the variant, the limit and the
 * largest edge within it. */
enum mm_status mm_forecast_check(const struct mm_device *device, const struct mm_variant *ran,
                                 const struct mm_product *product, uint64_t kernel_ms_max,
                                 struct mm_error *error);

/* Forecasts how long a job will keep the device busy by this variant (not `auto`), in nanoseconds: its
 * kernel, copies and check. */
double mm_forecast_ns(const struct mm_device *device, const struct mm_job *job, const struct mm_variant *ran);
