/* What is enqueued on a lane's stream beside the kernels of variants. For the thread that uses the lane,
 * while its device is current. No pointer may be NULL unless it says so. A function that returns cudaError_t
 * passes on what CUDA said; mm_cuda_status makes a sentence of it. */
#pragma once

#include "gpu/cuda/device.h"

__BEGIN_DECLS

/* Enqueues a mark on the lane's stream. */
cudaError_t mm_cuda_mark(struct mm_lane *lane, enum mm_cuda_mark point);

/* Nanoseconds from one mark to the next, once both are over. */
cudaError_t mm_cuda_span(const struct mm_lane *lane, enum mm_cuda_mark from, uint64_t *span_ns);

/* Enqueues the check of `count` products that the lane's stream has computed, from `first` on, with all
 * matrices in device memory and `memory` of mm_cuda_verify_bytes there, aligned to 256 bytes. Its result, of
 * these and of those before them, is in lane->verification once the stream is through. m and n are not 0. */
size_t mm_cuda_verify_bytes(const struct mm_product *product);
enum mm_status mm_cuda_verify(const struct mm_product *product, enum mm_arithmetic arithmetic, size_t first,
                              size_t count, uint64_t seed, void *memory, struct mm_lane *lane,
                              struct mm_error *error);

/* Enqueues the reduction of a part of C, which is in device memory, as `memory` of mm_cuda_reduce_bytes is,
 * aligned to 256 bytes. Its result is in lane->reduction once the stream is through. */
size_t mm_cuda_reduce_bytes(void);
enum mm_status mm_cuda_reduce(const struct mm_matrix *c, const struct mm_window *part, void *memory,
                              struct mm_lane *lane, struct mm_error *error);

/* Enqueues a copy of the part of a stack that begins at `from` in device memory, to `to` on the host, where
 * it lies dense. */
cudaError_t mm_cuda_copy_part(void *to, void *from, enum mm_dtype dtype, const struct mm_window *part,
                              const struct mm_lane *lane);

/* Enqueues a copy of all elements; both matrices have one shape and type, and either may have longer rows. */
cudaError_t mm_cuda_copy_matrix(const struct mm_matrix *to, const struct mm_matrix *from,
                                enum cudaMemcpyKind kind, const struct mm_lane *lane);

/* A gate in a stream. close enqueues it shut; open lets pass what was enqueued behind it. It opens by
 * itself after some milliseconds, and gave_up says so once the stream was waited for. The current device
 * is the stream's. free takes NULL. */
cudaError_t mm_cuda_gate_make(struct mm_cuda_gate **gate);
void mm_cuda_gate_free(struct mm_cuda_gate *gate);
cudaError_t mm_cuda_gate_close(struct mm_cuda_gate *gate, cudaStream_t stream);
void mm_cuda_gate_open(struct mm_cuda_gate *gate);
bool mm_cuda_gate_gave_up(const struct mm_cuda_gate *gate);

__END_DECLS
