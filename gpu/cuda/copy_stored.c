/* Copies stored matrices to a device: from host memory, or from the devices that have the parts. */
#include "gpu/cuda/device_copy.h"
#include "gpu/cuda/stream.h"
#include "gpu/store/stored.h"

cudaError_t mm_cuda_copy_stored(const struct mm_stored *value, size_t first, size_t bytes, void *to,
                                const struct mm_lane *lane) {
    struct mm_device *device = &lane->device->head;
    struct mm_stored_block block = {.part = NULL};
    cudaError_t code = cudaSuccess;
    if (value->only_copy == NULL)
        return cudaMemcpyAsync(to, (char *)value->data + first, bytes, cudaMemcpyHostToDevice, lane->stream);
    while (code == cudaSuccess && mm_stored_next_block(value, first, bytes, 1, bytes, &block)) {
        const struct mm_device *owner = block.part->device;
        char *at = (char *)to + block.byte;
        const char *from = (const char *)block.part->data + block.at;
        code = owner == device
                   ? cudaMemcpyAsync(at, from, block.row_bytes, cudaMemcpyDeviceToDevice, lane->stream)
                   : cudaMemcpyPeerAsync(at, (int)device->index, from, (int)owner->index, block.row_bytes,
                                         lane->stream);
        if (code == cudaSuccess && owner != device)
            __atomic_add_fetch(&device->peer_bytes, block.row_bytes, __ATOMIC_RELAXED);
    }
    return code;
}

/* Copies between matrices in the memory of two devices. Copies row by row if CUDA does not allow the row
 * stride. */
static cudaError_t copy_block(const struct mm_device *owner, const struct mm_matrix *to,
                              const struct mm_matrix *from, const struct mm_lane *lane) {
    struct mm_device *device = &lane->device->head;
    const size_t element_bytes = mm_dtype_bytes(to->dtype), row_bytes = to->cols * element_bytes;
    const size_t from_pitch = from->ld * element_bytes, to_pitch = to->ld * element_bytes;
    const size_t rows = from_pitch <= lane->device->pitch_bytes_max ? to->rows : 1;
    cudaError_t code = cudaSuccess;
    if (owner == device)
        return mm_cuda_copy_matrix(to, from, cudaMemcpyDeviceToDevice, lane);
    for (size_t row = 0; row < to->rows && code == cudaSuccess; row += rows) {
        const struct cudaMemcpy3DPeerParms copy = {
            .srcPtr = {(char *)from->data + row * from_pitch, rows > 1 ? from_pitch : row_bytes, row_bytes,
                       rows},
            .srcDevice = (int)owner->index,
            .dstPtr = {(char *)to->data + row * to_pitch, rows > 1 ? to_pitch : row_bytes, row_bytes, rows},
            .dstDevice = (int)device->index,
            .extent = {row_bytes, rows, 1}};
        code = cudaMemcpy3DPeerAsync(&copy, lane->stream);
    }
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
