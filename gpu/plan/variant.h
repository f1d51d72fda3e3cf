/* A variant: one way to multiply or to transpose, as a row of its backend's table. The API, the tests and
 * the benchmark read the rows. To add a variant, add its file and one row (gpu/cpu/variants.h,
 * gpu/cuda/variants.h). */
#pragma once

#include "gpu/names.h"
#include "gpu/check/bounds.h"
#include "gpu/product/product.h"

struct mm_device;
struct mm_plan;
struct mm_lane; /* a CUDA stream with its events and workspace, on which a launch runs (gpu/cuda/lane.h); not
                   used on the CPU */

/* The resources that one kernel of a variant uses, as the device reports them. */
struct mm_attributes {
    unsigned threads_per_block;
    unsigned registers_per_thread;
    size_t static_shared_bytes;
    size_t dynamic_shared_bytes;
    size_t local_bytes; /* local memory of a thread, which includes spilled registers */
    unsigned blocks_per_multiprocessor;
};

/* Resources of one kernel as the compiler reported them at build time. Reading them needs no device. */
struct mm_compiled {
    unsigned variant;                /* index in the backend's table of variants */
    unsigned compute_capability;     /* 10·major + minor: 90 */
    unsigned tile;                   /* edge of the tile in elements; 0: no tile, or the shape decides */
    enum mm_dtype dtype;             /* type of the operands */
    size_t spill_store_bytes;        /* bytes of spilled registers that a thread's code stores */
    size_t spill_load_bytes;         /* bytes of spilled registers that a thread's code loads */
    struct mm_attributes attributes; /* blocks_per_multiprocessor is 0: it depends on the chip */
};

/* For variants of the host: computes C on the calling thread. m and n are not 0; if k is 0, C becomes
 * zeros. `lane` is NULL. MM_UNSUPPORTED if the shape exceeds a limit of the variant. MM_INTERNAL if memory
 * runs out. */
typedef enum mm_status mm_variant_launch(const struct mm_product *product, struct mm_lane *lane,
                                         struct mm_error *error);

/* For variants of other devices: completes *plan (gpu/plan/plan.h). The plan's device, variant and
 * is_frugal are set; its other members have the backend's defaults. m and n are not 0. The dimensions are
 * within the backend's limits, and multiples of mm_variant_multiples. product->tile is 0 or one of
 * `tiles`. The matrices may have no data. The function makes no call to the device. MM_UNSUPPORTED if the
 * variant does not support the shape. Any thread. */
typedef enum mm_status mm_variant_plan(const struct mm_product *product, struct mm_plan *plan,
                                       struct mm_error *error);

/* Predicts the memory traffic of one run (gpu/lab/traffic/traffic.h), with tiles of this edge if the
 * variant has tiles. The prediction assumes that matrices begin at multiples of 256 bytes. The matrices
 * may have no data. Returns false, with *traffic undefined, if the model does not cover this product.
 * Needs less than a millisecond. Any thread. */
struct mm_traffic;
typedef bool mm_variant_traffic(const struct mm_product *product, unsigned tile, struct mm_traffic *traffic);

/* For the variant `auto`: returns the best variant for this product on this device. A library of the
 * vendor is allowed only if product->allow_vendor is set. The device can run the variant with the
 * product's element type. The result is not `auto`, and not NULL. */
typedef const struct mm_variant *mm_variant_choose(const struct mm_device *device,
                                                   const struct mm_product *product);

/* Numbers of which m, n and k of a product must be multiples. */
struct mm_multiples {
    unsigned m;
    unsigned n;
    unsigned k;
};

