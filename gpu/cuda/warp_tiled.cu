/* warp_tiled: a level between the block and the thread. A thread owns 8×8 elements of C, as in `vectorized`,
 * but the 32 threads of a warp own a compact 64×32 of it. At each element of k a warp then needs 64 words of
 * A and 32 of B for its 2048 multiplications, where one of `vectorized` needs 16 and 128. Threads that share
 * words sit side by side (lane and lane ^ 1 read the same of A, lane and lane ^ 2 the same of B), so that
 * each of a thread's four reads of 16 bytes takes the banks of shared memory once for the whole warp.
 *
 * Two waits go as well. The words of the next element of k are fetched while those of this one are
 * multiplied. And the next slabs arrive meanwhile, by asynchronous copies as in `tiled_async`, with one
 * barrier for every 16 of k. A copy of 4 bytes can turn an operand on its way, and is used where lines of the
 * slab lie along rows in memory (A as it is, B transposed); where they lie across, 16 bytes go at once if the
 * matrix and its rows are at multiples of 16 bytes, else 4. What lies past an edge comes as zeros, by the
 * copy itself.
 *
 * It costs 256 threads of up to 128 registers, two blocks a multiprocessor; 33 KiB of shared memory; and, at
 * 128×128 of C a block, a large product to fill the chip. On an H200 it was the fastest of 31 like it: blocks
 * of 128 or 256 along each edge, slabs of 8, 16 and 32, 8×8 to 16×8 elements a thread, two to four slabs
 * under way. Slabs that stay as their matrices are stored, so that all copies are of 16 bytes, lost by 15%:
 * there the threads read across the slab.
 *
 * Thread blocks, warps and threads as levels of tiling are those of NVIDIA's CUTLASS. The lanes' order is
 * the one that S. Gray's "maxas" SGEMM made known. */
#include "gpu/cuda/async.cuh"
#include "gpu/cuda/lane.h"
#include "gpu/cuda/quad.cuh"
#include "gpu/cuda/variants.h"

