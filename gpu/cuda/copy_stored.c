/* Copies stored matrices to a device: from host memory, or from the devices that have the parts. */
#include "gpu/cuda/device_copy.h"
#include "gpu/cuda/stream.h"
#include "gpu/store/stored.h"

/* Copies between matrices in the memory of two devices. Copies several rows at once if CUDA allows the row
 * stride. */
static cudaError_t copy_block(const struct mm_device *owner, const struct mm_matrix *to,
                              const struct mm_matrix *from, const struct mm_lane *lane) {
    struct mm_device *device = &lane->device->head;
    const size_t element_bytes = mm_dtype_bytes(to->dtype), row_bytes = to->cols * element_bytes;
    const size_t from_pitch = from->ld * element_bytes, to_pitch = to->ld * element_bytes;
    const struct cudaMemcpy3DPeerParms copy = {.srcPtr = {from->data, from_pitch, row_bytes, to->rows},
                                               .srcDevice = (int)owner->index,
                                               .dstPtr = {to->data, to_pitch, row_bytes, to->rows},
                                               .dstDevice = (int)device->index,
                                               .extent = {row_bytes, to->rows, 1}};
    cudaError_t code = cudaSuccess;
    if (owner == device)
        return mm_cuda_copy_matrix(to, from, cudaMemcpyDeviceToDevice, lane);
    if (to->rows > 1 && from_pitch <= lane->device->pitch_bytes_max)
        code = cudaMemcpy3DPeerAsync(&copy, lane->stream);
    else
        for (size_t row = 0; row < to->rows && code == cudaSuccess; row++)
            code = cudaMemcpyPeerAsync((char *)to->data + row * to_pitch, copy.dstDevice,
                                       (char *)from->data + row * from_pitch, copy.srcDevice, row_bytes,
                                       lane->stream);
    if (code == cudaSuccess)
        __atomic_add_fetch(&device->peer_bytes, to->rows * row_bytes, __ATOMIC_RELAXED);
    return code;
}

cudaError_t mm_cuda_copy_stored_part(const struct mm_stored *value, const struct mm_matrix *to,
                                     const struct mm_matrix *from, const struct mm_lane *lane) {
    const size_t element_bytes = mm_dtype_bytes(to->dtype), row_bytes = to->cols * element_bytes;
    const size_t first = (uintptr_t)from->data - (uintptr_t)value->only_copy->data;
    struct mm_stored_block block = {.part = NULL};
    cudaError_t code = cudaSuccess;
    while (code == cudaSuccess &&
           mm_stored_next_block(value, first, from->ld * element_bytes, to->rows, row_bytes, &block)) {
        const size_t cols = block.row_bytes / element_bytes;
        struct mm_matrix source = *from;
        source.rows = block.rows;
        source.cols = cols;
        source.data = (char *)block.part->data + block.at;
        struct mm_matrix part = mm_matrix_dense(
            to->dtype, block.rows, cols, (char *)to->data + block.row * to->ld * element_bytes + block.byte);
        part.ld = to->ld;
        code = copy_block(block.part->device, &part, &source, lane);
    }
    return code;
}

cudaError_t mm_cuda_copy_stored(const struct mm_stored *value, size_t first, size_t bytes, void *to,
                                const struct mm_lane *lane) {
    const struct mm_matrix row = mm_matrix_dense(MM_UINT8, 1, bytes, to);
    struct mm_matrix from = row;
    if (value->only_copy == NULL)
        return cudaMemcpyAsync(to, (char *)value->data + first, bytes, cudaMemcpyHostToDevice, lane->stream);
    from.data = (char *)value->only_copy->data + first;
    return mm_cuda_copy_stored_part(value, &row, &from, lane);
}
