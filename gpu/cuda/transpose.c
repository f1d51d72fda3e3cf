/* A transposition's way to its kernel, or to a plain copy where there is nothing to turn. It knows no
 * variant. */
#include "gpu/cuda/transpose.h"

#include "gpu/cuda/device.h"

static enum mm_status copy(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error) {
    if (lane->purpose != MM_CUDA_RUN)
        return MM_OK; /* there is nothing to load, and no kernel to note */
    const cudaError_t code = mm_cuda_copy_matrix(&product->c, &product->a, cudaMemcpyDeviceToDevice, lane);
    if (code != cudaSuccess)
        return mm_cuda_fail(lane->device, code, "copying a to c", error);
    return MM_OK;
}

enum mm_status mm_cuda_transpose(const struct mm_cuda_layout *layout, const struct mm_product *product,
                                 struct mm_lane *lane, struct mm_error *error) {
    return product->transpose_a ? mm_cuda_launch(layout, product, lane, error) : copy(product, lane, error);
}