namespace {

constexpr unsigned EDGE = 128;      /* of a block's square of C */
constexpr unsigned DEPTH = 16;      /* of a slab, along k */
constexpr unsigned QUAD = MM_QUAD;  /* elements of one access */
constexpr unsigned EACH = 2 * QUAD; /* elements of C along each edge of a thread's square */
constexpr unsigned LANE_ROWS = 8;   /* threads of a warp down its part of C */
constexpr unsigned LANE_COLS = 4;   /* and across it */
constexpr unsigned WARP_ROWS = LANE_ROWS * EACH;
constexpr unsigned WARP_COLS = LANE_COLS * EACH;
constexpr unsigned THREADS = EDGE / WARP_ROWS * (EDGE / WARP_COLS) * 32;

/* DEPTH of each of EDGE lines, depth by depth; a line is a row of op(A) or a column of op(B). ALONG says that
 * its elements are neighbours in memory (A as it is, B transposed): then a row is padded, by as much as keeps
 * rows at multiples of 16 bytes, and the 16 depths that threads write of a line at once lie in 8 banks. */
template <bool ALONG> using slab = float[DEPTH][ALONG ? EDGE + QUAD : EDGE];

/* Begins to copy a slab, from (first_line, step) on, whose lines lie along the rows of X as it is stored:
 * 16 neighbouring threads copy 16 neighbours of a line, each into another row of the slab. */
__device__ void fetch_along(slab<true> &to, const struct mm_matrix &x, unsigned first_line, unsigned step) {
    constexpr unsigned LINES = THREADS / DEPTH; /* at a time */
    const unsigned depth = threadIdx.x % DEPTH;
    const unsigned line = threadIdx.x / DEPTH;
    const unsigned rows = static_cast<unsigned>(x.rows);
    const bool within = step + depth < static_cast<unsigned>(x.cols);
    const float *from = static_cast<const float *>(x.data) + (first_line + line) * x.ld + (step + depth);
#pragma unroll
    for (unsigned i = 0; i < EDGE; i += LINES)
        mm_copy_async<1>(&to[depth][line + i], from + i * x.ld,
                         within && first_line + line + i < rows ? 1 : 0);
}

/* The same of lines that lie across the rows of X, by WORDS elements at a time. */
template <unsigned WORDS>
__device__ void fetch_across(slab<false> &to, const struct mm_matrix &x, unsigned first_line, unsigned step) {
    constexpr unsigned BREADTH = EDGE / WORDS; /* threads along a row */
    const unsigned depth = threadIdx.x / BREADTH;
    const unsigned line = threadIdx.x % BREADTH * WORDS;
    const unsigned rows = static_cast<unsigned>(x.rows);
    const unsigned cols = static_cast<unsigned>(x.cols);
    const unsigned count = first_line + line < cols ? min(cols - first_line - line, WORDS) : 0;
    const float *from = static_cast<const float *>(x.data) + (step + depth) * x.ld + (first_line + line);
#pragma unroll
    for (unsigned i = 0; i < DEPTH; i += THREADS / BREADTH)
        mm_copy_async<WORDS>(&to[depth + i][line], from + i * x.ld, step + depth + i < rows ? count : 0);
}

template <bool ALONG>
__device__ void fetch(slab<ALONG> &to, const struct mm_matrix &x, bool wide, unsigned first_line,
                      unsigned step) {
    if constexpr (ALONG)
        fetch_along(to, x, first_line, step);
    else if (wide)
        fetch_across<QUAD>(to, x, first_line, step);
    else
        fetch_across<1>(to, x, first_line, step);
}

/* Where a thread's squares begin: two quads along each edge, LANES quads apart, so that neighbouring threads
 * read neighbouring quads. */
template <unsigned LANES> __device__ unsigned place_of(unsigned first, unsigned index) {
    return first + index / QUAD * LANES * QUAD + index % QUAD;
}

/* What a thread multiplies at one element of k. */
struct operands {
    float a[EACH];
    float b[EACH];
};

template <unsigned LANES> __device__ void take(float (&each)[EACH], const float *row, unsigned first) {
#pragma unroll
    for (unsigned index = 0; index < EACH; index += QUAD)
        mm_read_quad(&each[index], &row[place_of<LANES>(first, index)]);
}

/* Every other row backwards, so that one multiplication has an operand in common with the next, which the
 * register file then need not deliver again: worth up to 7% (4096³ on an H200, B transposed). */
__device__ void multiply(float (&sums)[EACH][EACH], const operands &with) {
#pragma unroll
    for (unsigned i = 0; i < EACH; i++)
#pragma unroll
        for (unsigned step = 0; step < EACH; step++) {
            const unsigned j = i % 2 == 0 ? step : EACH - 1 - step;
            sums[i][j] = fmaf(with.a[i], with.b[j], sums[i][j]);
        }
}

template <bool TRANSPOSE_A, bool TRANSPOSE_B>
__global__ void __launch_bounds__(THREADS, 2) warp_tiled(const __grid_constant__ struct mm_product product) {
    alignas(sizeof(float4)) __shared__ slab<!TRANSPOSE_A> a_slab[2];
    alignas(sizeof(float4)) __shared__ slab<TRANSPOSE_B> b_slab[2];
    const unsigned first_row = blockIdx.y * EDGE;
    const unsigned first_col = blockIdx.x * EDGE;
    const bool a_wide = mm_is_wide(product.a);
    const bool b_wide = mm_is_wide(product.b);

    /* Where the thread's elements of C begin in the block's square: its warp's part, and its own in that. */
    const unsigned warp = threadIdx.x / 32;
    const unsigned lane = threadIdx.x % 32;
    const unsigned row = warp / (EDGE / WARP_COLS) * WARP_ROWS + lane / 2 % LANE_ROWS * QUAD;
    const unsigned col = warp % (EDGE / WARP_COLS) * WARP_COLS + (lane / 16 * 2 + lane % 2) * QUAD;

    /* Each thread waits for its own copies, so past the barrier the slabs are there. */
    fetch<!TRANSPOSE_A>(a_slab[0], product.a, a_wide, first_row, 0);
    fetch<TRANSPOSE_B>(b_slab[0], product.b, b_wide, first_col, 0);
    mm_wait_copies();
    __syncthreads();

    float sums[EACH][EACH] = {};
    operands with[2]; /* of this depth and of the next */
    unsigned now = 0;
    take<LANE_ROWS>(with[0].a, a_slab[0][0], row);
    take<LANE_COLS>(with[0].b, b_slab[0][0], col);
    for (unsigned step = 0; step < product.k; step += DEPTH) {
#pragma unroll
        for (unsigned depth = 0; depth < DEPTH; depth++) {
            if (depth == DEPTH - 1) {
                /* One barrier for two reasons: past it the next slabs are there, of all threads. And all have
                 * taken the last of this step's, which may be overwritten. */
                mm_wait_copies();
                __syncthreads();
                now ^= 1;
            }
            take<LANE_ROWS>(with[(depth + 1) % 2].a, a_slab[now][(depth + 1) % DEPTH], row);
            take<LANE_COLS>(with[(depth + 1) % 2].b, b_slab[now][(depth + 1) % DEPTH], col);
            if (depth == 0) {
                /* Past k come zeros, which nothing adds up. */
                fetch<!TRANSPOSE_A>(a_slab[now ^ 1], product.a, a_wide, first_row, step + DEPTH);
                fetch<TRANSPOSE_B>(b_slab[now ^ 1], product.b, b_wide, first_col, step + DEPTH);
            }
            /* Past k both operands are 0, so nothing is added; past m or n the zeros only meet sums that are
             * never stored. */
            multiply(sums, with[depth % 2]);
        }
    }

    const bool c_wide = mm_is_wide(product.c);
#pragma unroll
    for (unsigned i = 0; i < EACH; i++) {
        const unsigned c_row = first_row + place_of<LANE_ROWS>(row, i);
        if (c_row >= product.m)
            continue;
#pragma unroll
        for (unsigned j = 0; j < EACH; j += QUAD)
            mm_store_quad(product.c, c_wide, c_row, first_col + place_of<LANE_COLS>(col, j), &sums[i][j]);
    }
}

} // namespace

enum mm_status mm_cuda_warp_tiled(const struct mm_product *product, struct mm_lane *lane,
                                  struct mm_error *error) {
    static const mm_cuda_kernel kernels[2][2] = {{warp_tiled<false, false>, warp_tiled<false, true>},
                                                 {warp_tiled<true, false>, warp_tiled<true, true>}};
    struct mm_cuda_layout layout = {};
    layout.kernel = mm_cuda_pick(kernels, product);
    layout.block_rows = layout.block_cols = EDGE;
    layout.threads_x = THREADS;
    layout.threads_y = 1;
    return mm_cuda_launch(&layout, product, lane, error);
}
