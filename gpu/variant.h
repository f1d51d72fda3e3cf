/* A variant: one way to multiply or to transpose, as a row of its backend's table. The API, the
 * documentation, the tests and the benchmark learn a variant from its row, so that adding one takes its file
 * and one row (gpu/cpu/variants.h, gpu/cuda/variants.h). */
#ifndef MM_GPU_VARIANT_H
#define MM_GPU_VARIANT_H

#include "gpu/product.h"

#ifdef __cplusplus
extern "C" {
#endif

struct mm_device;
struct mm_lane; /* a backend's own: what one launch runs on (a CUDA stream and its notes; unused on the CPU)
                 */

/* One row an operation: constant, wire name, the element types that some variant of it takes. */
#define MM_OP_TABLE(X)                                                                                       \
    X(MM_MATMUL, "matmul", MM_DTYPE_BIT(MM_FLOAT32))                                                         \
    X(MM_TRANSPOSE, "transpose", MM_DTYPES_MOVED)

/* A transposition only moves its elements, so that its variants take all types of 4 and of 8 bytes. */
#define MM_DTYPES_MOVED                                                                                      \
    (MM_DTYPE_BIT(MM_FLOAT32) | MM_DTYPE_BIT(MM_FLOAT64) | MM_DTYPE_BIT(MM_INT32) | MM_DTYPE_BIT(MM_INT64))

enum mm_op {
#define X(constant, name, dtypes) constant,
    MM_OP_TABLE(X)
#undef X
        MM_OP_COUNT
};

const char *mm_op_name(enum mm_op op);
unsigned mm_op_dtypes(enum mm_op op); /* MM_DTYPE_BIT of each */

/* What one instance of a variant uses of the device, read from the device. */
struct mm_attributes {
    unsigned threads_per_block;
    unsigned registers_per_thread;
    size_t static_shared_bytes;
    size_t dynamic_shared_bytes;
    size_t local_bytes; /* per thread; spills show here */
    unsigned blocks_per_multiprocessor;
};

struct mm_variant {
    const char *name;    /* as callers write it: [a-z0-9_]+, unique in its table for its op */
    const char *summary; /* one line for people */
    const char *needs;   /* what it needs beyond the backend, for people; NULL: nothing */
    enum mm_op op;
    unsigned dtypes;       /* MM_DTYPE_BIT of each it takes */
    unsigned tile;         /* edge of its square tile in elements; 0: it has none */
    const unsigned *tiles; /* the edges that a caller may choose, ended by 0, `tile` among them; NULL: none */
    unsigned multiple_of;  /* it takes only m, n and k that are multiples of this (at most 32); 0: any */

    /* Why it cannot run on this device (a static sentence), or NULL where it can. A NULL pointer
     * means that it always can. Any thread. */
    const char *(*missing)(const struct mm_device *device);

    /* Computes C (product->tile is 0, or one of `tiles`), or enqueues that on the lane; all memory is the
     * device's own. Every shape from 1×1×0 up must be right (k = 0 gives zeros); m = 0 or n = 0 never
     * arrives. Must not block, except on the CPU, where it returns when C is complete. Failures:
     * MM_UNSUPPORTED for a shape it does not do (by multiple_of, or past a limit), or one of `tiles`, but not
     * `tile`, that the device has too little for; MM_DEVICE_FAILED, MM_INTERNAL. NULL where `choose` is set.
     */
    enum mm_status (*launch)(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error);

    /* For the row `auto` alone: the row that is best for this product on this device, of a GPU's vendor only
     * where product->allow_vendor. It never returns NULL, a row that is missing on the device, or a row with
     * `choose`. */
    const struct mm_variant *(*choose)(const struct mm_device *device, const struct mm_product *product);
};

/* Whether m, n and k are such as the row's multiple_of asks for. Its launch judges the same, and says why
 * not. */
bool mm_variant_takes(const struct mm_variant *variant, const struct mm_product *product);

/* What a device runs for the row that the caller chose: the row itself, or what `choose` picks. */
const struct mm_variant *mm_variant_resolve(const struct mm_variant *variant, const struct mm_device *device,
                                            const struct mm_product *product);

/* Why the row cannot run on the device, or NULL where it can. */
const char *mm_variant_missing(const struct mm_variant *variant, const struct mm_device *device);

#ifdef __cplusplus
}
#endif
#endif
