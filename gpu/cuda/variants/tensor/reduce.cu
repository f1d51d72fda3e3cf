/* Split-K's second kernel: adds up the partial sums of each tile, in the order of k, and stores the totals in
 * C. A thread computes four elements of C, whose partial sums one consumer thread has stored side by side
 * (wgmma/block.cuh): two neighbours of a row, and the two 8 rows below. */
#include "gpu/cuda/variants/tensor/product.cuh"

namespace {

constexpr unsigned AT_ONCE = 16; /* loads in flight */

__device__ __forceinline__ void store_pair(const mm_matrix &c, size_t row, size_t col,
                                           const float (&sums)[2]) {
    if (row >= c.rows || col >= c.cols)
        return;
    const size_t index = row * c.ld + col;
    if (c.dtype == MM_FLOAT32) {
        float *to = static_cast<float *>(c.data) + index;
        to[0] = sums[0];
        if (col + 1 < c.cols)
            to[1] = sums[1];
        return;
    }
    const uint32_t pair = mm_narrow_pair(c.dtype == MM_BFLOAT16, sums[0], sums[1]);
    uint16_t *to = static_cast<uint16_t *>(c.data) + index;
    if (col + 1 < c.cols && reinterpret_cast<size_t>(to) % 4 == 0) {
        *reinterpret_cast<uint32_t *>(to) = pair;
        return;
    }
    to[0] = static_cast<uint16_t>(pair);
    if (col + 1 < c.cols)
        to[1] = static_cast<uint16_t>(pair >> 16);
}

__device__ __forceinline__ void store_pair(const mm_matrix &c, size_t row, size_t col,
                                           const uint32_t (&sums)[2]) {
    for (unsigned i = 0; i < 2 && row < c.rows && col + i < c.cols; i++)
        static_cast<uint32_t *>(c.data)[row * c.ld + col + i] = sums[i];
}

template <typename SUM>
__global__ void __launch_bounds__(MM_TENSOR_REDUCE_THREADS)
    reduce(const __grid_constant__ mm_tensor_plan plan) {
    mm_let_kernel_behind_begin();
    const unsigned fours = plan.wide / 8; /* of a consumer's thread */
    const unsigned consumer = blockIdx.y / fours;
    const unsigned four = blockIdx.y % fours;
    const mm_tensor_tile tile = mm_tensor_tile_of(plan, blockIdx.x / plan.cluster, plan.cluster,
                                                  blockIdx.x % plan.cluster, plan.wide);
    const mm_four_sums<SUM> *from = static_cast<const mm_four_sums<SUM> *>(plan.partial.sums) +
                                    ((blockIdx.x * MM_CONSUMERS + consumer) * fours + four) * MM_GROUP +
                                    threadIdx.x;
    const size_t next = static_cast<size_t>(gridDim.x) * MM_CONSUMERS * fours * MM_GROUP;
    mm_wait_for_kernel_before();
    SUM total[4] = {};
#pragma unroll 1
    for (unsigned first = 0; first < plan.splits; first += AT_ONCE) {
        mm_four_sums<SUM> parts[AT_ONCE] = {};
#pragma unroll
        for (unsigned i = 0; i < AT_ONCE; i++)
            if (first + i < plan.splits)
                parts[i] = mm_load_past_l1(from + (first + i) * next);
#pragma unroll
        for (unsigned i = 0; i < AT_ONCE; i++)
#pragma unroll
            for (unsigned j = 0; j < 4; j++)
                total[j] += parts[i].sums[j];
    }
    mm_matrix c = plan.c;
    c.data = static_cast<char *>(c.data) +
             tile.product * plan.c_step * (c.dtype == MM_FLOAT16 || c.dtype == MM_BFLOAT16 ? 2 : 4);
    const unsigned lane = threadIdx.x % 32;
    const size_t row = tile.row + consumer * MM_CONSUMER_ROWS + threadIdx.x / 32 * 16 + lane / 4;
    const size_t col = tile.col + lane % 4 * 2 + four * 8;
    store_pair(c, row, col, {total[0], total[1]});
    store_pair(c, row + 8, col, {total[2], total[3]});
}

} // namespace

const void *const mm_tensor_reduce[2] = {reinterpret_cast<const void *>(reduce<float>),
                                         reinterpret_cast<const void *>(reduce<uint32_t>)};
