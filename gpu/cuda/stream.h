/* What is enqueued on a lane's stream beside the kernels of variants. The thread that uses the lane calls
 * these functions, while the lane's device is current. No pointer may be NULL unless it says so. A returned
 * cudaError_t is CUDA's, for mm_cuda_status. */
#pragma once

#include "gpu/cuda/device.h"

__BEGIN_DECLS

/* Records the event of a mark on the lane's stream. */
cudaError_t mm_cuda_mark(struct mm_lane *lane, enum mm_cuda_mark point);

/* Sets *span_ns to the nanoseconds from one mark to the next mark. Both are over. */
cudaError_t mm_cuda_span(const struct mm_lane *lane, enum mm_cuda_mark from, uint64_t *span_ns);

/* Bytes of device memory for the check of a product. */
size_t mm_cuda_verify_bytes(const struct mm_product *product);

/* Enqueues the check of `count` products of a stack, from `first` on, that the lane's stream has computed.
 * All matrices and `memory` (mm_cuda_verify_bytes, aligned to 256 bytes) are in device memory; m and n are
 * not 0. Once the stream is through, lane->verification has the result of these products and of those before
 * `first`. */
enum mm_status mm_cuda_verify(const struct mm_product *product, enum mm_arithmetic arithmetic, size_t first,
                              size_t count, uint64_t seed, void *memory, struct mm_lane *lane,
                              struct mm_error *error);

/* Bytes of device memory for a reduction. */
size_t mm_cuda_reduce_bytes(void);

/* Enqueues the reduction of a part of C. C and `memory` (mm_cuda_reduce_bytes, aligned to 256 bytes) are in
 * device memory. Once the stream is through, lane->reduction has the result. */
enum mm_status mm_cuda_reduce(const struct mm_matrix *c, const struct mm_window *part, void *memory,
                              struct mm_lane *lane, struct mm_error *error);

/* Enqueues a copy of a part of the stack at `from` in device memory to `to` in host memory, where the part
 * lies dense. */
cudaError_t mm_cuda_copy_part(void *to, void *from, enum mm_dtype dtype, const struct mm_window *part,
                              const struct mm_lane *lane);

/* Enqueues a copy of a matrix. Both matrices have one shape and type; their leading dimensions may differ. */
cudaError_t mm_cuda_copy_matrix(const struct mm_matrix *to, const struct mm_matrix *from,
                                enum cudaMemcpyKind kind, const struct mm_lane *lane);

/* Makes a gate, which the caller owns. */
cudaError_t mm_cuda_gate_make(struct mm_cuda_gate **gate);

/* Frees a gate. NULL is allowed. */
void mm_cuda_gate_free(struct mm_cuda_gate *gate);

/* Enqueues the closed gate: the stream waits there until the gate is opened, or for two milliseconds at most.
 */
cudaError_t mm_cuda_gate_close(struct mm_cuda_gate *gate, cudaStream_t stream);

/* Opens the gate. */
void mm_cuda_gate_open(struct mm_cuda_gate *gate);

/* Whether the stream, which was waited for, went on before the gate was opened. */
bool mm_cuda_gate_timed_out(const struct mm_cuda_gate *gate);

__END_DECLS
