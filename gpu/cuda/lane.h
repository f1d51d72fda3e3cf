/* A lane is a CUDA stream with events and a workspace. The functions here plan and launch the kernels of
 * variants on a lane. Of their pointers, only `error` may be NULL. */
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

/* A long job is launched in bands of C's rows, one after another (run.c). Between two bands, kernels of other
 * streams can run, and the job can be cancelled. */
struct mm_cuda_bands {
    struct mm_job *job;        /* NULL if no job runs in bands */
    struct mm_plan plan;       /* the job's plan, or one with less workspace */
    struct mm_product product; /* the whole product, with all matrices in device memory */
    size_t products;           /* products of a stack in one band, if products are not divided */
    size_t rows;               /* rows of C in one band; m if the product is not divided */
    uint64_t seed;             /* random seed of the check */
    void *check;               /* device memory for the check */
    void *figures;             /* device memory for the reduction of C */
    struct mm_error error;     /* why no more bands are launched; MM_OK if none failed */
};

/* Events that are recorded on the lane's stream while a job runs. A span is the time between two marks. */
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
    enum mm_cuda_mark first; /* the running jobs' first mark: BEGUN, or UPLOADED if nothing is copied */
    enum mm_cuda_mark last;  /* the running jobs' last enqueued mark, for which mm_cuda_end waits */
    struct mm_cuda_bands bands;

    /* Results that the device writes to locked host memory, which the lane owns. */
    struct mm_verification *verification;
    struct mm_reduction *reduction;
    struct mm_path *path; /* path of the last product, if its variant has several paths */

    void *workspace; /* device memory for the jobs' matrices, kept between jobs; may be NULL */
    void *scratch;   /* part of `workspace` for one launch (plan.workspace_bytes), aligned to 256 bytes */
    size_t workspace_bytes; /* __atomic access: any thread may read it */
    bool is_busy;           /* jobs are running; __atomic access: any thread may read it */
    void *blas;             /* cuBLAS's handle; NULL until first needed */
};

/* The `launch` function of plans with one kernel of type void(struct mm_product). Launches the kernel over
 * all of C. A grid has at most 65535 blocks in y, so a tall C needs several launches. */
enum mm_status mm_cuda_launch(const struct mm_plan *plan, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error);

/* Returns how many rows of C a band has, or m if the product is not divided. A product is not divided if its
 * forecast is at most 100 ms, if plan->layout.block_rows is 0 (cuBLAS, tensor, fp32_tensor), or if bands
 * would need another plan. So bands do not change the bits of C. */
size_t mm_cuda_band_rows(const struct mm_plan *plan, const struct mm_product *product);

/* Enqueues the layout's kernel over a grid of blocks. `arguments` has pointers to the kernel's arguments. */
enum mm_status mm_cuda_enqueue(const struct mm_layout *layout, dim3 grid, void **arguments,
                               struct mm_lane *lane, struct mm_error *error);

/* Loads the kernel. MM_UNSUPPORTED if a block cannot have the layout's dynamic shared memory. */
enum mm_status mm_cuda_load(const struct mm_layout *layout, struct mm_lane *lane, struct mm_error *error);

/* Loads the kernels that the plan launches for this product. The matrices need no data. */
enum mm_status mm_cuda_prepare(const struct mm_plan *plan, const struct mm_product *product,
                               struct mm_lane *lane, struct mm_error *error);

/* Plans a transposition with the layout's kernel, or a plain copy if transpose_a is false. */
void mm_cuda_plan_transposition(const struct mm_layout *layout, const struct mm_product *product,
                                struct mm_plan *plan);

struct mm_cuda_items;

/* Launches the batch kernel over the first `count` items, and sets the other members of *items. The caller
 * has loaded the kernel. */
enum mm_status mm_cuda_launch_batch(const struct mm_layout *layout, struct mm_cuda_items *items,
                                    unsigned count, unsigned tile, struct mm_lane *lane,
                                    struct mm_error *error);

__END_DECLS

#ifdef __cplusplus
typedef void (*mm_cuda_kernel)(struct mm_product product);

static inline const void *mm_cuda_pick(const mm_cuda_kernel (&kernels)[2][2],
                                       const struct mm_product *product) {
    return (const void *)kernels[product->transpose_a][product->transpose_b];
}
#endif
