/* Launches kernels of any variant, and reads their attributes. */
#include "gpu/cuda/batch.h"
#include "gpu/cuda/device.h"
#include "gpu/cuda/variants/finish.h"

enum { GRID_Y_MAX = 65535, GRID_Z_MAX = 65535, DIMENSION_MAX = 0x7fffffff };

enum mm_status mm_cuda_enqueue(const struct mm_layout *layout, dim3 grid, void **arguments,
                               struct mm_lane *lane, struct mm_error *error) {
    enum { FOLLOWS_FROM = 90 }; /* the first compute capability with programmatic dependent launch */
    struct cudaLaunchAttribute_st follows = {.id = cudaLaunchAttributeProgrammaticStreamSerialization,
                                             .val.programmaticStreamSerializationAllowed = 1};
    const bool may_follow = layout->follows && lane->device->head.compute_capability >= FOLLOWS_FROM;
    const struct cudaLaunchConfig_st config = {
        .gridDim = grid,
        .blockDim = {layout->threads_x, layout->threads_y, 1},
        .dynamicSmemBytes = layout->dynamic_shared_bytes,
        .stream = lane->stream,
        .attrs = &follows,
        .numAttrs = may_follow,
    };
    const cudaError_t code = cudaLaunchKernelExC(&config, layout->kernel, arguments);
    return mm_cuda_status(lane->device, code, "launching a kernel", error);
}

/* Allows a kernel to have the most shared memory of the device. Without this, CUDA allows only 48 KiB. */
static enum mm_status opt_in(const struct mm_layout *layout, struct mm_lane *lane, size_t static_bytes,
                             struct mm_error *error) {
    const struct mm_device *head = &lane->device->head;
    if (static_bytes + layout->dynamic_shared_bytes > head->shared_bytes_per_block_max)
        return mm_fail(error, MM_UNSUPPORTED,
                       "a block needs %zu bytes of shared memory for this, but %s has at most %zu",
                       static_bytes + layout->dynamic_shared_bytes, head->name,
                       head->shared_bytes_per_block_max);
    const cudaError_t code = cudaFuncSetAttribute(layout->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                  (int)(head->shared_bytes_per_block_max - static_bytes));
    return mm_cuda_status(lane->device, code, "opting in to shared memory", error);
}

/* Reads the kernel's attributes. This makes the CUDA runtime load the kernel. */
static enum mm_status load(const struct mm_layout *layout, struct mm_lane *lane,
                           struct cudaFuncAttributes *attributes, struct mm_error *error) {
    const cudaError_t code = cudaFuncGetAttributes(attributes, layout->kernel);
    if (code != cudaSuccess)
        return mm_cuda_status(lane->device, code, "loading a kernel", error);
    if (layout->dynamic_shared_bytes > (size_t)attributes->maxDynamicSharedSizeBytes)
        return opt_in(layout, lane, attributes->sharedSizeBytes, error);
    return MM_OK;
}

enum mm_status mm_cuda_load(const struct mm_layout *layout, struct mm_lane *lane, struct mm_error *error) {
    struct cudaFuncAttributes ignored;
    return load(layout, lane, &ignored, error);
}

static struct mm_cuda_items items_of(const struct mm_plan *plan, const struct mm_product *product) {
    const struct mm_stack *stack = product->stack;
    const struct mm_product first = mm_product_item(product, 0);
    const size_t a_bytes = mm_matrix_bytes(&first.a), b_bytes = mm_matrix_bytes(&first.b);
    struct mm_cuda_items items = {.stack = {.rank = stack->rank, .c_step = mm_matrix_bytes(&first.c)}};
    items.items[0] = mm_cuda_item_for(&first, plan->layout.split_depth);
    for (unsigned dim = 0; dim < stack->rank; dim++) {
        items.stack.dims[dim] = stack->dims[dim];
        items.stack.a_steps[dim] = stack->a_steps[dim] * a_bytes;
        items.stack.b_steps[dim] = stack->b_steps[dim] * b_bytes;
    }
    return items;
}

bool mm_cuda_can_launch_stack(const struct mm_plan *plan, const struct mm_product *product) {
    return plan->layout.batch_kernel != NULL &&
           mm_size_divide_up(product->m, plan->layout.block_rows) <= GRID_Y_MAX;
}

/* Launches the batch kernel for products of a stack. Each layer of the grid (blockIdx.z) computes one
 * product. A grid has at most 65535 layers, so this can need several launches. */
enum mm_status mm_cuda_launch_stack(const struct mm_plan *plan, const struct mm_product *product,
                                    size_t first, size_t count, struct mm_lane *lane,
                                    struct mm_error *error) {
    struct mm_layout layout = plan->layout;
    struct mm_cuda_items items = items_of(plan, product);
    void *arguments[] = {&items};
    const size_t rows = mm_size_divide_up(product->m, layout.block_rows);
    enum mm_status status = MM_OK;
    layout.kernel = layout.batch_kernel;
    items.block_rows = layout.block_rows;
    items.block_cols = layout.block_cols;
    items.tile = product->tile != 0 ? product->tile : plan->variant->tile;
    for (size_t done = 0; done < count && status == MM_OK; done += GRID_Z_MAX) {
        const dim3 grid = {(unsigned)mm_size_divide_up(product->n, layout.block_cols), (unsigned)rows,
                           (unsigned)mm_size_min(count - done, GRID_Z_MAX)};
        items.stack.first = first + done;
        status = mm_cuda_enqueue(&layout, grid, arguments, lane, error);
    }
    return status;
}

