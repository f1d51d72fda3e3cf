/* tiled_8, tiled_16, tiled_32: tiles of A and B in shared memory. In `naive` each thread loads a row of A and
 * a column of B, although neighbouring threads load that row or column too. Here the threads of a block load
 * tiles together, and use each loaded element TILE times. docs/lessons/2-tiles.md explains this kernel, and
 * docs/kernels.md has measured times. Source: the shared memory example of NVIDIA's CUDA C++ Programming
 * Guide.
 *
 *                                +-------+-------+-----+    A block computes a TILE×TILE square of C, which
 *                                |       |   ↓   |     |    begins at (first_row, first_col): one element a
 *                      first_k → |       +-------+     | B  thread. The block goes along k in steps of TILE:
 *                              k |       |b_tile |     |    first_k is 0, TILE, 2·TILE and so on. At each
 *                                |       +-------+     |    step its threads copy one tile of A and one of B
 *                 k              |       |       |     |    to shared memory. Then each thread multiplies a
 *        +-----------------+     +-------+-------+-----+    row of a_tile by a column of b_tile.
 *        +-----+------+----+     +-------+-------+-----+ ← first_row
 *     m  |  →  |a_tile|    |     |       | block |     | C
 *        +-----+------+----+     +-------+-------+-----+
 *      A |     ↑ first_k   |     |       ↑ first_col   |
 *        +-----------------+     +-------+-------+-----+ */
#include "gpu/cuda/variants/kernel.cuh"

namespace {

/* ELEMENT defines how elements are converted (element.cuh). For float32, `type` and `sum_type` are float. */
template <unsigned TILE, class ELEMENT> struct tiled : mm_cuda_square<TILE> {
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        using type = typename ELEMENT::type;
        using sum_type = typename ELEMENT::sum_type;
        __shared__ sum_type a_tile[TILE][TILE];
        __shared__ sum_type b_tile[TILE][TILE];
        const unsigned x = threadIdx.x;
        const unsigned y = threadIdx.y;
        const unsigned first_row = blockIdx.y * TILE;
        const unsigned first_col = blockIdx.x * TILE;
        const unsigned k = static_cast<unsigned>(product.k); /* m, n and k are below 2³¹ */

        /* In each step the thread copies one element of A to a_tile[a_row][a_k] and one element of B to
         * b_tile[b_k][b_col]. Threads with neighbouring x load neighbouring elements of a stored row, and the
         * chip fetches these elements together. If an operand is stored transposed, x and y are exchanged, so
         * its loads stay fast. But the warp then writes to a column of the tile. If TILE is 32, the whole
         * column lies in one bank of shared memory, so this write is slow. */
        const unsigned a_row = TRANSPOSE_A ? x : y;
        const unsigned a_k = TRANSPOSE_A ? y : x;
        const unsigned b_k = TRANSPOSE_B ? x : y;
        const unsigned b_col = TRANSPOSE_B ? y : x;

        /* The addresses of the thread's elements of the first tiles, and the distances to its elements of the
         * next tiles. The thread's elements lie outside A from first_k = a_end on, and outside B from b_end
         * on. */
        const type *a = mm_element<TRANSPOSE_A, type>(product.a, first_row + a_row, a_k);
        const type *b = mm_element<TRANSPOSE_B, type>(product.b, b_k, first_col + b_col);
        const size_t a_stride = TRANSPOSE_A ? TILE * product.a.ld : TILE;
        const size_t b_stride = TRANSPOSE_B ? TILE : TILE * product.b.ld;
        const unsigned a_end = first_row + a_row < product.m && a_k < k ? k - a_k : 0;
        const unsigned b_end = first_col + b_col < product.n && b_k < k ? k - b_k : 0;

        sum_type sum = 0;
        for (unsigned first_k = 0; first_k < k; first_k += TILE) {
            /* Outside A and B the thread stores 0. A thread without an element of C must not return early,
             * because other threads need the elements that it copies, and the barriers wait for it. */
            a_tile[a_row][a_k] = first_k < a_end ? ELEMENT::value(*a) : 0;
            b_tile[b_k][b_col] = first_k < b_end ? ELEMENT::value(*b) : 0;
            a += a_stride;
            b += b_stride;

            /* Wait until both tiles are complete, because threads read what other threads wrote. */
            __syncthreads();

            /* For each i the threads of a row read one word of a_tile and neighbouring words of b_tile. Past
             * k both tiles must hold 0, because 0 times NaN or Inf is NaN. */
#pragma unroll
            for (unsigned i = 0; i < TILE; i++)
                sum = mm_cuda_multiply_add(a_tile[y][i], b_tile[i][x], sum);

            /* Wait until all threads have read the tiles, because the next step overwrites them. */
            __syncthreads();
        }

        /* Converts the sum to C's type and stores it, unless the element lies outside C. */
        mm_store_c_guarded<ELEMENT>(product, first_row + y, first_col + x, sum);
    }
};

template <class ELEMENT> using tiled_16 = tiled<16, ELEMENT>;
template <class ELEMENT> using tiled_32 = tiled<32, ELEMENT>;

} // namespace

MM_CUDA_PLAN(mm_cuda_tiled_8, mm_cuda_plan_by<tiled<8, mm_cuda_float32>>)
MM_CUDA_PLAN(mm_cuda_tiled_16, mm_cuda_plan_by_dtype<tiled_16>)
MM_CUDA_PLAN(mm_cuda_tiled_32, mm_cuda_plan_by_dtype<tiled_32>)
