/* Forecasts how long a job will take on a device, by the times of earlier jobs. */
#pragma once

#include "gpu/product/product.h"

struct mm_device;
struct mm_job;
struct mm_variant;

enum { MM_FORECAST_VARIANTS_MAX = 64 };

/* The rates of a device, by the shortest times so far, so forecasts are usually too short. All zeros:
 * nothing is known, and forecasts are 0. Any thread reads and writes without a lock, because a lost update
 * does no harm. */
struct mm_forecast {
    /* Nanoseconds for an operation of a product, or for a byte of a transposition, by variant and operand
     * type. */
    double kernel_ns[MM_FORECAST_VARIANTS_MAX][MM_DTYPE_COUNT];
    bool measured[MM_FORECAST_VARIANTS_MAX]
                 [MM_DTYPE_COUNT]; /* whether a job measured kernel_ns; otherwise it was assumed */
    double byte_ns[MM_FORECAST_VARIANTS_MAX][MM_DTYPE_COUNT]; /* nanoseconds for a byte of A, B and C in a
                                                                 thin product; never assumed */
    double copy_ns;                  /* nanoseconds for a byte copied to or from the device */
    double check_ns[MM_DTYPE_COUNT]; /* nanoseconds for a byte of A, B and C in a check, by operand type */
};

/* Sets the rates of a variant until a job measures them. A float32 product or transposition needed
 * took_ns; the rates of the other types are estimated from it. */
void mm_forecast_assume(struct mm_device *device, const struct mm_variant *variant,
                        const struct mm_product *product, double took_ns);

/* A product is thin if 2·m·n·k is less than 32 times the elements of its matrices. The device then waits
 * for memory (the roofline model). A vector by a matrix needs 30 times as long for each operation as a
 * square product. By the rate of a thin product, all large squares would be rejected. */
enum { MM_FORECAST_THIN = 32 };

/* Updates the rates by a job that succeeded. Any job may improve a measured rate. The first measured rate
 * comes from a job of at least 50 µs, a million operations and a million bytes. That job needed less than
 * 32 times the assumed time. The first rate for an operation comes from a product that is not thin. A thin
 * product sets the rate for its bytes, if it needed longer than its operations. */
void mm_forecast_learn(struct mm_device *device, const struct mm_job *job);

/* Forecasts the kernel time of the product by this variant (not `auto`), in nanoseconds: by its operations
 * or by its bytes, whichever is longer. On a GPU, C counts as at least MM_FORECAST_ELEMENTS_MIN elements,
 * because a deep product needs long even if C is small. 0 if there is no rate. */
double mm_forecast_kernel_ns(const struct mm_device *device, const struct mm_variant *variant,
                             const struct mm_product *product);
enum { MM_FORECAST_ELEMENTS_MIN = 65536 };

/* Checks mm_forecast_kernel_ns against a limit in milliseconds (0: no limit). If it is exceeded,
 * MM_TOO_LARGE names the variant, the limit and the largest edge within the limit. */
enum mm_status mm_forecast_check(const struct mm_device *device, const struct mm_variant *variant,
                                 const struct mm_product *product, uint64_t kernel_ms_max,
                                 struct mm_error *error);

/* Forecasts how long the kernel, the copies and the check of a job will take by this variant (not `auto`),
 * in nanoseconds. */
double mm_forecast_ns(const struct mm_device *device, const struct mm_job *job,
                      const struct mm_variant *variant);