enum mm_status mm_cuda_prepare(const struct mm_plan *plan, const struct mm_product *product,
                               struct mm_lane *lane, struct mm_error *error) {
    struct mm_layout batch = plan->layout;
    enum mm_status status = MM_OK;
    batch.kernel = batch.batch_kernel;
    if (product->stack != NULL && plan->launch_stack != NULL && batch.kernel != NULL)
        status = mm_cuda_load(&batch, lane, error); /* bands of rows need the kernel below as well */
    if (status == MM_OK && plan->prepare != NULL)
        status = plan->prepare(plan, product, lane, error);
    else if (status == MM_OK && plan->layout.kernel != NULL)
        status = mm_cuda_load(&plan->layout, lane, error);
    return status;
}

/* Whether the variant's kernel writes elements of C's type. */
static bool suits_c(const struct mm_variant *variant, const struct mm_product *product) {
    return variant->op != MM_MATMUL || variant->converts ||
           product->c.dtype == mm_dtype_result(product->a.dtype);
}

/* Limits the dimensions, because kernels count rows and columns in 32 bits. */
enum mm_status mm_cuda_plan(const struct mm_product *product, struct mm_plan *plan, struct mm_error *error) {
    if (product->m > DIMENSION_MAX || product->n > DIMENSION_MAX || product->k > DIMENSION_MAX)
        return mm_fail(error, MM_UNSUPPORTED,
                       "a CUDA kernel supports dimensions up to %d, but the product is %zu x %zu x %zu",
                       DIMENSION_MAX, product->m, product->n, product->k);
    if (!suits_c(plan->variant, product))
        return mm_fail_field(
            error, MM_UNSUPPORTED, "variant",
            "%s gives products of %s in %s, but result_dtype is %s; choose naive, tiled_16 or tiled_32",
            plan->variant->name, mm_dtype_name(product->a.dtype),
            mm_dtype_name(mm_dtype_result(product->a.dtype)), mm_dtype_name(product->c.dtype));
    plan->launch = mm_cuda_launch;
    mm_variant_plan *const plan_product = plan->variant->plan[product->a.dtype];
    const enum mm_status status = plan_product(product, plan, error);
    if (status == MM_OK && product->epilogue.is_set && !plan->finishes)
        return mm_cuda_plan_finish(plan_product, product, plan, error);
    if (plan->launch_stack == NULL && mm_cuda_can_launch_stack(plan, product))
        plan->launch_stack = mm_cuda_launch_stack;
    return status;
}

enum mm_status mm_cuda_launch(const struct mm_plan *plan, const struct mm_product *product,
                              struct mm_lane *lane, struct mm_error *error) {
    const struct mm_layout *layout = &plan->layout;
    const size_t band_rows = (size_t)GRID_Y_MAX * layout->block_rows;
    const size_t columns = mm_size_divide_up(product->n, layout->block_cols);
    for (size_t row = 0; row < product->m; row += band_rows) {
        const size_t left = product->m - row;
        struct mm_product band = mm_product_part(product, MM_MATMUL, row, left < band_rows ? left : band_rows,
                                                 0, product->n); /* all columns, so the op does not matter */
        band.tile = product->tile != 0 ? product->tile : plan->variant->tile;
        const size_t rows = mm_size_divide_up(band.m, layout->block_rows);
        const dim3 grid = {(unsigned)columns, (unsigned)rows, 1};
        void *arguments[] = {&band};
        const enum mm_status status = mm_cuda_enqueue(layout, grid, arguments, lane, error);
        if (status != MM_OK)
            return status;
    }
    return MM_OK;
}

enum mm_status mm_cuda_launch_batch(const struct mm_layout *layout, struct mm_cuda_items *items,
                                    unsigned count, unsigned tile, struct mm_lane *lane,
                                    struct mm_error *error) {
    struct mm_layout batch = *layout;
    void *arguments[] = {items};
    dim3 grid = {0, 0, count};
    batch.kernel = layout->batch_kernel;
    for (unsigned index = 0; index < count; index++) {
        const unsigned cols = (unsigned)mm_size_divide_up(items->items[index].n, layout->block_cols);
        const unsigned rows = (unsigned)mm_size_divide_up(items->items[index].m, layout->block_rows);
        grid.x = cols > grid.x ? cols : grid.x;
        grid.y = rows > grid.y ? rows : grid.y;
    }
    items->stack.rank = 0;
    items->block_rows = layout->block_rows;
    items->block_cols = layout->block_cols;
    items->tile = tile;
    return mm_cuda_enqueue(&batch, grid, arguments, lane, error);
}

static enum mm_status read_attributes(const struct mm_layout *layout, struct mm_lane *lane,
                                      struct mm_attributes *attributes, struct mm_error *error) {
    const unsigned threads = layout->threads_x * layout->threads_y;
    struct cudaFuncAttributes read;
    int blocks = 0;
    const enum mm_status status = load(layout, lane, &read, error);
    if (status != MM_OK)
        return status;
    const cudaError_t code = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &blocks, layout->kernel, (int)threads, layout->dynamic_shared_bytes);
    if (code != cudaSuccess)
        return mm_cuda_status(lane->device, code, "reading a kernel's occupancy", error);
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

/* Any thread may call this function, because it uses none of the device's lanes. */
enum mm_status mm_cuda_attributes(struct mm_device *head, const struct mm_plan *plan,
                                  struct mm_attributes *attributes, struct mm_error *error) {
    struct mm_lane lane = {.device = (struct mm_cuda_device *)head};
    if (plan->layout.kernel == NULL)
        return mm_fail(error, MM_UNSUPPORTED, "%s has no kernel of our own to read attributes of",
                       plan->variant->name);
    const enum mm_status status = mm_cuda_use(head, error);
    return status == MM_OK ? read_attributes(&plan->layout, &lane, attributes, error) : status;
}
