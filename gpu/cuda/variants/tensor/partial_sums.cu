/* The fix-up is a second kernel, which runs if clusters share a tile of C. It adds up the partial sums in the
 * order of k, and stores the totals in C. A thread computes four elements. For float64 these are four
 * neighbours in a row. For other types they are two neighbours in a row, and the two elements 8 rows
 * below. */
#include "gpu/cuda/variants/tensor/store.cuh"

#include <type_traits>

namespace {

constexpr unsigned AT_ONCE = 8; /* loads that a thread has in flight */

template <typename SUM>
__global__ void __launch_bounds__(MM_TENSOR_REDUCE_THREADS)
    reduce(const __grid_constant__ mm_tensor_plan plan) {
    const mm_schedule &schedule = plan.schedule;
    const unsigned fours = plan.rows * plan.cols / 4; /* groups of four sums in a block's tile */
    const unsigned four = blockIdx.y * MM_TENSOR_REDUCE_THREADS + threadIdx.x;
    const unsigned rank = blockIdx.x % plan.cluster;
    const unsigned shared_tile = blockIdx.x / plan.cluster;
    mm_trigger_dependent_launch();
    const mm_tensor_tile tile = mm_tensor_tile_of(plan, schedule.whole_cluster_tiles + shared_tile,
                                                  plan.cluster, rank, plan.rows, plan.cols);
    const mm_sharers sharers = mm_sharers_of(&schedule, shared_tile);
    const size_t slot = static_cast<size_t>(plan.cluster) * fours;
    const mm_four_sums<SUM> *sums = static_cast<const mm_four_sums<SUM> *>(plan.sums) + rank * fours + four;
    mm_wait_for_kernel_before();
    if (plan.products != nullptr && *plan.products == 0)
        return; /* nothing was computed */
    if (sharers.end == sharers.first)
        return; /* one cluster has computed all of k and stored the tile */
    const mm_four_sums<SUM> start = mm_load_past_l1(sums + (schedule.sharers + shared_tile) * slot);
    SUM total[4] = {start.sums[0], start.sums[1], start.sums[2], start.sums[3]};
#pragma unroll 1
    for (unsigned first = sharers.first; first < sharers.end; first += AT_ONCE) {
        mm_four_sums<SUM> loaded[AT_ONCE] = {};
#pragma unroll
        for (unsigned i = 0; i < AT_ONCE; i++)
            if (first + i < sharers.end)
                loaded[i] = mm_load_past_l1(sums + (first + i) * slot);
#pragma unroll
        for (unsigned i = 0; i < AT_ONCE; i++)
#pragma unroll
            for (unsigned j = 0; j < 4; j++)
                total[j] += loaded[i].sums[j];
    }
    const mm_product product = mm_tensor_item(plan, tile);
    mm_tile at;    /* position of the thread's first two elements in the tile */
    mm_tile apart; /* distance from the first two elements to the other two */
    if constexpr (std::is_same<SUM, double>::value) {
        at = {four * 4 / plan.cols, four * 4 % plan.cols};
        apart = {0, 2};
    } else {
        const unsigned lane = threadIdx.x % 32, eights = plan.cols / 8;
        at = {blockIdx.y / eights * MM_CONSUMER_ROWS + threadIdx.x / 32 * 16 + lane / 4,
              blockIdx.y % eights * 8 + lane % 4 * 2};
        apart = {8, 0};
    }
    const size_t row = tile.row + at.row, col = tile.col + at.col;
    if (product.epilogue.is_set)
        mm_cuda_finish_sums<false>(
            mm_product_terms(&product), product.m, product.n, total,
            [=](unsigned i) { return row + i / 2 * apart.row; },
            [=](unsigned i) { return col + i / 2 * apart.col + i % 2; });
    mm_store_neighbours(product, row, col, total[0], total[1]);
    mm_store_neighbours(product, row + apart.row, col + apart.col, total[2], total[3]);
}

} // namespace

const void *mm_tensor_reduce_of(enum mm_dtype operand) {
    switch (mm_dtype_sum(operand)) {
    case MM_FLOAT32:
        return reinterpret_cast<const void *>(reduce<float>);
    case MM_FLOAT64:
        return reinterpret_cast<const void *>(reduce<double>);
    default:
        return reinterpret_cast<const void *>(reduce<uint32_t>);
    }
}
