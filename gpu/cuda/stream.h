/* Functions that enqueue work on a lane's stream, other than the kernels of variants. Only the thread that
 * uses the lane calls these functions, while the lane's device is current. Pointers must not be NULL, unless
 * a comment allows NULL. The caller passes a returned cudaError_t to mm_cuda_status. */
#pragma once

#include "gpu/cuda/device.h"

__BEGIN_DECLS

/* Enqueues a mark, which becomes lane->last. */
cudaError_t mm_cuda_mark(struct mm_lane *lane, enum mm_cuda_mark point);

/* Sets *span_ns to the time from mark `from` to the next mark. The stream must have passed both marks. */
cudaError_t mm_cuda_span(const struct mm_lane *lane, enum mm_cuda_mark from, uint64_t *span_ns);

/* Returns the bytes of device memory that mm_cuda_verify needs for this product. */
size_t mm_cuda_verify_bytes(const struct mm_product *product);

/* Enqueues the check of `count` products of a stack, from index `first` on. The matrices are in device
 * memory. `memory` is device memory of mm_cuda_verify_bytes, aligned to 256 bytes. m and n must not be 0.
 * When the check has run, lane->verification has the result of all products checked so far. */
enum mm_status mm_cuda_verify(const struct mm_product *product, enum mm_arithmetic arithmetic, size_t first,
                              size_t count, uint64_t seed, void *memory, struct mm_lane *lane,
                              struct mm_error *error);

/* A part of a check. The first part begins a new result. */
struct mm_cuda_check_part {
    size_t row; /* index of the part's first row in the whole result */
    bool is_first;
    bool is_counted_before; /* the rows do not count again, because another tile has counted them */
};

/* Enqueues the check of a tile of a product, by itself. `memory` is device memory of mm_cuda_verify_bytes of
 * the tile. */
enum mm_status mm_cuda_verify_tile(const struct mm_product *tile, enum mm_arithmetic arithmetic,
                                   struct mm_cuda_check_part part, uint64_t seed, void *memory,
                                   struct mm_lane *lane, struct mm_error *error);

/* Returns the bytes of device memory that mm_cuda_reduce needs. */
size_t mm_cuda_reduce_bytes(void);

/* Enqueues the reduction of a part of C, which is in device memory. `memory` is device memory of
 * mm_cuda_reduce_bytes, aligned to 256 bytes. When the reduction has run, its result is merged into
 * lane->reduction. */
enum mm_status mm_cuda_reduce(const struct mm_matrix *c, const struct mm_window *part, void *memory,
                              struct mm_lane *lane, struct mm_error *error);

/* Enqueues a copy of a part of a stack from the device to the host. The copy has no gaps between rows. */
cudaError_t mm_cuda_copy_part(void *to, void *from, enum mm_dtype dtype, const struct mm_window *part,
                              const struct mm_lane *lane);

/* Enqueues a copy of a matrix. The matrices have equal types, rows and columns. */
cudaError_t mm_cuda_copy_matrix(const struct mm_matrix *to, const struct mm_matrix *from,
                                enum cudaMemcpyKind kind, const struct mm_lane *lane);

/* Enqueues the generation of an operand, or of a block of one, on the device. The matrix has no gaps between
 * rows, and may be empty. */
cudaError_t mm_cuda_generate_operand(const struct mm_source *source, const struct mm_matrix *to,
                                     const struct mm_lane *lane);

/* Makes a gate, which can make a stream wait. The caller frees the gate by mm_cuda_gate_free. */
cudaError_t mm_cuda_gate_make(struct mm_cuda_gate **gate);

/* Frees a gate; NULL is allowed. */
void mm_cuda_gate_free(struct mm_cuda_gate *gate);

/* Closes the gate. The stream waits until the gate is opened, but at most 2 ms. */
cudaError_t mm_cuda_gate_close(struct mm_cuda_gate *gate, cudaStream_t stream);

void mm_cuda_gate_open(struct mm_cuda_gate *gate);

/* Whether the stream stopped waiting because 2 ms had passed. The caller must first wait for the stream. */
bool mm_cuda_gate_timed_out(const struct mm_cuda_gate *gate);

__END_DECLS
