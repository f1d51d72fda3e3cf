/* What one launch runs on, and the one way to launch a kernel. A kernel file includes this and
 * variants.h and needs to know no more of devices. */
#ifndef MM_GPU_CUDA_LANE_H
#define MM_GPU_CUDA_LANE_H

#include "gpu/path.h"
#include "gpu/variant.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mm_cuda_device;
struct mm_verification;

/* How a kernel lies over C: a grid of blocks, columns of C along x and rows along y. */
struct mm_cuda_layout {
    const void *kernel;       /* of type void(struct mm_product), the product passed by value */
    const void *batch_kernel; /* of type void(struct mm_cuda_items): the same for several products, with as
                                 many layers of blocks; NULL: there is none */
    unsigned block_rows;      /* elements of C that one block computes */
    unsigned block_cols;
    unsigned threads_x; /* threads of a block */
    unsigned threads_y;
    bool reads_once;     /* the kernel reads each element of the operands once */
    bool follows;        /* it comes behind another of the same launch, and waits for that one's end by
                            itself (follow.cuh), so that it may begin before */
    unsigned part_depth; /* where there is a batch kernel: the sums of so much of k each are added up, in
                            order; 0: k is one part */
    size_t dynamic_shared_bytes; /* up to what the device gives a block, past 48 KiB too */
    size_t scratch_bytes;        /* device memory beside the matrices that a launch wants */
    size_t scratch_saved_bytes;  /* so many of these it can do without, where there is no more memory */
};

/* What a call of a variant's launch is for. */
enum mm_cuda_purpose {
    MM_CUDA_RUN,      /* to compute C, after a rehearsal of the same launch on this device */
    MM_CUDA_REHEARSE, /* all but that: judges the shape, makes handles, loads the kernel and opts in to the
                       * shared memory that it takes. What a first launch does once is thus in no job's
                       * kernel time. Data may be NULL */
    MM_CUDA_DESCRIBE, /* only to note the layout; the lane has no stream, data is NULL */
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
    enum mm_cuda_purpose purpose;
    cudaStream_t stream;
    cudaEvent_t marks[MM_CUDA_MARKS];
    enum mm_cuda_mark first; /* of the jobs that are under way: UPLOADED, where nothing is copied there */
    enum mm_cuda_mark last;  /* likewise: COMPUTED, where nothing is copied back; VERIFIED, after a check */
    struct mm_verification *verification; /* of the last check; in locked memory of the host, where the device
                                             writes it; owned */
    void *workspace; /* device memory for its jobs' matrices, kept from job to job, only ever exchanged for
                      * more; NULL: none yet */
    struct mm_path *path; /* by which the last result came about, where the variant tells it; in locked memory
                             of the host, where the device writes it too; owned */
    void *scratch;        /* aligned to 256 bytes; valid where the purpose is MM_CUDA_RUN */
    size_t scratch_bytes; /* of it: what the layout wants that the launch describes, or what it saves less */
    size_t workspace_bytes;      /* __atomic where another thread may ask for it */
    bool is_busy;                /* jobs are under way; likewise */
    struct mm_cuda_layout noted; /* the last launch that was described; kernel NULL: none of our own */
    void *blas;                  /* cuBLAS's handle; NULL until first needed */
};

/* Launches the kernel over all of C (or does what the lane's purpose says instead). The grid's y goes
 * to 65535 only, so a tall C is cut into bands of rows, each a product of its own to the kernel.
 * MM_UNSUPPORTED where m, n or k passes 2³¹ − 1, which kernels may rely on, and from a rehearsal where a
 * block takes more shared memory than the device has for one. */
enum mm_status mm_cuda_launch(const struct mm_cuda_layout *layout, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error);

/* One kernel of a launch that is made of several, or whose kernel takes other arguments than the product:
 * enqueues it over the grid of blocks with layout's threads and dynamic shared memory, or rehearses it. Of
 * the layout only these count, and whether it follows. Such a launch asks mm_cuda_judge_dimensions first, and
 * where it is to be described notes the layout of its main kernel itself. */
enum mm_status mm_cuda_enqueue(const struct mm_cuda_layout *layout, dim3 grid, void **arguments,
                               struct mm_lane *lane, struct mm_error *error);

/* MM_UNSUPPORTED where m, n or k passes 2³¹ − 1. */
enum mm_status mm_cuda_judge_dimensions(const struct mm_product *product, struct mm_error *error);

/* What is known of the lane's device. */
const struct mm_device *mm_cuda_device_of(const struct mm_lane *lane);

/* What a variant's launch would launch for this product. layout->kernel is NULL where that is no kernel of
 * our own. Any thread, no device is asked. */
enum mm_status mm_cuda_describe(const struct mm_variant *variant, const struct mm_product *product,
                                struct mm_cuda_device *device, struct mm_cuda_layout *layout,
                                struct mm_error *error);

/* Loads the layout's batch kernel, as a rehearsal does. And launches it over the first `count` items, of
 * which the block's edges and the tile are set here. */
enum mm_status mm_cuda_rehearse_batch(const struct mm_cuda_layout *layout, struct mm_lane *lane,
                                      struct mm_error *error);
struct mm_cuda_items;
enum mm_status mm_cuda_launch_batch(const struct mm_cuda_layout *layout, struct mm_cuda_items *items,
                                    unsigned count, unsigned tile, struct mm_lane *lane,
                                    struct mm_error *error);

#ifdef __cplusplus
}

/* The kernels of a variant, one an orientation: kernels[transpose_a][transpose_b]. */
typedef void (*mm_cuda_kernel)(struct mm_product product);

static inline const void *mm_cuda_pick(const mm_cuda_kernel (&kernels)[2][2],
                                       const struct mm_product *product) {
    return (const void *)kernels[product->transpose_a][product->transpose_b];
}
#endif
#endif
