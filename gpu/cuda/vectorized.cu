/* vectorized: `register_tiled` by accesses of 16 bytes. One instruction then moves four elements, from
 * global memory and from shared: at each element of k a thread fetches its 8 of A and 8 of B by 4 reads in
 * place of 16, for the same 64 multiplications, and the slabs come in by a quarter of the instructions.
 * That leaves time for slabs of 16 elements of k, and half the barriers.
 *
 * Global memory can be read so only where a matrix begins at a multiple of 16 bytes and its rows are a
 * multiple of 16 bytes long; else, and at the ends of rows, elements come one by one. The kernel judges
 * that for itself and for each operand, since the branch is the same for all threads. It costs up to 128
 * registers a thread, two blocks a multiprocessor, 16.5 KiB of shared memory and two barriers a slab.
 *
 * The idea is in NVIDIA's "CUDA Pro Tip: Increase Performance with Vectorized Memory Access". */
#include "gpu/cuda/lane.h"
#include "gpu/cuda/quad.cuh"
#include "gpu/cuda/variants.h"

namespace {

constexpr unsigned EDGE = 128;         /* of a block's square of C */
constexpr unsigned DEPTH = 16;         /* of a slab, along k */
constexpr unsigned SIDE = 16;          /* threads along either edge */
constexpr unsigned QUAD = MM_QUAD;     /* elements of one access */
constexpr unsigned HALF = SIDE * QUAD; /* of the block's edge: a thread owns a quad in each */
constexpr unsigned EACH = 2 * QUAD;
constexpr unsigned THREADS = SIDE * SIDE;

/* Padded by 4 words, which keeps rows at multiples of 16 bytes: a warp that turns its operand writes 16
 * lines at 2 depths that are 4 apart, and 4·4 words of padding put those 16 banks apart. */
typedef float slab[DEPTH][EDGE + 4];

/* Four elements of a stored row, from (row, col) on; zeros past an edge. */
__device__ float4 fetch(const struct mm_matrix &x, bool wide, unsigned row, unsigned col) {
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

/* Puts DEPTH of each of EDGE lines into shared memory, depth by depth, from (first_line, step) on. A line is
 * a row of op(A) or a column of op(B). ALONG says that a line's elements are neighbours in memory (A as it
 * is, B transposed): then two threads read 32 bytes of one line, and the slab is turned as it is written;
 * else a warp reads across 128 lines. */
template <bool ALONG>
__device__ void load(slab &to, const struct mm_matrix &x, bool wide, unsigned first_line, unsigned step) {
    const unsigned thread = threadIdx.y * SIDE + threadIdx.x;
#pragma unroll
    for (unsigned first = 0; first < DEPTH; first += DEPTH / 2) {
        if (ALONG) {
            const unsigned depth = first + thread % 2 * QUAD;
            const unsigned line = thread / 2;
            const float4 quad = fetch(x, wide, first_line + line, step + depth);
            to[depth][line] = quad.x;
            to[depth + 1][line] = quad.y;
            to[depth + 2][line] = quad.z;
            to[depth + 3][line] = quad.w;
        } else {
            const unsigned depth = first + thread / (EDGE / QUAD);
            const unsigned line = thread % (EDGE / QUAD) * QUAD;
            *reinterpret_cast<float4 *>(&to[depth][line]) = fetch(x, wide, step + depth, first_line + line);
        }
    }
}

/* The thread's two quads of a slab's row: one in each half, so that the threads along an edge read
 * neighbouring quads, each bank once, where quads side by side would meet in half of the banks. */
__device__ void take(float (&each)[EACH], const float (&row)[EDGE + 4], unsigned thread) {
#pragma unroll
    for (unsigned half = 0; half < 2; half++)
        mm_read_quad(&each[half * QUAD], &row[half * HALF + thread * QUAD]);
}

/* Where in the block's edge the thread's element `index` of EACH lies. */
__device__ unsigned place_of(unsigned thread, unsigned index) {
    return index / QUAD * HALF + thread * QUAD + index % QUAD;
}

/* Adds the slabs' products to the thread's 8×8 elements. */
__device__ void multiply(float (&sums)[EACH][EACH], const slab &a_slab, const slab &b_slab) {
#pragma unroll
    for (unsigned depth = 0; depth < DEPTH; depth++) {
        float a[EACH];
        float b[EACH];
        take(a, a_slab[depth], threadIdx.y);
        take(b, b_slab[depth], threadIdx.x);
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
        load<!TRANSPOSE_A>(a_slab, product.a, a_wide, first_row, step);
        load<TRANSPOSE_B>(b_slab, product.b, b_wide, first_col, step);

        /* Each thread reads what others wrote: no one starts before all have written. */
        __syncthreads();

        /* Past k both slabs hold 0, so nothing is added there; past m or n the zeros only meet sums that
         * are never stored. */
        multiply(sums, a_slab, b_slab);

        /* The next step overwrites the slabs: no one goes on before all have read. */
        __syncthreads();
    }

    const bool c_wide = mm_is_wide(product.c);
#pragma unroll
    for (unsigned i = 0; i < EACH; i++) {
        const unsigned row = first_row + place_of(threadIdx.y, i);
        if (row >= product.m)
            continue;
#pragma unroll
        for (unsigned j = 0; j < EACH; j += QUAD)
            mm_store_quad(product.c, c_wide, row, first_col + place_of(threadIdx.x, j), &sums[i][j]);
    }
}

} // namespace

enum mm_status mm_cuda_vectorized(const struct mm_product *product, struct mm_lane *lane,
                                  struct mm_error *error) {
    static const mm_cuda_kernel kernels[2][2] = {{vectorized<false, false>, vectorized<false, true>},
                                                 {vectorized<true, false>, vectorized<true, true>}};
    struct mm_cuda_layout layout = {};
    layout.kernel = mm_cuda_pick(kernels, product);
    layout.block_rows = layout.block_cols = EDGE;
    layout.threads_x = layout.threads_y = SIDE;
    return mm_cuda_launch(&layout, product, lane, error);
}
