/* The one place that launches kernels, and what can be read of a kernel without running it. It knows
 * no variant. */
#include "gpu/cuda/batch.h"
#include "gpu/cuda/device.h"

enum { GRID_Y_MAX = 65535, DIMENSION_MAX = 0x7fffffff };

/* The product that gives C's rows from `row` on, at most `rows` of them. */
static struct mm_product band_of(const struct mm_product *product, size_t row, size_t rows) {
    struct mm_product band = *product;
    band.m = product->m - row < rows ? product->m - row : rows;
    const size_t element_bytes = mm_dtype_bytes(product->a.dtype);
    char *a = band.a.data;
    char *c = band.c.data;
    if (product->transpose_a) {
        band.a.data = a + row * element_bytes;
        band.a.cols = band.m;
    } else {
        band.a.data = a + row * band.a.ld * element_bytes;
        band.a.rows = band.m;
    }
    band.c.data = c + row * band.c.ld * element_bytes;
    band.c.rows = band.m;
    return band;
}

static enum mm_status launch(const void *kernel, const struct mm_cuda_layout *layout, dim3 grid,
                             void **arguments, struct mm_lane *lane, struct mm_error *error) {
    enum { FOLLOWS_FROM = 90 }; /* the compute capability */
    struct cudaLaunchAttribute_st follows = {.id = cudaLaunchAttributeProgrammaticStreamSerialization,
                                             .val.programmaticStreamSerializationAllowed = 1};
    const struct cudaLaunchConfig_st config = {
        .gridDim = grid,
        .blockDim = {layout->threads_x, layout->threads_y, 1},
        .dynamicSmemBytes = layout->dynamic_shared_bytes,
        .stream = lane->stream,
        .attrs = &follows,
        .numAttrs = layout->follows && lane->device->head.compute_capability >= FOLLOWS_FROM,
    };
    const cudaError_t code = cudaLaunchKernelExC(&config, kernel, arguments);
    if (code != cudaSuccess)
        return mm_cuda_fail(lane->device, code, "launching a kernel", error);
    return MM_OK;
}

static enum mm_status run(const struct mm_cuda_layout *layout, const struct mm_product *product,
                          struct mm_lane *lane, struct mm_error *error) {
    const size_t band_rows = (size_t)GRID_Y_MAX * layout->block_rows;
    const size_t columns = (product->n + layout->block_cols - 1) / layout->block_cols;
    for (size_t row = 0; row < product->m; row += band_rows) {
        struct mm_product band = band_of(product, row, band_rows);
        const size_t rows = (band.m + layout->block_rows - 1) / layout->block_rows;
        const dim3 grid = {(unsigned)columns, (unsigned)rows, 1};
        void *arguments[] = {&band};
        const enum mm_status status = launch(layout->kernel, layout, grid, arguments, lane, error);
        if (status != MM_OK)
            return status;
    }
    return MM_OK;
}

/* A kernel has 48 KiB of shared memory unasked, and more only where it opts in: here to all that the device
 * gives a block, so that it is asked for once, whatever later launches of the kernel take. */
static enum mm_status opt_in(const struct mm_cuda_layout *layout, struct mm_lane *lane, size_t static_bytes,
                             struct mm_error *error) {
    const struct mm_device *head = &lane->device->head;
    if (static_bytes + layout->dynamic_shared_bytes > head->shared_bytes_per_block_max)
        return mm_fail(error, MM_UNSUPPORTED,
                       "a block needs %zu bytes of shared memory for this, but %s has at most %zu",
                       static_bytes + layout->dynamic_shared_bytes, head->name,
                       head->shared_bytes_per_block_max);
    const cudaError_t code = cudaFuncSetAttribute(layout->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                  (int)(head->shared_bytes_per_block_max - static_bytes));
    if (code != cudaSuccess)
        return mm_cuda_fail(lane->device, code, "opting in to shared memory", error);
    return MM_OK;
}

/* The CUDA runtime loads a kernel when it is first used; asking for its attributes is a use. They also tell
 * how much dynamic shared memory the kernel may have on the current device by now. */
static enum mm_status load(const struct mm_cuda_layout *layout, struct mm_lane *lane,
                           struct cudaFuncAttributes *attributes, struct mm_error *error) {
    const cudaError_t code = cudaFuncGetAttributes(attributes, layout->kernel);
    if (code != cudaSuccess)
        return mm_cuda_fail(lane->device, code, "loading a kernel", error);
    if (layout->dynamic_shared_bytes > (size_t)attributes->maxDynamicSharedSizeBytes)
        return opt_in(layout, lane, attributes->sharedSizeBytes, error);
    return MM_OK;
}

enum mm_status mm_cuda_judge_dimensions(const struct mm_product *product, struct mm_error *error) {
    if (product->m > DIMENSION_MAX || product->n > DIMENSION_MAX || product->k > DIMENSION_MAX)
        return mm_fail(error, MM_UNSUPPORTED,
                       "a CUDA kernel takes dimensions up to %d, but the product is %zu x %zu x %zu",
                       DIMENSION_MAX, product->m, product->n, product->k);
    return MM_OK;
}

