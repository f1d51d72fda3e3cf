/* A variant: one way to multiply or to transpose, as a row of its backend's table. The API, the tests and the
 * benchmark read the rows: a new variant is its file and one row (gpu/cpu/variants.h, gpu/cuda/variants.h).
 */
#pragma once

#include "gpu/names.h"
#include "gpu/check/bounds.h"
#include "gpu/product/product.h"

struct mm_device;
struct mm_plan;
struct mm_lane; /* what one launch runs on: a CUDA stream with its events and workspace (gpu/cuda/lane.h); not
                   used on the CPU */

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

/* On the host: computes C on the calling thread. m and n are not 0; k = 0 gives zeros. `lane` is NULL.
 * MM_UNSUPPORTED for a shape that exceeds a limit of the variant, MM_INTERNAL if memory runs out. */
typedef enum mm_status mm_variant_launch(const struct mm_product *product, struct mm_lane *lane,
                                         struct mm_error *error);

/* On other devices: completes *plan (gpu/plan/plan.h), whose device, variant and is_frugal are set, and whose
 * other members have the backend's defaults. m and n are not 0; the dimensions are within the backend's
 * limits, and multiples as multiple_of says. product->tile is 0 or one of `tiles`; data may be NULL. A pure
 * function for any thread, which makes no call to the device. MM_UNSUPPORTED for a shape that the variant
 * does not do. */
typedef enum mm_status mm_variant_plan(const struct mm_product *product, struct mm_plan *plan,
                                       struct mm_error *error);

/* Predicts the memory traffic of one run (gpu/lab/traffic/traffic.h), in tiles of this edge if the variant
 * has tiles. The prediction assumes that matrices begin at multiples of 256 bytes. It reads no elements; data
 * may be NULL. False, with *traffic undefined, if the model does not cover this product. Any thread; less
 * than a millisecond. */
struct mm_traffic;
typedef bool mm_variant_traffic(const struct mm_product *product, unsigned tile, struct mm_traffic *traffic);

/* For the row `auto`: returns the best row for this product on this device, a vendor's only if
 * product->allow_vendor. The row can run there and takes the product's element type; it is not `auto`, and
 * not NULL. */
typedef const struct mm_variant *mm_variant_choose(const struct mm_device *device,
                                                   const struct mm_product *product);

/* What the dimensions of a product must be multiples of. */
struct mm_multiples {
    unsigned m;
    unsigned n;
    unsigned k;
};

struct mm_variant {
    const char *name;           /* as clients write it: [a-z0-9_]+, unique in its table for its op */
    const char *summary;        /* one line for people */
    const char *needs;          /* what it needs beyond the backend, for people; NULL: nothing */
    const char *const *sources; /* its files, from the top folder, ended by NULL: first the file with the
                                   kernel; without files that all variants use. NULL: not known */
    enum mm_op op;
    unsigned tile;         /* edge of its square tile in elements; 0: it has none */
    const unsigned *tiles; /* the edges that a caller may choose, ended by 0; NULL: none. `tile` is one of
                              them, or 0: the shape decides */
    unsigned cut; /* on the host: a long product is computed in parts of C whose edges are multiples of
                     this (gpu/queue/progress.h); 0: in one */
    unsigned multiple_of; /* it takes only m, n and k that are multiples of this (at most 32); 0: any */
    struct mm_multiples multiples[MM_DTYPE_COUNT]; /* by element type; where one is 0, multiple_of holds */
    bool rounds_to_tf32;                           /* float32 operands */
    bool wrong_on_purpose; /* a lesson whose products are wrong: it only runs if a client names it. No
                              self-test, test, default list or `auto` includes it */
    bool converts; /* not on the host: C may have any type of mm_dtype_results; else only mm_dtype_result */

    /* Why it cannot run on this device (a static sentence), or NULL if it can; dtype_missing for operands of
     * one element type. Any thread. A NULL pointer: it always can. */
    const char *(*missing)(const struct mm_device *device);
    const char *(*dtype_missing[MM_DTYPE_COUNT])(const struct mm_device *device);

    /* The functions by element type. The row takes the types that have a function. Rows of the host have
     * `launch`, rows of other devices have `plan`, and the row `auto` has only `choose`. */
    mm_variant_launch *launch[MM_DTYPE_COUNT];
    mm_variant_plan *plan[MM_DTYPE_COUNT];
    mm_variant_choose *choose[MM_DTYPE_COUNT];

    mm_variant_traffic *traffic; /* NULL: it has no model (gpu/lab/traffic/kernels.h) */
};

/* For `sources`. */
#define MM_SOURCES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* For a row with one function for all element types. */
#define MM_EVERY_DTYPE(function) [0 ... MM_DTYPE_COUNT - 1] = function

/* --- Any thread may call these; no pointer may be NULL --------------------------------------------- */

/* Whether the row takes the element type. */
bool mm_variant_has_dtype(const struct mm_variant *variant, enum mm_dtype dtype);

/* The element types that the row takes: MM_DTYPE_BIT of each. */
unsigned mm_variant_dtypes(const struct mm_variant *variant);

/* Whether it is the row `auto`. */
bool mm_variant_chooses(const struct mm_variant *variant);

/* What m, n and k of a product of such operands must be multiples of; each at least 1. */
struct mm_multiples mm_variant_multiples(const struct mm_variant *variant, enum mm_dtype dtype);

/* Whether m, n and k of the product are the multiples that the row needs. */
bool mm_variant_takes(const struct mm_variant *variant, const struct mm_product *product);

/* MM_UNSUPPORTED, with the name of the dimension, if mm_variant_takes is false for the product. */
enum mm_status mm_variant_check_shape(const struct mm_variant *variant, const struct mm_product *product,
                                      struct mm_error *error);

/* MM_BAD_REQUEST if the row does not offer tiles of this edge. 0 is always right: the row's own tile. */
enum mm_status mm_variant_check_tile(const struct mm_variant *variant, unsigned tile, struct mm_error *error);

/* The row that the device runs if the client chose this row: this row, or for `auto` what `choose` returns.
 */
const struct mm_variant *mm_variant_resolve(const struct mm_variant *variant, const struct mm_device *device,
                                            const struct mm_product *product);

/* Why the row cannot run on the device with operands of this type, or NULL if it can. mm_variant_has_dtype
 * says whether the row takes the type at all. */
const char *mm_variant_missing(const struct mm_variant *variant, const struct mm_device *device,
                               enum mm_dtype dtype);

/* The arithmetic of the row's products, for their error bounds. */
enum mm_arithmetic mm_variant_arithmetic(const struct mm_variant *variant, bool is_host);

/* The element types that the row takes on this device: MM_DTYPE_BIT of each. */
unsigned mm_variant_dtypes_on(const struct mm_variant *variant, const struct mm_device *device);
