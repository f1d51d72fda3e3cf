/* register_tiled, spilling: `tiled` (tiled.cu) with registers as the next level of memory. Each thread
 * computes 8×8 elements of C, and keeps their sums in registers. At each k it reads fragments from shared
 * memory, 8 elements of A and 8 of B, and uses each element 8 times. A thread of `spilling` may use only 64
 * registers instead of 128, so sums spill to local memory. docs/kernels.md has the figures.
 * Source: V. Volkov's talk "Better performance at lower occupancy" (2010) made the old idea known on GPUs.
 *
 *        thread (x, y) of 16×16 owns, of the block's 128×128 of C, rows    y, y + 16, ... y + 112
 *                                                         and columns x, x + 16, ... x + 112 */
#include "gpu/cuda/lane.h"
#include "gpu/cuda/variants/element.cuh"
#include "gpu/cuda/variants.h"

/* ptxas: spills spilling: this variant shows the cost of spills */

namespace {

constexpr unsigned EDGE = 128; /* elements along an edge of a block's square of C */
constexpr unsigned DEPTH = 8;  /* elements of a slab along k */
constexpr unsigned SIDE = 16;  /* threads along an edge of a block */
constexpr unsigned EACH = 8;   /* elements of C that a thread computes, along either edge */
constexpr unsigned THREADS = SIDE * SIDE;

/* The rows of a slab are padded by 4 words. A warp that transposes its operand stores 4 lines at 8 depths at
 * once. With the padding these 32 words lie in 32 banks (4·depth + line). */
typedef float slab[DEPTH][EDGE + 4];

/* Loads a slab and stages it in shared memory: DEPTH elements of each of EDGE lines, from line first_line and
 * k = step on. A line is a row of op(A) or a column of op(B). ALONG: a line's elements are neighbours in
 * memory (A not transposed, B transposed), and staging transposes the slab. Elements past an edge become 0.
 */
template <bool ALONG>
__device__ void stage(slab &to, const struct mm_matrix &x, unsigned first_line, unsigned step) {
    constexpr unsigned BREADTH = ALONG ? DEPTH : EDGE; /* threads along a stored row */
    constexpr unsigned HEIGHT = ALONG ? EDGE : DEPTH;
    const unsigned thread = threadIdx.y * SIDE + threadIdx.x;
    const unsigned down = thread / BREADTH;
    const unsigned right = thread % BREADTH;
    const unsigned row = (ALONG ? first_line : step) + down;
    const unsigned col = (ALONG ? step : first_line) + right;
    const float *from = static_cast<const float *>(x.data) + row * x.ld + col;
#pragma unroll
    for (unsigned i = 0; i < HEIGHT; i += THREADS / BREADTH) {
        float element = 0.0f;
        if (row + i < x.rows && col < x.cols)
            element = from[i * x.ld];
        (ALONG ? to[right][down + i] : to[down + i][right]) = element;
    }
}

/* Adds the products of the slabs to the thread's sums. A thread's rows and columns lie SIDE apart, so
 * neighbouring threads read neighbouring words. A warp reads 16 words of B and 2 words of A at a time,
 * without bank conflicts. */
__device__ void multiply(float (&sums)[EACH][EACH], const slab &a_slab, const slab &b_slab) {
#pragma unroll
    for (unsigned depth = 0; depth < DEPTH; depth++) {
        float a[EACH];
        float b[EACH];
#pragma unroll
        for (unsigned i = 0; i < EACH; i++) {
            a[i] = a_slab[depth][threadIdx.y + i * SIDE];
            b[i] = b_slab[depth][threadIdx.x + i * SIDE];
        }
#pragma unroll
        for (unsigned i = 0; i < EACH; i++)
#pragma unroll
            for (unsigned j = 0; j < EACH; j++)
                sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
    }
}

/* How many blocks must fit on a multiprocessor. It has 65536 registers, which the compiler divides among
 * BLOCKS·THREADS threads. These are types, not numbers, so the name of each kernel contains its bound.
 * tests/build/ptxas.sh allows spills by the name of a kernel. */
struct usual {
    static constexpr unsigned BLOCKS = 2; /* 128 registers a thread */
};
struct spilling {
    static constexpr unsigned BLOCKS = 4; /* 64 registers a thread */
};

template <class BOUND, bool TRANSPOSE_A, bool TRANSPOSE_B>
__global__ void __launch_bounds__(THREADS, BOUND::BLOCKS)
    register_tiled(const __grid_constant__ struct mm_product product) {
    __shared__ slab a_slab;
    __shared__ slab b_slab;
    const unsigned first_row = blockIdx.y * EDGE;
    const unsigned first_col = blockIdx.x * EDGE;

    float sums[EACH][EACH] = {};
    for (unsigned step = 0; step < product.k; step += DEPTH) {
        stage<!TRANSPOSE_A>(a_slab, product.a, first_row, step);
        stage<TRANSPOSE_B>(b_slab, product.b, first_col, step);

        /* Threads read what other threads staged, so all must have written before any thread reads. */
        __syncthreads();

        /* Past k both slabs hold 0, so nothing is added. Zeros past m or n reach only sums that are not
         * stored. */
        multiply(sums, a_slab, b_slab);

        /* The next step overwrites the slabs, so all threads must have read before any thread writes. */
        __syncthreads();
    }

    /* Epilogue: each thread stores its sums, a warp 16 neighbours of two rows at a time. */
#pragma unroll
    for (unsigned i = 0; i < EACH; i++) {
        const unsigned row = first_row + threadIdx.y + i * SIDE;
        const unsigned col = first_col + threadIdx.x;
        mm_store_c_row<SIDE>(product, row, col, sums[i]);
    }
}

template <class BOUND> enum mm_status plan_by(const struct mm_product *product, struct mm_plan *plan) {
    static const mm_cuda_kernel kernels[2][2] = {
        {register_tiled<BOUND, false, false>, register_tiled<BOUND, false, true>},
        {register_tiled<BOUND, true, false>, register_tiled<BOUND, true, true>}};
    plan->layout.kernel = mm_cuda_pick(kernels, product);
    plan->layout.block_rows = plan->layout.block_cols = EDGE;
    plan->layout.threads_x = plan->layout.threads_y = SIDE;
    return MM_OK;
}

} // namespace

enum mm_status mm_cuda_register_tiled(const struct mm_product *product, struct mm_plan *plan,
                                      struct mm_error *error) {
    (void)error;
    return plan_by<usual>(product, plan);
}

enum mm_status mm_cuda_spilling(const struct mm_product *product, struct mm_plan *plan,
                                struct mm_error *error) {
    (void)error;
    return plan_by<spilling>(product, plan);
}
