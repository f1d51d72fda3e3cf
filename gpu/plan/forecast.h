/* Forecasts how long a job will take on a device, from the times of earlier jobs. */
#pragma once

#include "gpu/product/product.h"

struct mm_device;
struct mm_job;
struct mm_variant;

enum { MM_FORECAST_VARIANTS_MAX = 64 };

/* The rates of a device. Each rate is from the fastest job so far, so forecasts are usually too short. An
 * unknown rate is 0, and gives forecasts of 0. Any thread reads and writes without a lock, because a lost
 * update does no harm. */
struct mm_forecast {
    /* Nanoseconds for an operation of a product or for a byte of a transposition, by variant and operand
     * type. */
    double kernel_ns[MM_FORECAST_VARIANTS_MAX][MM_DTYPE_COUNT];
    /* Whether a job measured kernel_ns. If not, mm_forecast_assume set kernel_ns. */
    bool measured[MM_FORECAST_VARIANTS_MAX][MM_DTYPE_COUNT];
    /* Nanoseconds for a byte of A, B and C in a thin product. */
    double byte_ns[MM_FORECAST_VARIANTS_MAX][MM_DTYPE_COUNT];
    double copy_ns; /* nanoseconds for a byte copied to or from the device */
    double peer_ns; /* nanoseconds for a byte copied from another device; else copy_ns counts */
    double check_ns[MM_DTYPE_COUNT]; /* nanoseconds for a byte of A, B and C in a check */
};

/* Sets the rates of a variant until a job measures them. took_ns is the time of a float32 product or
 * transposition. The rates of the other types are estimated from took_ns. */
void mm_forecast_assume(struct mm_device *device, const struct mm_variant *variant,
                        const struct mm_product *product, double took_ns);

/* A product is thin if 2·m·n·k is less than 32 times the elements of its matrices. The device then waits for
 * memory, by the roofline model. A vector times a matrix takes 30 times as long for each operation as a
 * product of large squares. If that rate counted, the service would reject all products of large squares. */
enum { MM_FORECAST_THIN = 32 };

/* Updates the rates. Call this after a job succeeded. If a rate was measured before, only a faster job
 * changes it. The first measurement needs a job that took at least 50 µs and less than 32 times the assumed
 * time. The job must have at least a million operations or bytes. A thin product never sets the first rate
 * for operations. */
void mm_forecast_learn(struct mm_device *device, const struct mm_job *job);

/* Forecasts the kernel time of a product in nanoseconds; 0 if there is no rate. `variant` is not `auto`. For
 * a GPU, the forecast assumes at least MM_FORECAST_ELEMENTS_MIN elements of C, because a product with a large
 * k takes long even if C is small. */
double mm_forecast_kernel_ns(const struct mm_device *device, const struct mm_variant *variant,
                             const struct mm_product *product);
enum { MM_FORECAST_ELEMENTS_MIN = 65536 };

/* Checks mm_forecast_kernel_ns against a limit in milliseconds; 0 is no limit. Above the limit, returns
 * MM_TOO_LARGE with the variant, the limit, and the edge of the largest square product within the limit. */
enum mm_status mm_forecast_check(const struct mm_device *device, const struct mm_variant *variant,
                                 const struct mm_product *product, uint64_t kernel_ms_max,
                                 struct mm_error *error);

/* Forecasts the time of copying bytes to or from a device in nanoseconds; 0 if there is no rate. */
double mm_forecast_copy_ns(const struct mm_device *device, size_t bytes);

/* Forecasts how long the kernels of a job wait for stored operands that a device lacks, in nanoseconds. */
double mm_forecast_fetch_ns(const struct mm_device *device, const struct mm_job *job);

/* Forecasts the time of a job's kernel, copies and check in nanoseconds. `variant` is not `auto`. */
double mm_forecast_ns(const struct mm_device *device, const struct mm_job *job,
                      const struct mm_variant *variant);
