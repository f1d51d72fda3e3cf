/* register_tiled, spilling: `tiled` (tiled.cu) with sums in registers. Each thread computes 8×8 elements of
 * C. At each k the thread reads 8 elements of A and 8 of B from shared memory, and uses each element 8 times.
 * In `spilling` a thread has 64 registers instead of 128, so the compiler moves some sums to local memory,
 * which is called spilling. docs/kernels.md has measured times. Source: V. Volkov's talk "Better performance
 * at lower occupancy" (2010).
 *
 * A block of 16×16 threads computes 128×128 elements of C. Thread (x, y) computes
 *     rows y, y + 16, ... y + 112 and columns x, x + 16, ... x + 112 */
#include "gpu/cuda/lane.h"
#include "gpu/cuda/variants/element.cuh"
#include "gpu/cuda/variants.h"

/* ptxas: spills spilling: this variant shows the cost of spills */

namespace {

constexpr unsigned EDGE = 128; /* side of a block's square of C, in elements */
constexpr unsigned DEPTH = 8;  /* length of a step along k */
constexpr unsigned SIDE = 16;  /* threads along a side of a block */
constexpr unsigned EACH = 8;   /* a thread computes EACH×EACH elements of C */
constexpr unsigned THREADS = SIDE * SIDE;

/* A slab is the part of A or B that a block loads in one step. A warp that transposes a slab stores elements
 * of 8 rows and 4 columns at once. With 4 words of padding in each row, these 32 words lie in 32 banks. */
typedef float slab[DEPTH][EDGE + 4];

/* Copies a slab to shared memory: EDGE lines from first_line on, and DEPTH elements of each line from
 * k = step on. A line is a row of op(A) or a column of op(B). If ALONG, the elements of a line are neighbours
 * in global memory, and the copy transposes the slab. Elements outside the matrix become 0. */
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

/* Adds the product of the slabs to the thread's sums. A thread's rows and columns lie SIDE apart, so
 * neighbouring threads read neighbouring words, without bank conflicts. */
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

/* BLOCKS blocks must fit on a multiprocessor, which limits the registers of a thread. The types are part of
 * the kernels' names, because tests/build/ptxas.sh allows spills by name. */
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

        /* Wait until both slabs are complete, because threads read what other threads wrote. */
        __syncthreads();

        /* Elements past k are 0 in both slabs, so they add nothing to the sums. */
        multiply(sums, a_slab, b_slab);

        /* Wait until all threads have read the slabs, because the next step overwrites them. */
        __syncthreads();
    }

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
