/* Copies matrices between host and device and on the device, or generates them there. Plans transpositions
 * that only copy. */
#include "gpu/cuda/batch.h"
#include "gpu/cuda/device.h"
#include "gpu/cuda/stream.h"

cudaError_t mm_cuda_copy_matrix(const struct mm_matrix *to, const struct mm_matrix *from,
                                enum cudaMemcpyKind kind, const struct mm_lane *lane) {
    const size_t element_bytes = mm_dtype_bytes(from->dtype);
    const size_t row_bytes = from->cols * element_bytes;
    const size_t to_pitch = to->ld * element_bytes;
    const size_t from_pitch = from->ld * element_bytes;
    const size_t pitch_max = lane->device->pitch_bytes_max;
    if (from->rows == 0 || from->cols == 0)
        return cudaSuccess;
    if (from->rows == 1 || (to_pitch == row_bytes && from_pitch == row_bytes))
        return cudaMemcpyAsync(to->data, from->data, from->rows * row_bytes, kind, lane->stream);
    if (to_pitch <= pitch_max && from_pitch <= pitch_max)
        return cudaMemcpy2DAsync(to->data, to_pitch, from->data, from_pitch, row_bytes, from->rows, kind,
                                 lane->stream);
    cudaError_t code = cudaSuccess;
    for (size_t row = 0; row < from->rows && code == cudaSuccess; row++)
        code = cudaMemcpyAsync((char *)to->data + row * to_pitch, (const char *)from->data + row * from_pitch,
                               row_bytes, kind, lane->stream);
    return code;
}

/* If CUDA allows the row stride, copies the whole stack in one call. Otherwise copies each matrix alone. */
cudaError_t mm_cuda_copy_part(void *to, void *from, enum mm_dtype dtype, const struct mm_window *part,
                              const struct mm_lane *lane) {
    const size_t row_bytes = part->cols * mm_dtype_bytes(dtype);
    const size_t from_pitch = part->all_cols * mm_dtype_bytes(dtype);
    const struct mm_matrix first = mm_window_item(part, dtype, from, 0);
    const struct cudaMemcpy3DParms copy = {.srcPtr = {first.data, from_pitch, from_pitch, part->all_rows},
                                           .dstPtr = {to, row_bytes, row_bytes, part->rows},
                                           .extent = {row_bytes, part->rows, part->count},
                                           .kind = cudaMemcpyDeviceToHost};
    cudaError_t code = cudaSuccess;
    if (mm_window_elements(part) == 0)
        return cudaSuccess;
    if (part->count > 1 && from_pitch <= lane->device->pitch_bytes_max)
        return cudaMemcpy3DAsync(&copy, lane->stream);
    for (size_t index = 0; index < part->count && code == cudaSuccess; index++) {
        const struct mm_matrix item = mm_window_item(part, dtype, from, index);
        struct mm_matrix copied =
            mm_matrix_dense(dtype, part->rows, part->cols, (char *)to + index * part->rows * row_bytes);
        copied.ld = mm_window_to_ld(part);
        code = mm_cuda_copy_matrix(&copied, &item, cudaMemcpyDeviceToHost, lane);
    }
    return code;
}

cudaError_t mm_cuda_generate_operand(const struct mm_source *source, const struct mm_matrix *to,
                                     const struct mm_lane *lane) {
    struct mm_cuda_generated generated = {.count = 0};
    mm_cuda_add_generated(&generated, source, to, to->data);
    return to->rows * to->cols == 0 ? cudaSuccess
                                    : mm_cuda_generate(&generated, to->dtype, lane->device, lane->stream);
}

static enum mm_status copy(const struct mm_plan *plan, const struct mm_product *product, struct mm_lane *lane,
                           struct mm_error *error) {
    const cudaError_t code = mm_cuda_copy_matrix(&product->c, &product->a, cudaMemcpyDeviceToDevice, lane);
    return mm_cuda_status(lane->device, code, "copying a to c", error);
}

void mm_cuda_plan_transposition(const struct mm_layout *layout, const struct mm_product *product,
                                struct mm_plan *plan) {
    if (product->transpose_a)
        plan->layout = *layout;
    else
        plan->launch = copy;
}
