/* Tensor maps, and what `tensor` does for other variants. Call these functions only on the thread that uses
 * the lane. */
#pragma once

#include "gpu/cuda/lane.h"

#include <cuda.h>

/* Enqueues a float64 product by a plan of mm_cuda_tensor. `workspace` is device memory of
 * plan->workspace_bytes bytes, aligned to 256 bytes, which must stay valid until the kernels have run.
 * `products` points to device memory: if *products is 0, the kernels store nothing, and if it is 1, they
 * compute the product. NULL: they compute it. */
enum mm_status mm_cuda_tensor_enqueue(const struct mm_plan *plan, const struct mm_product *product,
                                      struct mm_lane *lane, void *workspace, const unsigned *products,
                                      struct mm_error *error);

/* Encodes a tensor map of `count` matrices that lie one below another, and whose rows begin at multiples of
 * 16 bytes. `type` says how TMA sees the elements. A box has `lines` rows of 128 bytes. */
enum mm_status mm_cuda_map(struct mm_lane *lane, CUtensorMapDataType type, const struct mm_matrix *matrix,
                           size_t count, unsigned lines, CUtensorMap *map, struct mm_error *error);
