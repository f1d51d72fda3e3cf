/* The second kernel of a product whose clusters share tiles: adds up the partial sums of each such tile, in
 * the order of k, and stores the totals in C. A thread computes four elements of C, whose partial sums one
 * consumer thread has stored side by side (wgmma/block.cuh): two neighbours of a row, and the two 8 rows
 * below. */
#include "gpu/cuda/variants/tensor/product.cuh"

#include <type_traits>

namespace {

constexpr unsigned AT_ONCE = 8; /* loads in flight */

/* As one access where the pair lies at a multiple of its size, which halves the traffic to the L2. */
template <typename ELEMENT>
__device__ __forceinline__ void store_pair(const mm_matrix &c, size_t index, bool is_whole, ELEMENT first,
                                           ELEMENT second) {
    struct alignas(2 * sizeof(ELEMENT)) pair {
        ELEMENT elements[2];
    };
    ELEMENT *to = static_cast<ELEMENT *>(c.data) + index;
    if (is_whole && reinterpret_cast<size_t>(to) % sizeof(pair) == 0) {
        *reinterpret_cast<pair *>(to) = {{first, second}};
        return;
    }
    to[0] = first;
    if (is_whole)
        to[1] = second;
}

template <typename SUM>
__device__ __forceinline__ void store_sums(const mm_matrix &c, size_t row, size_t col, SUM first,
                                           SUM second) {
    if (row >= c.rows || col >= c.cols)
        return;
    const size_t index = row * c.ld + col;
    const bool is_whole = col + 1 < c.cols;
    if constexpr (std::is_same<SUM, float>::value)
        if (c.dtype != MM_FLOAT32) {
            const uint32_t pair = mm_narrow_pair(c.dtype == MM_BFLOAT16, first, second);
            store_pair(c, index, is_whole, static_cast<uint16_t>(pair), static_cast<uint16_t>(pair >> 16));
            return;
        }
    store_pair(c, index, is_whole, first, second);
}

template <typename SUM>
__global__ void __launch_bounds__(MM_TENSOR_REDUCE_THREADS)
    reduce(const __grid_constant__ mm_tensor_plan plan) {
    const mm_schedule &schedule = plan.schedule;
    const unsigned consumers = plan.rows / MM_CONSUMER_ROWS;
    const unsigned fours = plan.wide / 8; /* of a consumer's thread */
    const unsigned consumer = blockIdx.y / fours;
    const unsigned four = blockIdx.y % fours;
    const unsigned rank = blockIdx.x % plan.cluster;
    const unsigned shared_tile = blockIdx.x / plan.cluster;
    mm_let_kernel_behind_begin();
    const mm_tensor_tile tile = mm_tensor_tile_of(plan, schedule.whole_cluster_tiles + shared_tile,
                                                  plan.cluster, rank, plan.rows, plan.wide);
    const mm_sharers sharers = mm_sharers_of(&schedule, shared_tile);
    const size_t slot = static_cast<size_t>(plan.cluster) * consumers * fours * MM_GROUP;
    const mm_four_sums<SUM> *sums = static_cast<const mm_four_sums<SUM> *>(plan.sums) +
                                    ((rank * consumers + consumer) * fours + four) * MM_GROUP + threadIdx.x;
    mm_wait_for_kernel_before();
    if (sharers.end == sharers.first)
        return; /* one cluster has computed all of the tile */
    const mm_four_sums<SUM> start = mm_load_past_l1(sums + (schedule.sharers + shared_tile) * slot);
    SUM total[4] = {start.sums[0], start.sums[1], start.sums[2], start.sums[3]};
#pragma unroll 1
    for (unsigned first = sharers.first; first < sharers.end; first += AT_ONCE) {
        mm_four_sums<SUM> parts[AT_ONCE] = {};
#pragma unroll
        for (unsigned i = 0; i < AT_ONCE; i++)
            if (first + i < sharers.end)
                parts[i] = mm_load_past_l1(sums + (first + i) * slot);
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
    store_sums(c, row, col, total[0], total[1]);
    store_sums(c, row + 8, col, total[2], total[3]);
}

} // namespace

const void *const mm_tensor_reduce[2] = {reinterpret_cast<const void *>(reduce<float>),
                                         reinterpret_cast<const void *>(reduce<uint32_t>)};
