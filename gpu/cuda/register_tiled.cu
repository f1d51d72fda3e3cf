/* register_tiled: registers as the next level of the memory. In `tiled` every multiplication reads shared
 * memory, and those reads set the pace. Here each thread owns an 8×8 square of C in registers: at each
 * element of k it fetches 8 elements of A and 8 of B from shared memory and uses each 8 times, 16 reads
 * for 64 multiplications. The 256 threads of a block cover 128×128 of C, so that each element fetched
 * from global memory is used 128 times as well, where `tiled_32` uses it 32 times.
 *
 * It costs up to 128 registers a thread, so that a multiprocessor holds two blocks; 8.2 KiB of
 * shared memory, for slabs of 8 elements of k; two barriers a slab; and small products leave most of
 * the chip without a block.
 *
 * The idea is old; V. Volkov's talk "Better performance at lower occupancy" (2010) made it known on GPUs. */
#include "gpu/cuda/lane.h"
#include "gpu/cuda/variants.h"

namespace {

constexpr unsigned EDGE = 128; /* of a block's square of C */
constexpr unsigned DEPTH = 8;  /* of a slab, along k */
constexpr unsigned SIDE = 16;  /* threads along either edge */
constexpr unsigned EACH = 8;   /* elements of C along either edge of a thread's own square */
constexpr unsigned THREADS = SIDE * SIDE;

/* A slab's rows are padded by 4 words: a warp that turns its operand writes 4 lines at 8 depths, whose
 * words then lie in 32 banks (4·depth + line). */
typedef float slab[DEPTH][EDGE + 4];

/* Puts DEPTH of each of EDGE lines into shared memory, depth by depth, from (first_line, step) on. A line is
 * a row of op(A) or a column of op(B). ALONG says that a line's elements are neighbours in memory (A as it
 * is, B transposed): then 8 threads read 8 elements of one line, 32 bytes, and the slab is turned as it is
 * written; else a warp reads across 32 lines. What lies past an edge becomes 0. */
template <bool ALONG>
__device__ void load(slab &to, const struct mm_matrix &x, unsigned first_line, unsigned step) {
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

/* Adds the slabs' products to the thread's square. Its rows and columns stand SIDE apart, so that
 * neighbouring threads read neighbouring words: 16 of B's and 2 of A's for a warp, and no bank is
 * asked for two. */
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

template <bool TRANSPOSE_A, bool TRANSPOSE_B>
__global__ void __launch_bounds__(THREADS, 2)
    register_tiled(const __grid_constant__ struct mm_product product) {
    __shared__ slab a_slab;
    __shared__ slab b_slab;
    const unsigned first_row = blockIdx.y * EDGE;
    const unsigned first_col = blockIdx.x * EDGE;

    float sums[EACH][EACH] = {};
    for (unsigned step = 0; step < product.k; step += DEPTH) {
        load<!TRANSPOSE_A>(a_slab, product.a, first_row, step);
        load<TRANSPOSE_B>(b_slab, product.b, first_col, step);

        /* Each thread reads what others wrote: no one starts before all have written. */
        __syncthreads();

        /* Past k both slabs hold 0, so nothing is added there; past m or n the zeros only meet sums that
         * are never stored. */
        multiply(sums, a_slab, b_slab);

        /* The next step overwrites the slabs: no one goes on before all have read. */
        __syncthreads();
    }

#pragma unroll
    for (unsigned i = 0; i < EACH; i++) {
        const unsigned row = first_row + threadIdx.y + i * SIDE;
        const unsigned col = first_col + threadIdx.x;
        float *c = static_cast<float *>(product.c.data) + row * product.c.ld + col;
        if (row >= product.m)
            continue;
#pragma unroll
        for (unsigned j = 0; j < EACH; j++)
            if (col + j * SIDE < product.n)
                c[j * SIDE] = sums[i][j];
    }
}

} // namespace

enum mm_status mm_cuda_register_tiled(const struct mm_product *product, struct mm_lane *lane,
                                      struct mm_error *error) {
    static const mm_cuda_kernel kernels[2][2] = {{register_tiled<false, false>, register_tiled<false, true>},
                                                 {register_tiled<true, false>, register_tiled<true, true>}};
    struct mm_cuda_layout layout = {};
    layout.kernel = mm_cuda_pick(kernels, product);
    layout.block_rows = layout.block_cols = EDGE;
    layout.threads_x = layout.threads_y = SIDE;
    return mm_cuda_launch(&layout, product, lane, error);
}
