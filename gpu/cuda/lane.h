/* What one launch runs on, and the one way to launch a kernel. A kernel file includes this and
 * variants.h and needs to know no more of devices. */
#pragma once

#include "gpu/product/path.h"
#include "gpu/plan/plan.h"

#include <cuda_runtime_api.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

struct mm_cuda_device;
struct mm_job;
struct mm_verification;
struct mm_reduction;
struct mm_device_copy;

/* A job launched in bands of C's rows, each once the one before is over: between two, other streams get
 * their turn, and it can be cancelled (run.c). */
struct mm_cuda_bands {
    struct mm_job *job;        /* NULL: none is under way */
    struct mm_plan plan;       /* the job's, or a frugal one */
    struct mm_product product; /* of all of C, in the device's memory */
    size_t products;           /* of a band, of a stack whose products are not cut */
    size_t rows;               /* of a band; m: the product is not cut */
    uint64_t seed;             /* of the check */
    void *check;               /* the memory of its check, behind the matrices */
    void *figures;             /* that of its reduction, behind the check's */
    struct mm_error error;     /* why the rest is not launched */
};

/* Points in a job's time, as events on the lane's stream; its spans lie between them. */
enum mm_cuda_mark {
    MM_CUDA_BEGUN,
    MM_CUDA_UPLOADED,
    MM_CUDA_COMPUTED,
    MM_CUDA_DOWNLOADED,
    MM_CUDA_VERIFIED,
    MM_CUDA_MARKS
};

/* One stream with what belongs to it. Used by one thread at a time, while its device is current. */
struct mm_lane {
    struct mm_cuda_device *device;
    cudaStream_t stream;
    cudaEvent_t marks[MM_CUDA_MARKS];
    enum mm_cuda_mark first; /* of the jobs that are under way: UPLOADED, where nothing is copied there */
    enum mm_cuda_mark last;  /* of the jobs that are under way: COMPUTED if nothing is copied back, or bands
                                are left; VERIFIED after a check */
    struct mm_cuda_bands bands;
    struct mm_verification *verification; /* of the last check; in locked memory of the host, where the device
                                             writes it; owned */
    struct mm_reduction *reduction;       /* of the last job that reduces; in locked memory
                                             of the host, where the device writes it; owned */
    void *workspace; /* device memory for its jobs' matrices, kept from job to job unless it is large, and
                      * dropped where memory is short; NULL: none */
    struct mm_path *path; /* by which the last result came about, where the variant tells it; in locked memory
                             of the host, where the device writes it too; owned */
    void *scratch; /* what the plan at hand has as workspace, aligned to 256 bytes; valid during its launch */
    size_t workspace_bytes; /* __atomic access: other threads may ask for it */
    bool is_busy;           /* jobs are under way; __atomic access: other threads may ask for it */
    void *blas;             /* cuBLAS's handle; NULL until first needed */
};

/* The plan's launch for a variant that is one kernel of type void(struct mm_product): over all of C, by
 * plan->layout. The grid's y ends at 65535, so a tall C is cut into bands of rows, each a product of its
 * own to the kernel. */
enum mm_status mm_cuda_launch(const struct mm_plan *plan, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error);

/* The rows of the bands in which a product, or one of a stack, is launched: all if it takes less than 100 ms
 * by the device's rates, or if blocks are not laid over C (plan->layout.block_rows is 0: a library's,
 * fp32_tensor's, tensor's). A band has the same kernel and splits of k as all of C, so the result has the
 * same bits. `product` is in device memory. */
size_t mm_cuda_band_rows(const struct mm_plan *plan, const struct mm_product *product);

/* Enqueues one kernel over the grid of blocks, for launches of several kernels or of other arguments. Of
 * the layout only the kernel, its threads, dynamic shared memory and `follows` count. */
enum mm_status mm_cuda_enqueue(const struct mm_layout *layout, dim3 grid, void **arguments,
                               struct mm_lane *lane, struct mm_error *error);

/* Loads the layout's kernel, and allows it the dynamic shared memory of the layout: MM_UNSUPPORTED if the
 * device has less. */
enum mm_status mm_cuda_load(const struct mm_layout *layout, struct mm_lane *lane, struct mm_error *error);

/* Loads what the plan launches for this product, whose data may be NULL. */
enum mm_status mm_cuda_prepare(const struct mm_plan *plan, const struct mm_product *product,
                               struct mm_lane *lane, struct mm_error *error);

/* Plans a transposition by the layout's kernel. Without the product's flag A lies there column by column,
 * which is C already: then it is the runtime's plain copy on the device, whatever the variant. */
void mm_cuda_plan_transposition(const struct mm_layout *layout, const struct mm_product *product,
                                struct mm_plan *plan);

/* Launches the plan's batch kernel, which is loaded, over the first `count` items; sets the block's edges and
 * the tile in *items. */
struct mm_cuda_items;
enum mm_status mm_cuda_launch_batch(const struct mm_layout *layout, struct mm_cuda_items *items,
                                    unsigned count, unsigned tile, struct mm_lane *lane,
                                    struct mm_error *error);

__END_DECLS

#ifdef __cplusplus
/* The kernels of a variant, one an orientation: kernels[transpose_a][transpose_b]. */
typedef void (*mm_cuda_kernel)(struct mm_product product);

static inline const void *mm_cuda_pick(const mm_cuda_kernel (&kernels)[2][2],
                                       const struct mm_product *product) {
    return (const void *)kernels[product->transpose_a][product->transpose_b];
}
#endif