struct mm_variant {
    const char *name;    /* name in the API: [a-z0-9_]+, unique in the table for its operation */
    const char *summary; /* description in one line */
    const char *needs;   /* requirements in addition to the backend, for people; NULL: none */
    const char *const
        *sources; /* source files as paths in the repository, the file with the kernel first, ended by NULL.
                     Files that all variants use are not listed. NULL: not known */
    enum mm_op op;
    unsigned tile; /* edge of the square tile in elements; 0: no tile, or the shape decides */
    const unsigned
        *tiles;   /* edges of tiles that a caller may choose, ended by 0; NULL: the caller has no choice */
    unsigned cut; /* for the host: a long product is computed in parts of C whose edges are multiples of this
                     (gpu/queue/progress.h); 0: in one part */
    unsigned multiple_of; /* m, n and k must be multiples of this (at most 32); 0: any size */
    struct mm_multiples
        multiples[MM_DTYPE_COUNT]; /* multiples for each element type; 0: multiple_of applies */
    bool rounds_to_tf32;           /* float32 operands are rounded to tf32 */
    bool wrong_on_purpose;         /* a lesson with wrong products: it runs only if a client names it, and no
                                      self-test, test, default list or `auto` includes it */
    bool converts; /* for devices other than the host: C may have any type of mm_dtype_results; false: only
                      mm_dtype_result */

    /* Return why this device cannot run the variant (a static sentence), or NULL if it can. dtype_missing
     * is for operands of one element type. Any thread. A NULL pointer: every device can run it. */
    const char *(*missing)(const struct mm_device *device);
    const char *(*dtype_missing[MM_DTYPE_COUNT])(const struct mm_device *device);

    /* Functions by element type. The variant supports a type if it has a function for the type. Variants
     * of the host have `launch`, variants of other devices have `plan`, and `auto` has only `choose`. */
    mm_variant_launch *launch[MM_DTYPE_COUNT];
    mm_variant_plan *plan[MM_DTYPE_COUNT];
    mm_variant_choose *choose[MM_DTYPE_COUNT];

    mm_variant_traffic *traffic; /* NULL: the variant has no model (gpu/lab/traffic/kernels.h) */
};

/* A list of paths for the member `sources`. */
#define MM_SOURCES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Sets a variant's function for all element types. */
#define MM_EVERY_DTYPE(function) [0 ... MM_DTYPE_COUNT - 1] = function

/* --- Any thread may call these; no pointer may be NULL --------------------------------------------- */

/* Whether the variant supports the element type. */
bool mm_variant_has_dtype(const struct mm_variant *variant, enum mm_dtype dtype);

/* Returns the element types that the variant supports: MM_DTYPE_BIT of each. */
unsigned mm_variant_dtypes(const struct mm_variant *variant);

/* Whether the variant is `auto`. */
bool mm_variant_is_auto(const struct mm_variant *variant);

/* Returns the numbers of which m, n and k of a product of such operands must be multiples; each is at
 * least 1. */
struct mm_multiples mm_variant_multiples(const struct mm_variant *variant, enum mm_dtype dtype);

/* Whether m, n and k of the product are multiples of mm_variant_multiples. */
bool mm_variant_supports_shape(const struct mm_variant *variant, const struct mm_product *product);

/* Checks the shape: MM_UNSUPPORTED, with the name of the dimension, if m, n or k is not a multiple of
 * mm_variant_multiples. */
enum mm_status mm_variant_check_shape(const struct mm_variant *variant, const struct mm_product *product,
                                      struct mm_error *error);

/* Checks a tile: MM_BAD_REQUEST if the variant does not offer tiles of this edge. 0 is always accepted,
 * and means the variant's default. */
enum mm_status mm_variant_check_tile(const struct mm_variant *variant, unsigned tile, struct mm_error *error);

/* Returns the variant that the device runs if the client chose this variant: the variant itself, or for
 * `auto` the result of `choose`. */
const struct mm_variant *mm_variant_resolve(const struct mm_variant *variant, const struct mm_device *device,
                                            const struct mm_product *product);

/* Returns why the device cannot run the variant with operands of this type, or NULL if it can.
 * mm_variant_has_dtype says whether the variant supports the type at all. */
const char *mm_variant_missing(const struct mm_variant *variant, const struct mm_device *device,
                               enum mm_dtype dtype);

/* Returns the arithmetic of the variant's products, for their error bounds. `is_host`: its backend
 * computes on the host. */
enum mm_arithmetic mm_variant_arithmetic(const struct mm_variant *variant, bool is_host);

/* Returns the element types that the variant supports on this device: MM_DTYPE_BIT of each. */
unsigned mm_variant_dtypes_on(const struct mm_variant *variant, const struct mm_device *device);