enum mm_status mm_cuda_launch(const struct mm_cuda_layout *layout, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error) {
    struct cudaFuncAttributes ignored;
    const enum mm_status status = mm_cuda_judge_dimensions(product, error);
    if (status != MM_OK)
        return status;
    switch (lane->purpose) {
    case MM_CUDA_DESCRIBE:
        lane->noted = *layout;
        return MM_OK;
    case MM_CUDA_REHEARSE:
        return load(layout, lane, &ignored, error);
    case MM_CUDA_RUN:
        break;
    }
    return run(layout, product, lane, error);
}

enum mm_status mm_cuda_enqueue(const struct mm_cuda_layout *layout, dim3 grid, void **arguments,
                               struct mm_lane *lane, struct mm_error *error) {
    struct cudaFuncAttributes ignored;
    if (lane->purpose == MM_CUDA_REHEARSE)
        return load(layout, lane, &ignored, error);
    if (lane->purpose == MM_CUDA_DESCRIBE)
        return MM_OK;
    return launch(layout->kernel, layout, grid, arguments, lane, error);
}

const struct mm_device *mm_cuda_device_of(const struct mm_lane *lane) {
    return &lane->device->head;
}

enum mm_status mm_cuda_describe(const struct mm_variant *variant, const struct mm_product *product,
                                struct mm_cuda_device *device, struct mm_cuda_layout *layout,
                                struct mm_error *error) {
    struct mm_lane lane = {.device = device, .purpose = MM_CUDA_DESCRIBE}; /* of this call alone */
    const enum mm_status status = variant->launch(product, &lane, error);
    *layout = lane.noted;
    return status;
}

enum mm_status mm_cuda_rehearse_batch(const struct mm_cuda_layout *layout, struct mm_lane *lane,
                                      struct mm_error *error) {
    struct cudaFuncAttributes ignored;
    struct mm_cuda_layout batch = *layout;
    batch.kernel = layout->batch_kernel;
    return load(&batch, lane, &ignored, error);
}

static unsigned larger(unsigned a, unsigned b) {
    return a > b ? a : b;
}

enum mm_status mm_cuda_launch_batch(const struct mm_cuda_layout *layout, struct mm_cuda_items *items,
                                    unsigned count, unsigned tile, struct mm_lane *lane,
                                    struct mm_error *error) {
    void *arguments[] = {items};
    dim3 grid = {0, 0, count};
    for (unsigned index = 0; index < count; index++) {
        const struct mm_cuda_item *item = &items->items[index];
        grid.x = larger(grid.x, (item->n + layout->block_cols - 1) / layout->block_cols);
        grid.y = larger(grid.y, (item->m + layout->block_rows - 1) / layout->block_rows);
    }
    items->block_rows = layout->block_rows;
    items->block_cols = layout->block_cols;
    items->tile = tile;
    return launch(layout->batch_kernel, layout, grid, arguments, lane, error);
}

static enum mm_status read_attributes(struct mm_lane *lane, struct mm_attributes *attributes,
                                      struct mm_error *error) {
    const struct mm_cuda_layout *layout = &lane->noted;
    const unsigned threads = layout->threads_x * layout->threads_y;
    struct cudaFuncAttributes read;
    int blocks = 0;
    const enum mm_status status = load(layout, lane, &read, error);
    if (status != MM_OK)
        return status;
    const cudaError_t code = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &blocks, layout->kernel, (int)threads, layout->dynamic_shared_bytes);
    if (code != cudaSuccess)
        return mm_cuda_fail(lane->device, code, "reading a kernel's occupancy", error);
    *attributes = (struct mm_attributes){
        .threads_per_block = threads,
        .registers_per_thread = (unsigned)read.numRegs,
        .static_shared_bytes = read.sharedSizeBytes,
        .dynamic_shared_bytes = layout->dynamic_shared_bytes,
        .local_bytes = read.localSizeBytes,
        .blocks_per_multiprocessor = (unsigned)blocks,
    };
    return MM_OK;
}

/* The lane is this call's own, so that any thread may ask while the device's lanes work. */
enum mm_status mm_cuda_attributes(struct mm_device *head, const struct mm_variant *variant, unsigned tile,
                                  struct mm_attributes *attributes, struct mm_error *error) {
    struct mm_lane lane = {.device = (struct mm_cuda_device *)head};
    const struct mm_product smallest = {
        .m = 1,
        .n = 1,
        .k = 1,
        .a = mm_matrix_dense(MM_FLOAT32, 1, 1, NULL),
        .b = mm_matrix_dense(MM_FLOAT32, 1, 1, NULL),
        .c = mm_matrix_dense(MM_FLOAT32, 1, 1, NULL),
        .tile = tile,
        .transpose_a = variant->op == MM_TRANSPOSE, /* else it would be a copy, by no kernel of its own */
    };
    enum mm_status status = mm_cuda_use(head, error);
    if (status == MM_OK && variant->launch != NULL)
        status = mm_cuda_describe(variant, &smallest, lane.device, &lane.noted, error);
    if (status != MM_OK)
        return status;
    if (lane.noted.kernel == NULL)
        return mm_fail(error, MM_UNSUPPORTED, "%s has no kernel of our own to read attributes of",
                       variant->name);
    return read_attributes(&lane, attributes, error);
}
