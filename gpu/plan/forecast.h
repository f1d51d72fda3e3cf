/* How long a job will take on a device, by what jobs before it took there. */
#pragma once

#include "gpu/product/product.h"

struct mm_device;
struct mm_job;
struct mm_variant;

enum { MM_FORECAST_VARIANTS_MAX = 64 };

/* A device's rates. The best time seen counts, so a forecast is rather too short. All 0: nothing is known,
 * and the forecast is 0. Any thread reads and writes without a lock: a lost update does no harm. */
struct mm_forecast {
    /* For an operation, or a byte of a transposition, by the variant's row and the operands' type. */
    double kernel_ns[MM_FORECAST_VARIANTS_MAX][MM_DTYPE_COUNT];
    bool measured[MM_FORECAST_VARIANTS_MAX][MM_DTYPE_COUNT];  /* by a job; else the self-test assumed it */
    double byte_ns[MM_FORECAST_VARIANTS_MAX][MM_DTYPE_COUNT]; /* for a byte of the three matrices of a thin
                                                                 product, never assumed */
    double copy_ns;                                           /* for a byte, there or back */
    double check_ns[MM_DTYPE_COUNT]; /* for a byte of the three matrices, where they are checked: of operands
                                        of a type */
};

/* A rate for jobs until the first was measured: that of a float32 product or transposition that took so long,
 * and from it a guess for the other types. */
void mm_forecast_assume(struct mm_device *device, const struct mm_variant *ran,
                        const struct mm_product *product, double took_ns);

/* A product is thin if 2·m·n·k is less than this many times the elements of its matrices. Below some ratio of
 * that kind every processor waits for memory (the roofline model), and a vector by a matrix takes 30 times as
 * long for each operation as a square. By its rate, all large squares would be refused. */
enum { MM_FORECAST_THIN = 32 };

/* Learns from a job that ended well: a first rate from one of at least 50 µs, a million operations and
 * bytes, and less than 32 times what was assumed; a better one from any. The first rate for an operation is
 * that of a product that is not thin. A thin one tells that of its bytes if it took longer than its
 * operations should. */
void mm_forecast_learn(struct mm_device *device, const struct mm_job *job);

/* Nanoseconds of kernel time that the product will take by this variant (not `auto`): by its operations or by
 * its bytes, whichever is longer. Long products are refused and cut by it. C counts as
 * MM_FORECAST_ELEMENTS_MIN elements at least on a GPU, which takes long for a deep product of even the
 * smallest C. 0 without a rate. */
double mm_forecast_kernel_ns(const struct mm_device *device, const struct mm_variant *ran,
                             const struct mm_product *product);
enum { MM_FORECAST_ELEMENTS_MIN = 65536 };

/* Judges that time: MM_TOO_LARGE names the variant, the limit and the largest edge that passes. 0: no
 * limit. */
enum mm_status mm_forecast_check(const struct mm_device *device, const struct mm_variant *ran,
                                 const struct mm_product *product, uint64_t kernel_ms_max,
                                 struct mm_error *error);

/* Nanoseconds that a job will keep the device busy by this variant (not `auto`): its kernel, its copies
 * and its check. */
double mm_forecast_ns(const struct mm_device *device, const struct mm_job *job, const struct mm_variant *ran);
