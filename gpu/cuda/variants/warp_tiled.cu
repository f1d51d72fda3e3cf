/* warp_tiled: `vectorized` (vectorized.cu) with compact tiles for warps. A warp computes 64×32 elements of C,
 * so it reads fewer words of shared memory at each k. A thread multiplies the elements of one k while it
 * reads those of the next k from shared memory. The next slabs are copied asynchronously, as in
 * `tiled_async`. docs/kernels.md has measured times. Source: NVIDIA's CUTLASS, and S. Gray's "maxas" SGEMM
 * for the order of the lanes.
 *
 *        +----+----+----+----+    A block computes 128×128 elements of C with 8 warps, w0 to w7. The 32 lanes
 *        | w0 | w1 | w2 | w3 |    of a warp form 8 rows and 4 columns. Lane (row, col) computes
 *        |    |    |    |    |        4 rows from 4·row and 4 rows from 32 + 4·row,
 *        +----+----+----+----+        4 columns from 4·col and 4 columns from 16 + 4·col,
 *        | w4 | w5 | w6 | w7 |    counted from the corner of its warp's part.
 *        |    |    |    |    |
 *        +----+----+----+----+ */
#include "gpu/cuda/variants/async.cuh"
#include "gpu/cuda/lane.h"
#include "gpu/cuda/variants/quad.cuh"
#include "gpu/cuda/variants.h"

namespace {

constexpr unsigned EDGE = 128;      /* side of a block's square of C, in elements */
constexpr unsigned DEPTH = 16;      /* length of a step along k */
constexpr unsigned QUAD = MM_QUAD;  /* elements of one access */
constexpr unsigned EACH = 2 * QUAD; /* a thread computes EACH×EACH elements of C */
constexpr unsigned LANE_ROWS = 8;   /* rows of lanes in a warp */
constexpr unsigned LANE_COLS = 4;   /* columns of lanes in a warp */
constexpr unsigned WARP_ROWS = LANE_ROWS * EACH;
constexpr unsigned WARP_COLS = LANE_COLS * EACH;
constexpr unsigned THREADS = EDGE / WARP_ROWS * (EDGE / WARP_COLS) * 32;

/* A slab is the part of A or B that a block loads in one step: DEPTH elements of each of EDGE lines. A line
 * is a row of op(A) or a column of op(B). If ALONG, the elements of a line are neighbours in global memory.
 * Then copies transpose the slab, and padding reduces 16-way bank conflicts to 2-way conflicts. */
template <bool ALONG> using slab = float[DEPTH][ALONG ? EDGE + QUAD : EDGE];

/* Starts to copy a slab whose lines are stored rows. The slab begins at line first_line and k = step. 16
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

/* Starts to copy a slab whose lines are stored columns. Each copy moves WORDS elements. */
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

/* Returns the position of the thread's element `index`. `first` is the position of element 0. A thread has
 * two quads, LANES quads apart, so neighbouring threads read neighbouring quads. */
template <unsigned LANES> __device__ unsigned offset_of(unsigned first, unsigned index) {
    return first + index / QUAD * LANES * QUAD + index % QUAD;
}

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

/* Every other row of sums goes backwards, so successive multiplications share an operand, which is then read
 * from the registers only once. This is up to 7% faster (4096³ on an H200, B transposed). */
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

    /* The thread's first element of C in the block's square. */
    const unsigned warp = threadIdx.x / 32;
    const unsigned lane = threadIdx.x % 32;
    const unsigned row = warp / (EDGE / WARP_COLS) * WARP_ROWS + lane / 2 % LANE_ROWS * QUAD;
    const unsigned col = warp % (EDGE / WARP_COLS) * WARP_COLS + (lane / 16 * 2 + lane % 2) * QUAD;

    copy<!TRANSPOSE_A>(a_slab[0], product.a, a_wide, first_row, 0);
    copy<TRANSPOSE_B>(b_slab[0], product.b, b_wide, first_col, 0);
    /* Wait until all threads have finished their copies of the first slabs. */
    mm_wait_copies();
    __syncthreads();

    float sums[EACH][EACH] = {};
    fragments fragment[2]; /* for this k and the next k */
    unsigned stage = 0;    /* the slabs to multiply */
    read_fragment<LANE_ROWS>(fragment[0].a, a_slab[0][0], row);
    read_fragment<LANE_COLS>(fragment[0].b, b_slab[0][0], col);
    for (unsigned step = 0; step < product.k; step += DEPTH) {
#pragma unroll
        for (unsigned depth = 0; depth < DEPTH; depth++) {
            if (depth == DEPTH - 1) {
                /* After this barrier the next slabs are complete, because each thread has waited for its own
                 * copies. All threads have read the current slabs, so the next copies may overwrite them. */
                mm_wait_copies();
                __syncthreads();
                stage ^= 1;
            }
            read_fragment<LANE_ROWS>(fragment[(depth + 1) % 2].a, a_slab[stage][(depth + 1) % DEPTH], row);
            read_fragment<LANE_COLS>(fragment[(depth + 1) % 2].b, b_slab[stage][(depth + 1) % DEPTH], col);
            if (depth == 0) {
                /* Past k these copies store zeros. */
                copy<!TRANSPOSE_A>(a_slab[stage ^ 1], product.a, a_wide, first_row, step + DEPTH);
                copy<TRANSPOSE_B>(b_slab[stage ^ 1], product.b, b_wide, first_col, step + DEPTH);
            }
            /* Elements past k are 0 in both fragments, so they add nothing to the sums. */
            multiply(sums, fragment[depth % 2]);
        }
    }

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
