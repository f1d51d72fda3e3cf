/* vectorized: `register_tiled` (register_tiled.cu) with accesses of 16 bytes. One instruction then moves a
 * quad of four elements between registers and global or shared memory. A step covers 16 of k instead of 8,
 * which halves the barriers. If rows do not begin at multiples of 16 bytes, elements are loaded one by one.
 * docs/kernels.md has measured times.
 * Source: NVIDIA's "CUDA Pro Tip: Increase Performance with Vectorized Memory Access".
 *
 * A block of 16×16 threads computes 128×128 elements of C. Thread (x, y) computes
 *     rows 4y to 4y + 3 and 64 + 4y to 67 + 4y, and columns 4x to 4x + 3 and 64 + 4x to 67 + 4x */
#include "gpu/cuda/lane.h"
#include "gpu/cuda/variants/quad.cuh"
#include "gpu/cuda/variants.h"

namespace {

constexpr unsigned EDGE = 128;         /* side of a block's square of C, in elements */
constexpr unsigned DEPTH = 16;         /* length of a step along k */
constexpr unsigned SIDE = 16;          /* threads along a side of a block */
constexpr unsigned QUAD = MM_QUAD;     /* elements of one access */
constexpr unsigned HALF = SIDE * QUAD; /* half of EDGE; a thread has a quad in each half */
constexpr unsigned EACH = 2 * QUAD;    /* a thread computes EACH×EACH elements of C */
constexpr unsigned THREADS = SIDE * SIDE;

/* A slab is the part of A or B that a block loads in one step. Rows are padded by 4 words, so they stay
 * aligned to 16 bytes, and a warp that transposes a slab stores to different banks. */
typedef float slab[DEPTH][EDGE + 4];

/* Loads four elements of a stored row from (row, col) on, with zeros outside X. `wide` is mm_is_wide(X). */
__device__ float4 load_quad(const struct mm_matrix &x, bool wide, unsigned row, unsigned col) {
    float4 quad = {};
    if (row >= x.rows)
        return quad;
    const float *from = static_cast<const float *>(x.data) + row * x.ld + col;
    if (wide && col + QUAD <= x.cols)
        return *reinterpret_cast<const float4 *>(from);
    if (col < x.cols)
        quad.x = from[0];
    if (col + 1 < x.cols)
        quad.y = from[1];
    if (col + 2 < x.cols)
        quad.z = from[2];
    if (col + 3 < x.cols)
        quad.w = from[3];
    return quad;
}

/* Copies a slab to shared memory: EDGE lines from first_line on, and DEPTH elements of each line from
 * k = step on. A line is a row of op(A) or a column of op(B). If ALONG, the elements of a line are neighbours
 * in global memory, and the copy transposes the slab. */
template <bool ALONG>
__device__ void stage(slab &to, const struct mm_matrix &x, bool wide, unsigned first_line, unsigned step) {
    const unsigned thread = threadIdx.y * SIDE + threadIdx.x;
#pragma unroll
    for (unsigned first = 0; first < DEPTH; first += DEPTH / 2) {
        if (ALONG) {
            const unsigned depth = first + thread % 2 * QUAD;
            const unsigned line = thread / 2;
            const float4 quad = load_quad(x, wide, first_line + line, step + depth);
            to[depth][line] = quad.x;
            to[depth + 1][line] = quad.y;
            to[depth + 2][line] = quad.z;
            to[depth + 3][line] = quad.w;
        } else {
            const unsigned depth = first + thread / (EDGE / QUAD);
            const unsigned line = thread % (EDGE / QUAD) * QUAD;
            *reinterpret_cast<float4 *>(&to[depth][line]) =
                load_quad(x, wide, step + depth, first_line + line);
        }
    }
}

/* Reads the thread's two quads of a slab's row, one in each half. Neighbouring threads then read neighbouring
 * quads, without bank conflicts. Two neighbouring quads for each thread would conflict. */
__device__ void read_fragment(float (&each)[EACH], const float (&row)[EDGE + 4], unsigned thread) {
#pragma unroll
    for (unsigned half = 0; half < 2; half++)
        mm_read_quad(&each[half * QUAD], &row[half * HALF + thread * QUAD]);
}

/* Returns the position of the thread's element `index` along the side of the block's square. */
__device__ unsigned offset_of(unsigned thread, unsigned index) {
    return index / QUAD * HALF + thread * QUAD + index % QUAD;
}

__device__ void multiply(float (&sums)[EACH][EACH], const slab &a_slab, const slab &b_slab) {
#pragma unroll
    for (unsigned depth = 0; depth < DEPTH; depth++) {
        float a[EACH];
        float b[EACH];
        read_fragment(a, a_slab[depth], threadIdx.y);
        read_fragment(b, b_slab[depth], threadIdx.x);
#pragma unroll
        for (unsigned i = 0; i < EACH; i++)
#pragma unroll
            for (unsigned j = 0; j < EACH; j++)
                sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
    }
}

template <bool TRANSPOSE_A, bool TRANSPOSE_B>
__global__ void __launch_bounds__(THREADS, 2) vectorized(const __grid_constant__ struct mm_product product) {
    alignas(sizeof(float4)) __shared__ slab a_slab;
    alignas(sizeof(float4)) __shared__ slab b_slab;
    const unsigned first_row = blockIdx.y * EDGE;
    const unsigned first_col = blockIdx.x * EDGE;
    const bool a_wide = mm_is_wide(product.a);
    const bool b_wide = mm_is_wide(product.b);

    float sums[EACH][EACH] = {};
    for (unsigned step = 0; step < product.k; step += DEPTH) {
        stage<!TRANSPOSE_A>(a_slab, product.a, a_wide, first_row, step);
        stage<TRANSPOSE_B>(b_slab, product.b, b_wide, first_col, step);

        /* Wait until both slabs are complete, because threads read what other threads wrote. */
        __syncthreads();

        /* Elements past k are 0 in both slabs, so they add nothing to the sums. */
        multiply(sums, a_slab, b_slab);

        /* Wait until all threads have read the slabs, because the next step overwrites them. */
        __syncthreads();
    }

    const bool c_wide = mm_is_wide(product.c);
#pragma unroll
    for (unsigned i = 0; i < EACH; i++) {
        const unsigned row = first_row + offset_of(threadIdx.y, i);
        mm_store_quads<HALF>(product, c_wide, row, first_col, offset_of(threadIdx.x, 0), sums[i]);
    }
}

} // namespace

enum mm_status mm_cuda_vectorized(const struct mm_product *product, struct mm_plan *plan,
                                  struct mm_error *error) {
    static const mm_cuda_kernel kernels[2][2] = {{vectorized<false, false>, vectorized<false, true>},
                                                 {vectorized<true, false>, vectorized<true, true>}};
    (void)error;
    plan->layout.kernel = mm_cuda_pick(kernels, product);
    plan->layout.block_rows = plan->layout.block_cols = EDGE;
    plan->layout.threads_x = plan->layout.threads_y = SIDE;
    return MM_OK;
}
