/* warp_tiled: `vectorized` (vectorized.cu) with a level between the block and the thread: a warp owns a
 * compact 64×32 of C. The warp reads fewer words at each k, and neighbouring threads read equal words. A
 * thread also reads the fragments of the next k while it multiplies the current fragments. The next slabs are
 * copied asynchronously, as in `tiled_async`. docs/kernels.md has the figures. Source: NVIDIA's CUTLASS; S.
 * Gray's "maxas" SGEMM made the order of the lanes known.
 *
 *        +----+----+----+----+    the block's 128×128 of C, by its warps w0 to w7
 *        | w0 | w1 | w2 | w3 |
 *        |    |    |    |    |    lane (row, col) of 8×4 in a warp owns 4 rows from 4·row and from 32 + 4·row
 * on,
 *        +----+----+----+----+    and 4 columns from 4·col and from 16 + 4·col on
 *        | w4 | w5 | w6 | w7 |
 *        |    |    |    |    |
 *        +----+----+----+----+ */
#include "gpu/cuda/variants/async.cuh"
#include "gpu/cuda/lane.h"
#include "gpu/cuda/variants/quad.cuh"
#include "gpu/cuda/variants.h"

namespace {

constexpr unsigned EDGE = 128;      /* elements along an edge of a block's square of C */
constexpr unsigned DEPTH = 16;      /* elements of a slab along k */
constexpr unsigned QUAD = MM_QUAD;  /* elements of one access */
constexpr unsigned EACH = 2 * QUAD; /* elements of C that a thread computes, along either edge */
constexpr unsigned LANE_ROWS = 8;   /* threads of a warp along a column of its part of C */
constexpr unsigned LANE_COLS = 4;   /* threads of a warp along a row of its part of C */
constexpr unsigned WARP_ROWS = LANE_ROWS * EACH;
constexpr unsigned WARP_COLS = LANE_COLS * EACH;
constexpr unsigned THREADS = EDGE / WARP_ROWS * (EDGE / WARP_COLS) * 32;

/* A slab has DEPTH elements of each of EDGE lines, depth by depth. A line is a row of op(A) or a column of
 * op(B). ALONG: a line's elements are neighbours in memory (A not transposed, B transposed). Then rows are
 * padded by a quad, so the 16 depths of a line that threads store at once lie in 8 banks instead of one. */
template <bool ALONG> using slab = float[DEPTH][ALONG ? EDGE + QUAD : EDGE];

/* Begins to copy a slab whose lines lie along the stored rows of X, from line first_line and k = step on. 16
 * neighbouring threads copy 16 neighbours of a line, each to another row of the slab. */
__device__ void copy_along(slab<true> &to, const struct mm_matrix &x, unsigned first_line, unsigned step) {
    constexpr unsigned LINES = THREADS / DEPTH; /* lines that a block copies at a time */
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

/* Begins to copy a slab whose lines lie across the stored rows of X. Each copy moves WORDS elements. */
template <unsigned WORDS>
__device__ void copy_across(slab<false> &to, const struct mm_matrix &x, unsigned first_line, unsigned step) {
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
__device__ void copy(slab<ALONG> &to, const struct mm_matrix &x, bool wide, unsigned first_line,
                     unsigned step) {
    if constexpr (ALONG)
        copy_along(to, x, first_line, step);
    else if (wide)
        copy_across<QUAD>(to, x, first_line, step);
    else
        copy_across<1>(to, x, first_line, step);
}

/* Returns where element `index` of a thread lies; its first element lies at `first`. A thread has two quads,
 * LANES quads apart, so neighbouring threads read neighbouring quads. */
template <unsigned LANES> __device__ unsigned offset_of(unsigned first, unsigned index) {
    return first + index / QUAD * LANES * QUAD + index % QUAD;
}

/* The elements that a thread multiplies at one k. */
struct fragments {
    float a[EACH];
    float b[EACH];
};

template <unsigned LANES>
__device__ void read_fragment(float (&each)[EACH], const float *row, unsigned first) {
#pragma unroll
    for (unsigned index = 0; index < EACH; index += QUAD)
        mm_read_quad(&each[index], &row[offset_of<LANES>(first, index)]);
}

/* Every other row goes backwards, so each multiplication shares an operand with the next multiplication, and
 * the register file delivers that operand once. This is up to 7% faster (4096³ on an H200, B transposed). */
__device__ void multiply(float (&sums)[EACH][EACH], const fragments &fragment) {
#pragma unroll
    for (unsigned i = 0; i < EACH; i++)
#pragma unroll
        for (unsigned step = 0; step < EACH; step++) {
            const unsigned j = i % 2 == 0 ? step : EACH - 1 - step;
            sums[i][j] = fmaf(fragment.a[i], fragment.b[j], sums[i][j]);
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

    /* The position of the thread's first element of C in the block's square: the start of its warp's part,
     * plus 4 times the (row, col) of its lane. */
    const unsigned warp = threadIdx.x / 32;
    const unsigned lane = threadIdx.x % 32;
    const unsigned row = warp / (EDGE / WARP_COLS) * WARP_ROWS + lane / 2 % LANE_ROWS * QUAD;
    const unsigned col = warp % (EDGE / WARP_COLS) * WARP_COLS + (lane / 16 * 2 + lane % 2) * QUAD;

    /* Copies the first slabs. Each thread waits for its own copies, so after the barrier the slabs are
     * complete. */
    copy<!TRANSPOSE_A>(a_slab[0], product.a, a_wide, first_row, 0);
    copy<TRANSPOSE_B>(b_slab[0], product.b, b_wide, first_col, 0);
    mm_wait_copies();
    __syncthreads();

    float sums[EACH][EACH] = {};
    fragments fragment[2]; /* fragments of this k and of the next k */
    unsigned stage = 0;    /* index of the slabs that are multiplied */
    read_fragment<LANE_ROWS>(fragment[0].a, a_slab[0][0], row);
    read_fragment<LANE_COLS>(fragment[0].b, b_slab[0][0], col);
    for (unsigned step = 0; step < product.k; step += DEPTH) {
#pragma unroll
        for (unsigned depth = 0; depth < DEPTH; depth++) {
            if (depth == DEPTH - 1) {
                /* The barrier has two reasons. Each thread has waited for its own copies, so after the
                 * barrier the next slabs are complete. All threads have read the last fragments of this step,
                 * so the next copies may overwrite its slabs. */
                mm_wait_copies();
                __syncthreads();
                stage ^= 1;
            }
            read_fragment<LANE_ROWS>(fragment[(depth + 1) % 2].a, a_slab[stage][(depth + 1) % DEPTH], row);
            read_fragment<LANE_COLS>(fragment[(depth + 1) % 2].b, b_slab[stage][(depth + 1) % DEPTH], col);
            if (depth == 0) {
                /* Past k these copies bring zeros, which nothing multiplies. */
                copy<!TRANSPOSE_A>(a_slab[stage ^ 1], product.a, a_wide, first_row, step + DEPTH);
                copy<TRANSPOSE_B>(b_slab[stage ^ 1], product.b, b_wide, first_col, step + DEPTH);
            }
            /* Past k both fragments are 0, so nothing is added. Zeros past m or n reach only sums that are
             * not stored. */
            multiply(sums, fragment[depth % 2]);
        }
    }

    /* Epilogue: each thread stores its sums by quads. */
    const bool c_wide = mm_is_wide(product.c);
#pragma unroll
    for (unsigned i = 0; i < EACH; i++) {
        const unsigned c_row = first_row + offset_of<LANE_ROWS>(row, i);
        mm_store_quads<LANE_COLS * QUAD>(product, c_wide, c_row, first_col, col, sums[i]);
    }
}

} // namespace

enum mm_status mm_cuda_warp_tiled(const struct mm_product *product, struct mm_plan *plan,
                                  struct mm_error *error) {
    static const mm_cuda_kernel kernels[2][2] = {{warp_tiled<false, false>, warp_tiled<false, true>},
                                                 {warp_tiled<true, false>, warp_tiled<true, true>}};
    (void)error;
    plan->layout.kernel = mm_cuda_pick(kernels, product);
    plan->layout.block_rows = plan->layout.block_cols = EDGE;
    plan->layout.threads_x = THREADS;
    plan->layout.threads_y = 1;
    return MM_OK;
}
