/* A variant: one way to multiply or to transpose, as a row of its backend's table. The API, the
 * documentation, the tests and the benchmark learn a variant from its row, so that adding one takes its file
 * and one row (gpu/cpu/variants.h, gpu/cuda/variants.h). */
#pragma once

#include "gpu/names.h"
#include "gpu/check/bounds.h"
#include "gpu/product/product.h"

struct mm_device;
struct mm_plan;
struct mm_lane; /* a backend's own: what one launch runs on (a CUDA stream and its notes; unused on the CPU)
                 */

/* What one instance of a variant uses of the device, read from the device. */
struct mm_attributes {
    unsigned threads_per_block;
    unsigned registers_per_thread;
    size_t static_shared_bytes;
    size_t dynamic_shared_bytes;
    size_t local_bytes; /* per thread; spills show here */
    unsigned blocks_per_multiprocessor;
};

/* What the compiler reported of one kernel when the table of its backend was written. No device is needed. */
struct mm_compiled {
    unsigned variant;                /* its place in the backend's table of variants */
    unsigned compute_capability;     /* 10·major + minor: 90 */
    unsigned tile;                   /* edge in elements; 0: it has none, or the shape decides */
    enum mm_dtype dtype;             /* of the operands */
    size_t spill_store_bytes;        /* stores of spilled registers in the code of a thread */
    size_t spill_load_bytes;         /* loads of them */
    struct mm_attributes attributes; /* blocks_per_multiprocessor is 0: it depends on the chip */
};

/* On the host: computes C on the calling thread. Every shape from 1×1×0 up must be right (k = 0 gives zeros);
 * m = 0 or n = 0 never arrives. `lane` is NULL. MM_UNSUPPORTED for a shape past a limit of the variant,
 * MM_INTERNAL if memory runs out. */
typedef enum mm_status mm_variant_launch(const struct mm_product *product, struct mm_lane *lane,
                                         struct mm_error *error);

/* On other devices: fills in *plan (gpu/plan/plan.h), whose device, variant and is_frugal are set and all
 * else is the backend's default. product->tile is 0 or one of `tiles`; data may be NULL. The same shapes
 * arrive, within the backend's limits and by multiple_of. A pure function of any thread that asks no device.
 * MM_UNSUPPORTED for a shape that the variant does not do. */
typedef enum mm_status mm_variant_plan(const struct mm_product *product, struct mm_plan *plan,
                                       struct mm_error *error);

/* Predicts the memory traffic of one run (gpu/lab/traffic/traffic.h), in tiles of this edge if the variant
 * has tiles. It assumes that matrices begin at multiples of 256 bytes, and reads none of them; data may be
 * NULL. Returns false, and leaves *traffic undefined, if the model does not cover this product. Any thread;
 * less than a millisecond. */
struct mm_traffic;
typedef bool mm_variant_traffic(const struct mm_product *product, unsigned tile, struct mm_traffic *traffic);

/* For the row `auto`: the best row for this product on this device, a vendor's only if product->allow_vendor.
 * Never NULL, a row that is missing on the device or does not take the product's element type, or `auto`. */
typedef const struct mm_variant *mm_variant_choose(const struct mm_device *device,
                                                   const struct mm_product *product);

/* What the dimensions of a product must be multiples of. */
struct mm_multiples {
    unsigned m;
    unsigned n;
    unsigned k;
};

struct mm_variant {
    const char *name;           /* as callers write it: [a-z0-9_]+, unique in its table for its op */
    const char *summary;        /* one line for people */
    const char *needs;          /* what it needs beyond the backend, for people; NULL: nothing */
    const char *const *sources; /* its files, from the top folder, ended by NULL: first the one with the
                                   kernel; not what all variants share. NULL: they are not known */
    enum mm_op op;
    unsigned tile;         /* edge of its square tile in elements; 0: it has none */
    const unsigned *tiles; /* the edges that a caller may choose, ended by 0; NULL: none. `tile` is one of
                              them, or 0: the shape decides */
    unsigned cut; /* on the host: a long product is computed in parts of C whose edges are multiples of
                     this (gpu/queue/progress.h); 0: in one */
    unsigned multiple_of; /* it takes only m, n and k that are multiples of this (at most 32); 0: any */
    struct mm_multiples multiples[MM_DTYPE_COUNT]; /* the same for one element type; 0: multiple_of holds */
    bool rounds_to_tf32;                           /* float32 operands */
    bool wrong_on_purpose; /* a lesson whose products are wrong: it runs only if it is named, so no self-test,
                              check, default list or `auto` includes it */
    bool converts; /* not on the host: C may have any type of mm_dtype_results; else only mm_dtype_result */

    /* Why it cannot run on this device (a static sentence), or NULL if it can. Any thread. NULL pointer:
     * it always can. dtype_missing is the same for operands of one element type. */
    const char *(*missing)(const struct mm_device *device);
    const char *(*dtype_missing[MM_DTYPE_COUNT])(const struct mm_device *device);

    /* The functions by element type: the row takes the types that have one. Rows of the host have `launch`,
     * of other devices `plan`, and the row `auto` has `choose` alone. */
    mm_variant_launch *launch[MM_DTYPE_COUNT];
    mm_variant_plan *plan[MM_DTYPE_COUNT];
    mm_variant_choose *choose[MM_DTYPE_COUNT];

    mm_variant_traffic *traffic; /* NULL: it has no model (gpu/lab/traffic/kernels.h) */
};

/* For `sources`. */
#define MM_SOURCES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* For a row whose function moves elements of any type. */
#define MM_EVERY_DTYPE(function) [0 ... MM_DTYPE_COUNT - 1] = function

/* --- Any thread may call these; no pointer may be NULL --------------------------------------------- */

/* Whether the row has the element type. */
bool mm_variant_has_dtype(const struct mm_variant *variant, enum mm_dtype dtype);

/* The element types that the row takes: MM_DTYPE_BIT of each. */
unsigned mm_variant_dtypes(const struct mm_variant *variant);

/* Whether it is the row `auto`. */
bool mm_variant_chooses(const struct mm_variant *variant);

/* What m, n and k of a product of such operands must be multiples of; each at least 1. */
struct mm_multiples mm_variant_multiples(const struct mm_variant *variant, enum mm_dtype dtype);

/* Whether they are. */
bool mm_variant_takes(const struct mm_variant *variant, const struct mm_product *product);

/* MM_UNSUPPORTED if they are not; names the dimension. */
enum mm_status mm_variant_check_shape(const struct mm_variant *variant, const struct mm_product *product,
                                      struct mm_error *error);

/* MM_BAD_REQUEST if the row does not offer this edge of a tile; 0 stands for its own. */
enum mm_status mm_variant_check_tile(const struct mm_variant *variant, unsigned tile, struct mm_error *error);

/* What a device runs for the row that the caller chose: the row itself, or what `choose` picks. */
const struct mm_variant *mm_variant_resolve(const struct mm_variant *variant, const struct mm_device *device,
                                            const struct mm_product *product);

/* Why the row cannot run on the device with such operands, or NULL where it can. (Whether the row takes the
 * type at all, mm_variant_dtypes says.) */
const char *mm_variant_missing(const struct mm_variant *variant, const struct mm_device *device,
                               enum mm_dtype dtype);

/* What computes its products, on the host or on another device. */
enum mm_arithmetic mm_variant_arithmetic(const struct mm_variant *variant, bool is_host);

/* The element types that the row takes on this device: MM_DTYPE_BIT of each. */
unsigned mm_variant_dtypes_on(const struct mm_variant *variant, const struct mm_device *device);
