/* A lane is a CUDA stream with events and a workspace. The functions here plan and launch the kernels of
 * variants on a lane. Pointers must not be NULL, except `error`. */
#pragma once

#include "gpu/product/path.h"
#include "gpu/plan/tiling.h"

#include <cuda_runtime_api.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

struct mm_cuda_device;
struct mm_cuda_slot;
struct mm_job;
struct mm_verification;
struct mm_reduction;

/* A long job is launched band by band (run.c). A band computes some rows of C, or some products of a stack.
 * Between two bands, kernels of other streams can run, and the job can be cancelled. */
struct mm_cuda_bands {
    struct mm_job *job;             /* NULL if no job runs in bands */
    struct mm_product product;      /* the whole product, with all matrices in device memory */
    size_t products;                /* number of products in a band of a stack; used if `rows` is m */
    size_t rows;                    /* number of rows of C in a band; m if a band has all rows */
    struct mm_tiling tiling;        /* rows is 0 if the product does not run in tiles (tiles.h) */
    size_t tile;                    /* number of tiles that are enqueued so far */
    struct mm_cuda_slot *panels[2]; /* slots of A and B of what is being enqueued; NULL if not in panels */
    bool in_panels;                 /* B is copied, and C computed, in panels of columns (panels.h) */
    uint64_t check_ns;              /* time of the checks of tiles so far */
    uint64_t seed;
    void *check;
    void *figures;
    struct mm_error error; /* why no more bands are launched; MM_OK if no launch failed */
};

/* Whether the launches of a job must merge their paths into lane->path. */
static inline bool mm_cuda_merges_paths(const struct mm_cuda_bands *bands) {
    return bands->product.stack != NULL || bands->tiling.rows > 0 || bands->in_panels;
}

/* Points in the run of a job. At each mark, an event is recorded on the lane's stream. A span is the time
 * from one mark to the next. */
enum mm_cuda_mark {
    MM_CUDA_BEGUN,
    MM_CUDA_UPLOADED,
    MM_CUDA_COMPUTED,
    MM_CUDA_DOWNLOADED,
    MM_CUDA_VERIFIED,
    MM_CUDA_MARKS
};

/* One thread at a time may use a lane, and must first make the lane's device current. */
struct mm_lane {
    struct mm_cuda_device *device;
    cudaStream_t stream;
    cudaEvent_t marks[MM_CUDA_MARKS];
    enum mm_cuda_mark first; /* MM_CUDA_BEGUN, or MM_CUDA_UPLOADED if the jobs copy nothing */
    enum mm_cuda_mark last;  /* the latest mark that was enqueued; mm_cuda_end waits for this mark */
    struct mm_cuda_bands bands;

    /* Results. The device writes them to locked host memory, which the lane owns. */
    struct mm_verification *verification;
    struct mm_reduction *reduction;
    struct mm_path *path; /* path of the latest job, if the product's variant has several paths */

    void *workspace; /* device memory for the jobs' matrices, kept between jobs; may be NULL */
    void *scratch;   /* the kernels' part of `workspace`, plan.workspace_bytes long; aligned to 256 bytes */
    size_t workspace_bytes; /* __atomic access only, because other threads read this */
    bool is_busy;           /* jobs are running; __atomic access only, because other threads read this */
    void *blas;             /* cuBLAS's handle; NULL until first needed */
};

/* Launches the plan's kernel, an mm_cuda_kernel, over all of C. plan->launch is this function unless
 * planning replaces it. A grid has at most 65535 blocks in y, so a tall C needs several launches. */
enum mm_status mm_cuda_launch(const struct mm_plan *plan, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error);

/* Launches products of a stack by the layout's batch kernel. A plan->launch_stack function. */
enum mm_status mm_cuda_launch_stack(const struct mm_plan *plan, const struct mm_product *product,
                                    size_t first, size_t count, struct mm_lane *lane, struct mm_error *error);

/* Whether the layout has a batch kernel, and its grid is large enough for the products of this stack. */
bool mm_cuda_can_launch_stack(const struct mm_plan *plan, const struct mm_product *product);

/* Returns how many rows of C a band has. Returns m, so the product is not divided, in these cases:
 * - The forecast of the product is at most 100 ms.
 * - plan->layout.block_rows is 0 (cuBLAS, tensor, fp32_tensor, fp64_tensor).
 * - A band would need another plan, which could change the bits of C. */
size_t mm_cuda_band_rows(const struct mm_plan *plan, const struct mm_product *product);

/* Enqueues the layout's kernel over a grid of blocks. `arguments` is passed to cudaLaunchKernel. */
enum mm_status mm_cuda_enqueue(const struct mm_layout *layout, dim3 grid, void **arguments,
                               struct mm_lane *lane, struct mm_error *error);

/* Loads the layout's kernel. MM_UNSUPPORTED if a block would need too much shared memory. */
enum mm_status mm_cuda_load(const struct mm_layout *layout, struct mm_lane *lane, struct mm_error *error);

/* Loads the kernels that the plan launches for this product. The matrices need no data. */
enum mm_status mm_cuda_prepare(const struct mm_plan *plan, const struct mm_product *product,
                               struct mm_lane *lane, struct mm_error *error);

/* Plans a transposition by the layout's kernel. Plans a plain copy if product->transpose_a is false. */
void mm_cuda_plan_transposition(const struct mm_layout *layout, const struct mm_product *product,
                                struct mm_plan *plan);

struct mm_cuda_items;

/* Launches the layout's batch kernel for the first `count` elements of items->items. The caller has set these
 * elements and loaded the kernel. Sets the other members of *items. */
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
