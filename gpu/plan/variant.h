/* A variant is one way to multiply or to transpose. Each variant is a row of its backend's table, which the
 * API, the tests and the benchmark read. To add a variant, add its file and one row in gpu/cpu/variants.h or
 * gpu/cuda/variants.h. */
#pragma once

#include "gpu/names.h"
#include "gpu/check/bounds.h"
#include "gpu/product/product.h"

struct mm_device;
struct mm_plan;
/* A CUDA stream with its events and workspace (gpu/cuda/lane.h). Launches on the CPU get NULL. */
struct mm_lane;

/* The resources of a kernel, as the device reports them. */
struct mm_attributes {
    unsigned threads_per_block;
    unsigned registers_per_thread;
    size_t static_shared_bytes;
    size_t dynamic_shared_bytes;
    size_t local_bytes; /* local memory of a thread, with spilled registers */
    unsigned blocks_per_multiprocessor;
};

/* The resources of a kernel, as the compiler reported them at build time. */
struct mm_compiled {
    unsigned variant;            /* index in the backend's table of variants */
    unsigned compute_capability; /* 10·major + minor, such as 90 */
    unsigned tile;               /* edge of the tile in elements; 0 if the shape decides */
    enum mm_dtype dtype;
    size_t spill_store_bytes;        /* bytes that a thread stores by spilling registers */
    size_t spill_load_bytes;         /* bytes that a thread loads by spilling registers */
    struct mm_attributes attributes; /* blocks_per_multiprocessor is 0, because the chip decides */
};

/* For variants of the host: computes C on the calling thread. m and n are not 0; if k is 0, C becomes zeros.
 * `lane` is NULL. Returns MM_UNSUPPORTED if the shape exceeds a limit of the variant, and MM_INTERNAL if
 * memory runs out. */
typedef enum mm_status mm_variant_launch(const struct mm_product *product, struct mm_lane *lane,
                                         struct mm_error *error);

/* For variants of other devices: completes *plan (gpu/plan/plan.h). The caller has set the plan's device
 * and variant. The other members have the backend's defaults. m and n are not 0. The dimensions are
 * within the backend's limits, and are multiples of mm_variant_multiples. product->tile is 0 or one of
 * `tiles`. The matrices may have no data. Makes no call to the device. Returns MM_UNSUPPORTED if the variant
 * does not support the shape. Any thread. */
typedef enum mm_status mm_variant_plan(const struct mm_product *product, struct mm_plan *plan,
                                       struct mm_error *error);

/* Predicts the memory traffic of one run (gpu/lab/traffic/traffic.h). `tile` is the edge of the tiles, if
 * the variant has tiles. Matrices are assumed to begin at multiples of 256 bytes, and may have no data.
 * Returns false, with *traffic undefined, if the model does not support the product. Any thread. */
struct mm_traffic;
typedef bool mm_variant_traffic(const struct mm_product *product, unsigned tile, struct mm_traffic *traffic);

/* For the variant `auto`: returns the best variant for this product on this device, never `auto` and never
 * NULL. The device can run the variant with the product's element type. If product->allow_vendor is not set,
 * the variant is no library of the device's vendor. */
typedef const struct mm_variant *mm_variant_choose(const struct mm_device *device,
                                                   const struct mm_product *product);

/* A product's m, n and k must be multiples of these numbers. */
struct mm_multiples {
    unsigned m;
    unsigned n;
    unsigned k;
};

