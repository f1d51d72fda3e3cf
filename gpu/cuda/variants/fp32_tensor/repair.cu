/* The last pass of fp32_tensor recomputes the uncertified elements in plain float32 and reports the path. If
 * they are too many, the range of float16 costs C too much, or an operand has Inf or NaN, it only sets the
 * fallback flag. simt, enqueued behind it, then computes everything.
 *
 * A block computes an element. Its threads' sums are added up in a fixed order. */
#include "gpu/cuda/variants/follow.cuh"
#include "gpu/cuda/variants/fp32_tensor/parts.h"

namespace {

constexpr unsigned THREADS = MM_FP32_REPAIR_THREADS;
constexpr unsigned WARPS = THREADS / 32;

/* The thread's part of an element: every THREADSth product. Loads of neither operand wait for others, as one
 * of them usually reads a sector of 32 bytes for each element. */
__device__ float dot(const mm_product &product, const mm_fp32_position &position) {
    constexpr unsigned AT_ONCE = 8;
    const float *a = static_cast<const float *>(product.a.data);
    const float *b = static_cast<const float *>(product.b.data);
    const size_t a_stride = product.transpose_a ? product.a.ld : 1;
    const size_t b_stride = product.transpose_b ? 1 : product.b.ld;
    a += product.transpose_a ? position.row : position.row * product.a.ld;
    b += product.transpose_b ? position.col * product.b.ld : position.col;
    float sum = 0.0f;
    for (size_t first = threadIdx.x; first < product.k; first += AT_ONCE * THREADS) {
        float x[AT_ONCE] = {};
        float y[AT_ONCE] = {};
#pragma unroll
        for (unsigned i = 0; i < AT_ONCE; i++)
            if (first + i * THREADS < product.k) {
                x[i] = a[(first + i * THREADS) * a_stride];
                y[i] = b[(first + i * THREADS) * b_stride];
            }
#pragma unroll
        for (unsigned i = 0; i < AT_ONCE; i++)
            sum = fmaf(x[i], y[i], sum);
    }
    return sum;
}

/* The sum over all threads of the block. `of_warp` is not that of the call before. */
template <typename SUM> __device__ SUM sum_of_block(SUM sum, SUM (&of_warp)[WARPS]) {
    for (unsigned lanes = 16; lanes > 0; lanes /= 2)
        sum += __shfl_xor_sync(~0u, sum, lanes);
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = sum;
    __syncthreads(); /* all writes are visible before other threads read them */
    sum = 0;
    for (unsigned warp = 0; warp < WARPS; warp++)
        sum += of_warp[warp];
    return sum;
}

/* Whether the range of float16 may cost C more than the guard allows. All blocks find the same. */
__device__ bool is_range_costly(const mm_fp32_plan &plan) {
    __shared__ double of_warp[2][WARPS];
    mm_fp32_cost sum = {0.0, 0.0};
    if (plan.flags->has_costs == 0)
        return false;
    const unsigned count = plan.schedule.clusters * MM_FP32_CLUSTER * MM_FP32_COMPUTING_WARPS;
    for (unsigned i = threadIdx.x; i < count; i += THREADS) {
        sum.error_squares += plan.costs[i].error_squares;
        sum.squares += plan.costs[i].squares;
    }
    return sum_of_block(sum.error_squares, of_warp[0]) >
           MM_FP32_RANGE_SQUARES * sum_of_block(sum.squares, of_warp[1]);
}

__global__ void __launch_bounds__(THREADS) repair(const __grid_constant__ mm_fp32_plan plan, mm_path *path) {
    __shared__ float of_warp[2][WARPS]; /* in turn, so that one barrier an element suffices */
    mm_let_kernel_behind_begin();
    mm_wait_for_kernel_before();
    const unsigned uncertain = plan.flags->uncertain;
    const bool falls_back =
        mm_fp32_is_unsplit(plan) || uncertain > plan.uncertain_max || is_range_costly(plan);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        mm_path all = {falls_back      ? MM_PATH_SIMT
                       : uncertain > 0 ? MM_PATH_REPAIRED
                                       : MM_PATH_CERTIFIED,
                       falls_back ? 0 : uncertain};
        if (plan.is_of_stack) { /* else *path, in the host's memory, is not read: that takes a microsecond */
            all.kind = all.kind > path->kind ? all.kind : path->kind;
            all.repaired += path->repaired;
        }
        *path = all;
        if (falls_back)
            plan.flags->fallback = 1; /* a block that sees it already decides the same */
    }
    if (falls_back)
        return;
    unsigned turn = 0;
    for (unsigned i = blockIdx.x; i < uncertain; i += gridDim.x, turn ^= 1) {
        const mm_fp32_position position = plan.uncertain[i];
        const float sum = sum_of_block(dot(plan.product, position), of_warp[turn]);
        if (threadIdx.x == 0)
            static_cast<float *>(plan.product.c.data)[position.row * plan.product.c.ld + position.col] = sum;
    }
}

} // namespace

const void *const mm_fp32_repair_kernel = reinterpret_cast<const void *>(repair);
