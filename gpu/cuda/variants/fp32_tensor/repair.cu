/* The last pass of fp32_tensor recomputes the uncertified elements in plain float32 and reports the path. If
 * they are too many, or an operand has Inf or NaN, it only sets the fallback flag. simt, enqueued behind it,
 * then computes everything.
 *
 * A warp computes an element; its threads' sums are added up in a fixed order. */
#include "gpu/cuda/variants/follow.cuh"
#include "gpu/cuda/variants/fp32_tensor/parts.h"

namespace {

constexpr unsigned THREADS = MM_FP32_REPAIR_THREADS;
constexpr unsigned WARPS = THREADS / 32;

__device__ float dot(const mm_product &product, const mm_fp32_position &position) {
    const float *a = static_cast<const float *>(product.a.data);
    const float *b = static_cast<const float *>(product.b.data);
    const size_t a_stride = product.transpose_a ? product.a.ld : 1;
    const size_t b_stride = product.transpose_b ? 1 : product.b.ld;
    a += product.transpose_a ? position.row : position.row * product.a.ld;
    b += product.transpose_b ? position.col * product.b.ld : position.col;
    float sum = 0.0f;
    for (size_t i = threadIdx.x % 32; i < product.k; i += 32)
        sum = fmaf(a[i * a_stride], b[i * b_stride], sum);
    for (unsigned lanes = 16; lanes > 0; lanes /= 2)
        sum += __shfl_xor_sync(~0u, sum, lanes);
    return sum;
}

__global__ void __launch_bounds__(THREADS) repair(const __grid_constant__ mm_fp32_plan plan, mm_path *path) {
    mm_let_kernel_behind_begin();
    mm_wait_for_kernel_before();
    const unsigned uncertain = plan.flags->uncertain;
    const bool falls_back = mm_fp32_is_unsplit(plan) || uncertain > plan.uncertain_max;
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
    for (unsigned i = blockIdx.x * WARPS + threadIdx.x / 32; i < uncertain; i += gridDim.x * WARPS) {
        const mm_fp32_position position = plan.uncertain[i];
        const float sum = dot(plan.product, position);
        if (threadIdx.x % 32 == 0)
            static_cast<float *>(plan.product.c.data)[position.row * plan.product.c.ld + position.col] = sum;
    }
}

} // namespace

const void *const mm_fp32_repair_kernel = reinterpret_cast<const void *>(repair);
