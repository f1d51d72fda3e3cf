/* tiled_wide: `tiled_16` (tiled.cu) with 32 tiles of A and of B at a time, so a step covers 512 of k instead
 * of 16. It shows that a larger tile pays only in the directions in which elements are used again.
 *
 *                                       n                  a step of tiled_16:    □
 *                              +-----+-----+----+          a step of tiled_wide:  32 of them
 *                              |     |  □  |    |
 *                           k  |     |  □  |    | B        An element of A is used once for each column of
 *                              |     |  ⋮  |    |          the square of C: 16 times. An element of B is used
 *               k              |     |  □  |    |          once for each of its rows: 16 times. How long the
 *        +-------------+       +-----+-----+----+          tiles are along k does not matter.
 *        |             |       |     |     |    |
 *     m  | □ □ □ … □   | A     |     |16×16|    | C
 *        +-------------+       +-----+-----+----+
 *
 * Loads: as in `tiled_16`, 1/16 of those of `naive`. In each step a thread copies one element of each tile,
 * and turns the tile of a transposed operand. The tiles lie one behind another in shared memory, each as in
 * `tiled_16`, so banks are met as there.
 *
 * Edges: as in `tiled_16`. The last step has only as many tiles as are left of k.
 *
 * Launch: as `tiled_16`, ⌈n/16⌉×⌈m/16⌉ blocks of 16×16 threads.
 *
 * Cost: 2·32·16·16·4 bytes of shared memory a block: 64 KiB. That is more than the 48 KiB that a kernel may
 * declare statically, so it is dynamic, as in `tiled_dynamic` (tiled_dynamic.cu). For it a block has two
 * barriers in 512 of k instead of 64. But a multiprocessor holds fewer blocks. One of an H100 or H200 has 228
 * KiB of shared memory, and each block takes 1 KiB more for the system: 3 blocks take 3·65 = 195 KiB, and 4
 * would take 260. Of `tiled_16` it holds 8 blocks, which have all of the 2048 threads that it can run. So
 * here shared memory limits the blocks, and a multiprocessor runs 24 warps instead of 64. The L1 cache
 * shrinks as well: it has what shared memory leaves of 256 KiB.
 *
 * Measured on an H100: 0.268 ms at 1024³ and 16.8 ms at 4096³; `tiled_16` takes 0.280 and 16.8 ms. So the
 * missing warps cost nothing. Each multiplication reads shared memory as often as in `tiled_16`, these reads
 * set the pace, and 24 warps are enough to keep shared memory busy. For 228×240 · 240×112 it takes 0.0084 ms,
 * and `tiled_16` 0.0131. There all of k is one step, with two barriers instead of 30, and a thread has the
 * loads of four tiles under way at a time. C has only 105 blocks, so a multiprocessor has no second block
 * that could compute while the first waits.
 *
 * What to see: a benchmark predicts the same global loads as for `tiled_16`. `GET /v1/variants` shows 65,536
 * bytes of dynamic shared memory, and the blocks that remain.
 *
 * Source: the occupancy arithmetic is that of NVIDIA's CUDA C++ Best Practices Guide. */
#include "gpu/cuda/variants/kernel.cuh"
#include "gpu/cuda/variants.h"

namespace {

constexpr unsigned TILE = 16;
constexpr unsigned TILES = 32; /* of A, and of B, in a step */
constexpr unsigned DEPTH = TILES * TILE;

/* How much of k is left in a stored matrix from (row, col) on, as in `tiled`. */
template <bool K_DOWN> __device__ unsigned k_left(const struct mm_matrix &x, unsigned row, unsigned col) {
    const unsigned line = K_DOWN ? col : row;
    const unsigned lines = static_cast<unsigned>(K_DOWN ? x.cols : x.rows);
    const unsigned depth = K_DOWN ? row : col;
    const unsigned k = static_cast<unsigned>(K_DOWN ? x.rows : x.cols);
    return line < lines && depth < k ? k - depth : 0;
}

struct tiled_wide : mm_cuda_square<TILE> {
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        extern __shared__ float shared[][TILE][TILE];
        float(*const a_tiles)[TILE][TILE] = shared;
        float(*const b_tiles)[TILE][TILE] = shared + TILES;
        const unsigned x = threadIdx.x;
        const unsigned y = threadIdx.y;
        const unsigned first_row = blockIdx.y * TILE;
        const unsigned first_col = blockIdx.x * TILE;

        /* This thread's element of the first tile of A and of B, and the way to the next tile, as in
         * `tiled`. */
        const unsigned a_row = TRANSPOSE_A ? y : first_row + y;
        const unsigned a_col = TRANSPOSE_A ? first_row + x : x;
        const float *a = static_cast<const float *>(product.a.data) + (a_row * product.a.ld + a_col);
        const size_t a_stride = TRANSPOSE_A ? TILE * product.a.ld : TILE;
        const unsigned a_left = k_left<TRANSPOSE_A>(product.a, a_row, a_col);

        const unsigned b_row = TRANSPOSE_B ? first_col + y : y;
        const unsigned b_col = TRANSPOSE_B ? x : first_col + x;
        const float *b = static_cast<const float *>(product.b.data) + (b_row * product.b.ld + b_col);
        const size_t b_stride = TRANSPOSE_B ? TILE : TILE * product.b.ld;
        const unsigned b_left = k_left<!TRANSPOSE_B>(product.b, b_row, b_col);

        float sum = 0.0f;
        for (unsigned first_k = 0; first_k < product.k; first_k += DEPTH) { /* cannot wrap: k is below 2³¹ */
            const unsigned k_of_step = min(static_cast<unsigned>(product.k) - first_k, DEPTH);
            const unsigned tiles = (k_of_step + TILE - 1) / TILE;
            for (unsigned tile = 0; tile < tiles; tile++) {
                float &a_slot = TRANSPOSE_A ? a_tiles[tile][x][y] : a_tiles[tile][y][x];
                a_slot = a_left > first_k + tile * TILE ? *a : 0.0f;
                a += a_stride;
                float &b_slot = TRANSPOSE_B ? b_tiles[tile][x][y] : b_tiles[tile][y][x];
                b_slot = b_left > first_k + tile * TILE ? *b : 0.0f;
                b += b_stride;
            }

            /* Each thread reads what others wrote: none may read before all have written. */
            __syncthreads();

            /* Past k both tiles hold 0, so nothing is added there. */
            for (unsigned tile = 0; tile < tiles; tile++)
#pragma unroll
                for (unsigned i = 0; i < TILE; i++)
                    sum = fmaf(a_tiles[tile][y][i], b_tiles[tile][i][x], sum);

            /* The next step overwrites the tiles: none may write before all have read. */
            __syncthreads();
        }

        mm_store_c_guarded(product, first_row + y, first_col + x, sum);
    }
};

} // namespace

enum mm_status mm_cuda_tiled_wide(const struct mm_product *product, struct mm_plan *plan,
                                  struct mm_error *error) {
    const enum mm_status status = mm_cuda_plan_by<tiled_wide>(product, plan, error);
    plan->layout.dynamic_shared_bytes = 2 * TILES * TILE * TILE * sizeof(float);
    return status;
}