struct mm_variant {
    const char *name; /* in the API: [a-z0-9_]+, unique among the variants of the operation */
    const char *summary;
    const char *needs; /* what the variant needs besides the backend, as text for people; may be NULL */
    /* Paths of the source files in the repository, ended by NULL. The file with the kernel is first. The list
     * omits files that all variants use. NULL if the files are not known. */
    const char *const *sources;
    enum mm_op op;
    unsigned tile; /* edge of the square tile in elements; 0 if the shape decides */
    /* Edges of the tiles that a caller may choose, ended by 0. NULL if there is no choice. */
    const unsigned *tiles;
    /* For the host. A long product is computed in parts of C whose edges are multiples of `cut`
     * (gpu/queue/progress.h). 0 if C is computed as a whole. */
    unsigned cut;
    unsigned multiple_of; /* m, n and k must be multiples of this, at most 32; 0: any size */
    /* The multiples for each element type. multiple_of replaces each 0. */
    struct mm_multiples multiples[MM_DTYPE_COUNT];
    bool rounds_to_tf32;
    /* A lesson whose products are wrong. The variant runs only if a client names it. Self-tests, tests,
     * default lists and `auto` exclude it. */
    bool wrong_on_purpose;
    /* For devices other than the host. If set, C may have any type of mm_dtype_results. If not set, C has the
     * type mm_dtype_result. */
    bool converts;
    /* Kernel, tile and split of k follow from k, n and the types alone. So the bits of a row of C do not
     * depend on the other rows. */
    bool is_row_by_row;
    /* The bits of an element of C depend on all of C. So several devices cannot share a product. */
    bool needs_whole;

    /* `missing` returns why this device cannot run the variant, as a static sentence, or NULL if the device
     * can. dtype_missing is for operands of one element type. If a pointer is NULL, no device is excluded.
     * Any thread. */
    const char *(*missing)(const struct mm_device *device);
    const char *(*dtype_missing[MM_DTYPE_COUNT])(const struct mm_device *device);

    /* Functions by element type. A variant supports the types for which it has a function. Variants of the
     * host have `launch`, variants of other devices have `plan`, and `auto` has only `choose`. */
    mm_variant_launch *launch[MM_DTYPE_COUNT];
    mm_variant_plan *plan[MM_DTYPE_COUNT];
    mm_variant_choose *choose[MM_DTYPE_COUNT];

    mm_variant_traffic *traffic; /* NULL if there is no model (gpu/lab/traffic/kernels.h) */
};

#define MM_SOURCES(...) ((const char *const[]){__VA_ARGS__, NULL})

#define MM_EVERY_DTYPE(function) [0 ... MM_DTYPE_COUNT - 1] = function

/* --- Any thread may call these; no pointer may be NULL --------------------------------------------- */

bool mm_variant_has_dtype(const struct mm_variant *variant, enum mm_dtype dtype);

/* Returns MM_DTYPE_BIT of each element type that the variant supports. */
unsigned mm_variant_dtypes(const struct mm_variant *variant);

bool mm_variant_is_auto(const struct mm_variant *variant);

/* Returns the numbers of which m, n and k must be multiples. Each number is at least 1. */
struct mm_multiples mm_variant_multiples(const struct mm_variant *variant, enum mm_dtype dtype);

bool mm_variant_supports_shape(const struct mm_variant *variant, const struct mm_product *product);

/* Returns MM_UNSUPPORTED with the name of the dimension if m, n or k is not a multiple of
 * mm_variant_multiples. */
enum mm_status mm_variant_check_shape(const struct mm_variant *variant, const struct mm_product *product,
                                      struct mm_error *error);

/* Returns MM_BAD_REQUEST if the variant does not offer tiles of this edge. 0 is always accepted, and means
 * the variant's default. */
enum mm_status mm_variant_check_tile(const struct mm_variant *variant, unsigned tile, struct mm_error *error);

/* Returns the variant itself, or for `auto` the variant that `choose` returns. */
const struct mm_variant *mm_variant_resolve(const struct mm_variant *variant, const struct mm_device *device,
                                            const struct mm_product *product);

/* Returns why the device cannot run the variant with operands of this type, or NULL if it can. The caller
 * has checked mm_variant_has_dtype. */
const char *mm_variant_missing(const struct mm_variant *variant, const struct mm_device *device,
                               enum mm_dtype dtype);

/* Returns the arithmetic of the variant, for error bounds. `is_host` is set if the backend is the CPU. */
enum mm_arithmetic mm_variant_arithmetic(const struct mm_variant *variant, bool is_host);

/* Returns MM_DTYPE_BIT of each element type that the variant supports on this device. */
unsigned mm_variant_dtypes_on(const struct mm_variant *variant, const struct mm_device *device);
