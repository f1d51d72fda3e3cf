/* The last pass of fp32_tensor recomputes the elements of C that the guard did not certify, in plain float32.
 * The pass also reports how C was computed. A block recomputes one element at a time. If there are too many
 * such elements, or if fp32_tensor cannot be accurate enough, the pass only sets the fallback flag. The
 * variant `simt`, which is enqueued after this pass, then computes all of C. */
#include "gpu/cuda/variants/element.cuh"
#include "gpu/cuda/variants/follow.cuh"
#include "gpu/cuda/variants/fp32_tensor/plan.h"

namespace {

constexpr unsigned THREADS = MM_FP32_REPAIR_THREADS;
constexpr unsigned WARPS = THREADS / 32;

constexpr unsigned AT_ONCE = 8; /* loads that a thread has in flight */

struct operand_line {
    const float *from;
    size_t stride;
    const unsigned char *tiles;
    unsigned tile_lines;
    unsigned steps;
    unsigned line;
    int exponent;
};

__device__ operand_line line_of(const mm_fp32_plan &plan, const mm_fp32_position &position, bool is_a) {
    const mm_matrix &matrix = is_a ? plan.product.a : plan.product.b;
    const bool is_contiguous = is_a != (is_a ? plan.product.transpose_a : plan.product.transpose_b);
    const unsigned line = is_a ? position.row : position.col;
    const float *from = static_cast<const float *>(matrix.data) + (is_contiguous ? line * matrix.ld : line);
    return {from,
            is_contiguous ? 1 : matrix.ld,
            is_a ? plan.a : plan.b,
            static_cast<unsigned>(is_a ? MM_FP32_ROWS : MM_FP32_COLS),
            plan.schedule.steps,
            line,
            mm_fp32_exponent((is_a ? plan.max_a : plan.max_b)[line])};
}

/* Returns element k of a line, scaled: the sum of its high and low halves. */
__device__ __forceinline__ float scaled_at(const operand_line &line, size_t k) {
    const unsigned chunk = static_cast<unsigned>(k / MM_FP32_CHUNK), at = k % MM_FP32_CHUNK;
    float y = 0.0f;
    for (unsigned low = 0; low < 2; low++)
        y += mm_fp32_from_half(reinterpret_cast<const __half *>(
            line.tiles + mm_fp32_chunk_offset(line.tile_lines, line.steps, line.line, chunk, low))[at]);
    return y;
}

/* Loads elements k, k + THREADS, … of a line, and zeros past its end. If the line's elements are not
 * contiguous in memory, reads their halves, which are. The halves of an element lose at most 2^-23 of it,
 * well within float32's bound. Faint elements (MM_FP32_FAINT) may lose more, so they are read from the
 * operand. */
__device__ __forceinline__ void load(const operand_line &line, size_t k, size_t end, float (&x)[AT_ONCE]) {
#pragma unroll
    for (unsigned i = 0; i < AT_ONCE; i++) {
        const size_t at = k + i * THREADS;
        x[i] = at >= end ? 0.0f : line.stride == 1 ? line.from[at] : scaled_at(line, at);
    }
    if (line.stride == 1)
        return;
#pragma unroll
    for (unsigned i = 0; i < AT_ONCE; i++) {
        const size_t at = k + i * THREADS;
        if (at < end)
            x[i] = fabsf(x[i]) < MM_FP32_FAINT ? line.from[at * line.stride]
                                               : mm_fp32_unscaled(x[i], line.exponent);
    }
}

/* Returns this thread's partial sum of an element of C. Each thread adds up every product whose index is its
 * own modulo THREADS. */
__device__ float dot(const mm_fp32_plan &plan, const mm_fp32_position &position) {
    const operand_line row = line_of(plan, position, true);
    const operand_line col = line_of(plan, position, false);
    float sum = 0.0f;
    for (size_t k = threadIdx.x; k < plan.product.k; k += AT_ONCE * THREADS) {
        float x[AT_ONCE];
        float y[AT_ONCE];
        load(row, k, plan.product.k, x);
        load(col, k, plan.product.k, y);
#pragma unroll
        for (unsigned i = 0; i < AT_ONCE; i++)
            sum = fmaf(x[i], y[i], sum);
    }
    return sum;
}

/* Returns the sum over all threads of the block. The next call must use another `of_warp`, because slow
 * threads may still read the sums of this call. */
template <typename SUM> __device__ SUM sum_of_block(SUM sum, SUM (&of_warp)[WARPS]) {
    for (unsigned lanes = 16; lanes > 0; lanes /= 2)
        sum += __shfl_xor_sync(~0u, sum, lanes);
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (unsigned warp = 0; warp < WARPS; warp++)
        sum += of_warp[warp];
    return sum;
}

/* Returns a positive number if float16's range may cost C more accuracy than the guard allows. The number
 * is equal in all blocks. */
__device__ double range_cost(const mm_fp32_plan &plan) {
    __shared__ double of_warp[2][WARPS];
    mm_fp32_cost sum = {0.0, 0.0};
    if (plan.flags->has_costs == 0)
        return 0.0;
    const unsigned count = plan.schedule.clusters * MM_FP32_CLUSTER * MM_FP32_CONSUMER_WARPS;
    for (unsigned i = threadIdx.x; i < count; i += THREADS) {
        sum.error_squares += plan.costs[i].error_squares;
        sum.squares += plan.costs[i].squares;
    }
    return sum_of_block(sum.error_squares, of_warp[0]) -
           MM_FP32_RANGE_SQUARES * sum_of_block(sum.squares, of_warp[1]);
}

/* Not inlined, because the activations would take registers from the sums. */
__device__ __noinline__ void store(const mm_fp32_plan &plan, const mm_fp32_position &position, float sum) {
    mm_store_c_float(&plan.product, position.row, position.col, sum);
}

__global__ void __launch_bounds__(THREADS) repair(const __grid_constant__ mm_fp32_plan plan, mm_path *path) {
    __shared__ float of_warp[2][WARPS]; /* used alternately, so an element needs only one barrier */
    mm_trigger_dependent_launch();
    mm_wait_for_kernel_before();
    const unsigned uncertain = plan.flags->uncertain;
    /* range_cost must come first, because all threads must reach its barrier. Threads may disagree about
     * mm_fp32_is_unsplit, because another block may set the flag that it reads. */
    const double cost = range_cost(plan);
    const bool is_share = plan.product.whole.m > 0; /* then mm_path_falls_back decides about the cost */
    const bool falls_back =
        (!is_share && cost > 0.0) || mm_fp32_is_unsplit(plan) || uncertain > plan.uncertain_max;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        mm_path all = {falls_back      ? MM_PATH_SIMT
                       : uncertain > 0 ? MM_PATH_REPAIRED
                                       : MM_PATH_CERTIFIED,
                       falls_back ? 0 : uncertain, is_share ? plan.uncertain_max : 0, is_share ? cost : 0.0};
        if (plan.merges_path) { /* as mm_path_merge; skipped if not needed, because it takes a microsecond */
            all.kind = all.kind > path->kind ? all.kind : path->kind;
            all.repaired += path->repaired;
            all.cost += path->cost;
        }
        *path = all;
        if (falls_back)
            plan.flags->fallback = 1; /* a block that reads this flag later falls back too */
    }
    if (falls_back)
        return;
    unsigned turn = 0;
    for (unsigned i = blockIdx.x; i < uncertain; i += gridDim.x, turn ^= 1) {
        const mm_fp32_position position = plan.uncertain[i];
        const float sum = sum_of_block(dot(plan, position), of_warp[turn]);
        if (threadIdx.x == 0)
            store(plan, position, sum);
    }
}

} // namespace

const void *const mm_fp32_repair_kernel = reinterpret_cast<const void *>(repair);
