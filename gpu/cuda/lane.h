/* A lane: a CUDA stream, with the events and the workspace of the jobs on it; and the one way to launch a
 * kernel. A kernel file includes this and variants.h, and needs no other header of devices. No pointer but
 * `error` may be NULL. */
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

/* A job that is launched in bands of C's rows. Each band is launched once the band before is over, so other
 * streams get their turn in between, and the job can be cancelled (run.c). */
struct mm_cuda_bands {
    struct mm_job *job;        /* NULL: none is under way */
    struct mm_plan plan;       /* the job's, or a frugal one */
    struct mm_product product; /* all of it, in device memory */
    size_t products;           /* in a band, if the products of a stack are not cut */
    size_t rows;               /* in a band; m: the product is not cut */
    uint64_t seed;             /* of the check */
    void *check;               /* memory for the check */
    void *figures;             /* memory for the reduction */
    struct mm_error error;     /* why the other bands are not launched */
};

/* Points in time of a job, as events on the lane's stream. A span is the time between two of them. */
enum mm_cuda_mark {
    MM_CUDA_BEGUN,
    MM_CUDA_UPLOADED,
    MM_CUDA_COMPUTED,
    MM_CUDA_DOWNLOADED,
    MM_CUDA_VERIFIED,
    MM_CUDA_MARKS
};

/* One thread at a time uses a lane, while the lane's device is current. */
struct mm_lane {
    struct mm_cuda_device *device;
    cudaStream_t stream;
    cudaEvent_t marks[MM_CUDA_MARKS];
    enum mm_cuda_mark first; /* of the jobs under way: BEGUN, or UPLOADED if nothing is copied */
    enum mm_cuda_mark last;  /* the last mark enqueued for the jobs under way; end waits for it */
    struct mm_cuda_bands bands;

    /* Owned, in locked host memory, where the device writes them. */
    struct mm_verification *verification; /* of the last check */
    struct mm_reduction *reduction;       /* of the last job that reduces C */
    struct mm_path *path;                 /* of the last result, if its variant has several paths */

    void *workspace; /* device memory for the jobs' matrices, kept from job to job unless it is large; dropped
                        if memory is short; NULL: none */
    void *scratch;   /* the part of it for a plan's launch (plan.workspace_bytes), aligned to 256 bytes; valid
                        during the launch */
    size_t workspace_bytes; /* __atomic access: any thread may read it */
    bool is_busy;           /* jobs are under way; __atomic access: any thread may read it */
    void *blas;             /* cuBLAS's handle; NULL until first needed */
};

/* The `launch` of plans with one kernel of type void(struct mm_product): launches it over all of C, by
 * plan->layout. The grid's y ends at 65535, so a tall C is cut into bands of rows, each of which is a product
 * of its own to the kernel. */
enum mm_status mm_cuda_launch(const struct mm_plan *plan, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error);

/* How many rows of C a band has. m, so the product is not cut, if it takes less than 100 ms by the device's
 * rates, if plan->layout.block_rows is 0 (the launch is a library's, or tensor's or fp32_tensor's), or if no
 * smaller number of rows keeps the plan. A band has the kernel and the splits of k of the whole product, so
 * the result has the same bits. Of a stack, this is for one product. */
size_t mm_cuda_band_rows(const struct mm_plan *plan, const struct mm_product *product);

/* Enqueues one kernel over a grid of blocks with these arguments, for launches of several kernels. Uses the
 * layout's kernel, threads, dynamic shared memory and `follows`. */
enum mm_status mm_cuda_enqueue(const struct mm_layout *layout, dim3 grid, void **arguments,
                               struct mm_lane *lane, struct mm_error *error);

/* Loads the layout's kernel, and lets it use the layout's dynamic shared memory: MM_UNSUPPORTED if the device
 * has less. */
enum mm_status mm_cuda_load(const struct mm_layout *layout, struct mm_lane *lane, struct mm_error *error);

/* Loads the kernels that the plan launches for this product, whose data may be NULL. */
enum mm_status mm_cuda_prepare(const struct mm_plan *plan, const struct mm_product *product,
                               struct mm_lane *lane, struct mm_error *error);

/* Plans a transposition by the layout's kernel. Without transpose_a the elements of A already lie as those of
 * C: then the plan is a plain copy on the device, whatever the variant. */
void mm_cuda_plan_transposition(const struct mm_layout *layout, const struct mm_product *product,
                                struct mm_plan *plan);

/* Launches the layout's batch kernel, which is loaded, over the first `count` items. Sets the block's edges
 * and the tile in *items. */
struct mm_cuda_items;
enum mm_status mm_cuda_launch_batch(const struct mm_layout *layout, struct mm_cuda_items *items,
                                    unsigned count, unsigned tile, struct mm_lane *lane,
                                    struct mm_error *error);

__END_DECLS

#ifdef __cplusplus
/* The kernels of a variant, one for each orientation: kernels[transpose_a][transpose_b]. */
typedef void (*mm_cuda_kernel)(struct mm_product product);

static inline const void *mm_cuda_pick(const mm_cuda_kernel (&kernels)[2][2],
                                       const struct mm_product *product) {
    return (const void *)kernels[product->transpose_a][product->transpose_b];
}
#endif
