/* tiled_8, tiled_16, tiled_32: tiles of A and B in shared memory.
 *
 * In `naive` (naive.cu) each thread loads a row of A and a column of B from global memory, though its
 * neighbours load the same ones. Here the threads of a block load them together. A block computes a TILE×TILE
 * square of C, one element a thread. It goes along k in steps: first_k is 0, TILE, 2·TILE and so on. At each
 * step it copies one tile of A and one of B to shared memory. Then each thread multiplies a row of the first
 * by a column of the second. Every loaded element is used TILE times, so threads issue 1/TILE of the loads.
 *
 *                                          n
 *                                +-------+-------+-----+
 *                                |       |   ↓   |     |
 *                      first_k → |       +-------+     | B
 *                              k |       |b_tile |     |
 *                                |       +-------+     |
 *                 k              |       |       |     |
 *        +-----------------+     +-------+-------+-----+
 *        |                 |     | (0,0) | (1,0) |(2,0)| C, a block (blockIdx.x, blockIdx.y) for each square
 *        +-----+------+----+     +-------+-------+-----+ ← first_row of block (1,1)
 *     m  |  →  |a_tile|    |     | (0,1) | (1,1) |(2,1)|
 *        +-----+------+----+     +-------+-------+-----+
 *      A |     ↑ first_k   |     | (0,2) | (1,2) |(2,2)|
 *        +-----------------+     +-------+-------+-----+
 *                                        ↑ first_col of block (1,1)
 *
 * Loads: all matrices are row-major. A thread's place in its block is (x, y), with x from left to right. At
 * each step it loads one element of each tile, and stores it where a_tile[row][k] and b_tile[k][col] need it.
 * The tile of a transposed operand is turned (written to [x][y]):
 *
 *     operand                   element of the stored matrix         goes to
 *     A                         [first_row + y][first_k + x]         a_tile[y][x]
 *     A, stored transposed      [first_k + y][first_row + x]         a_tile[x][y]
 *     B                         [first_k + y][first_col + x]         b_tile[y][x]
 *     B, stored transposed      [first_col + y][first_k + x]         b_tile[x][y]
 *
 * The 32 threads of a warp run together. At TILE 32 a warp is one row of the block (x = 0..31, one y), at 16
 * two rows, at 8 four. In each line of the table a row of threads loads successive elements of one stored
 * row. The chip fetches these together: the loads are coalesced. One TILE serves m, n and k, so a tile has as
 * many elements as the block has threads. Tiles of another shape would need a loop over loads.
 *
 * Types: tiled_16 and tiled_32 take every element type. tiled_8 takes float32 only: it is there to be
 * compared. The numbers here and below are those of float32. A thread converts its elements to the type of
 * the sums on their way into shared memory, once for TILE uses. Sums of float64 are float64, of all other
 * floats float32. Sums of int64 have 64 bits and wrap modulo 2⁶⁴; those of narrower integers have 32 bits and
 * wrap modulo 2³². At the end the thread converts its sum to C's type, which may differ from A's: int8 gives
 * int32, and float16 gives float32 if the client asks for it.
 *
 * Edges: for m = n = k = 100 and TILE 32, 4×4 blocks cover 128×128 of C, and the steps at 0, 32, 64 and 96
 * cover 128 of k. A thread whose element lies past an edge loads nothing and stores 0 in the tile. A thread
 * whose element of C lies past an edge does not store it. But it must not return early: it may still load for
 * others. Nor may it skip a barrier, which waits for every thread that has not ended. If k is 0 there is no
 * step, and C becomes 0. If m or n is 0 nothing is launched.
 *
 * Launch: kernel.cuh and launch.c do what these two lines sketch; 1024³ at TILE 32 takes 32×32 blocks of 1024
 * threads. Shared memory is static, so the launch asks for none.
 *
 *     __global__ void mm_cuda_one(mm_product product) { tiled<TILE, ELEMENT>::run<false, false>(product); }
 *     mm_cuda_one<<<dim3(⌈n/TILE⌉, ⌈m/TILE⌉), dim3(TILE, TILE)>>>(product);
 *
 * A batch of small products, or a stack, is one launch too, with a layer of blocks for each product. Its
 * kernel gets all products as one argument. A block calls `run` with product number blockIdx.z; its
 * blockIdx.x and blockIdx.y count from the first block of that product.
 *
 * Cost: 2·TILE²·4 bytes of shared memory a block (512 bytes, 2 KiB, 8 KiB; the latter two twice that for sums
 * of 8 bytes) and two barriers a step. Each multiplication reads one word of b_tile and one of a_tile; the
 * compiler joins the reads of a_tile for four successive i into one. Now these reads of shared memory take
 * longest, not the global loads. At TILE 32 a block has 1024 threads. A multiprocessor of an H200 runs 2048,
 * so it has at most two blocks: while the warps of one wait at a barrier, only the other can fill the gap.
 *
 * Measured on an H200 at 1024³: tiled_8 0.439 ms, tiled_16 0.280 ms, tiled_32 0.250 ms, `naive` 0.366 ms.
 * tiled_8 issues fewer loads than `naive` but is slower. The 32×8 threads of a block of `naive` find most of
 * theirs in the L1 cache: 16.7 million sectors of 32 bytes come from the L2 cache, for tiled_8 26.2 million.
 *
 * Source: the shared memory example of NVIDIA's CUDA C++ Programming Guide. */
#include "gpu/cuda/variants/kernel.cuh"
#include "gpu/cuda/variants.h"

namespace {

/* How many elements there are along k from an element of the stored matrix to its edge, both included; 0 if
 * the matrix has no such element. Of an A of 100×100: 96 from (3, 4) on, 0 from (100, 4) on. K_IS_DOWN: k
 * grows down the stored columns (B, or A transposed), else along the stored rows. A line is what lies along
 * k: a row of A or a column of B, as the product sees them. Sizes fit in 32 bits: mm_cuda_plan refuses a
 * product if m, n or k is 2³¹ or more. */
template <bool K_IS_DOWN>
__device__ unsigned k_left(const struct mm_matrix &stored, unsigned stored_row, unsigned stored_col) {
    const unsigned lines = static_cast<unsigned>(K_IS_DOWN ? stored.cols : stored.rows);
    const unsigned k = static_cast<unsigned>(K_IS_DOWN ? stored.rows : stored.cols);
    const unsigned line = K_IS_DOWN ? stored_col : stored_row;
    const unsigned k_index = K_IS_DOWN ? stored_row : stored_col;
    return line < lines && k_index < k ? k - k_index : 0;
}

/* C++ for readers of C: the compiler makes a copy of a template for each set of its parameters. In the four
 * copies of `run` TRANSPOSE_A and TRANSPOSE_B are constants, so their ?: cost nothing when it runs. `&` in a
 * declaration gives a variable a second name; `using` is typedef. The struct inherits the sizes of block and
 * grid from mm_cuda_square: a block has TILE×TILE threads and computes as many elements. */
template <unsigned TILE, class ELEMENT> struct tiled : mm_cuda_square<TILE> {
    /* element.cuh makes ELEMENT from the table of element types. `value` converts an element to sum_type. */
    using type = typename ELEMENT::type;         /* float, if the operands are float32; int8_t, if int8 */
    using sum_type = typename ELEMENT::sum_type; /* float; uint32_t */

    /* The body of the kernel, what one thread does; kernel.cuh has the __global__ function around it. The
     * matrices lie in device memory; the elements of A and B have this `type`. A is stored as m×k, or as k×m
     * if TRANSPOSE_A; B as k×n, or as n×k if TRANSPOSE_B. Row r of a stored matrix begins r·ld elements after
     * its first one. Offsets have 64 bits, as ld has: a matrix may have more than 2³² elements. */
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>
    static __device__ __forceinline__ void run(const struct mm_product &product) {
        __shared__ sum_type a_tile[TILE][TILE];
        __shared__ sum_type b_tile[TILE][TILE];
        const unsigned x = threadIdx.x;
        const unsigned y = threadIdx.y;
        const unsigned first_row = blockIdx.y * TILE;
        const unsigned first_col = blockIdx.x * TILE;

        /* Where this thread's element of the first tile lies in the stored A. Its element of the next
         * tile lies a stride further: TILE columns to the right, or TILE rows down if A is transposed. a_left
         * counts the elements along k from this thread's element in the first tile to the edge of A; it is 0
         * if that element lies outside. While first_k is below it, the element is inside A; after that `a`
         * points outside A, perhaps at another row, and is not read. */
        const unsigned a_row = TRANSPOSE_A ? y : first_row + y;
        const unsigned a_col = TRANSPOSE_A ? first_row + x : x;
        const type *a = static_cast<const type *>(product.a.data) + (a_row * product.a.ld + a_col);
        const size_t a_stride = TRANSPOSE_A ? TILE * product.a.ld : TILE;
        const unsigned a_left = k_left<TRANSPOSE_A>(product.a, a_row, a_col);

        /* The same for B: TILE rows down, or to the right if B is transposed. k grows down the stored B
         * unless B is transposed. */
        const unsigned b_row = TRANSPOSE_B ? first_col + y : y;
        const unsigned b_col = TRANSPOSE_B ? x : first_col + x;
        const type *b = static_cast<const type *>(product.b.data) + (b_row * product.b.ld + b_col);
        const size_t b_stride = TRANSPOSE_B ? TILE : TILE * product.b.ld;
        const unsigned b_left = k_left<!TRANSPOSE_B>(product.b, b_row, b_col);

        sum_type sum = 0;
        for (unsigned first_k = 0; first_k < product.k; first_k += TILE) { /* cannot wrap: k is below 2³¹ */
            /* Word w of shared memory (4 bytes) lies in bank w mod 32. A bank serves one word at a time, to
             * any number of threads. A turned tile is written down its columns: with sums of 4 bytes, a
             * thread's word lies TILE words after its neighbour's. At TILE 32 all words of a warp then lie in
             * one bank and are written one after the other (8 to a bank at 16, 2 at 8). That costs one slow
             * write a step for each transposed operand.
             *
             * If B's tile were not turned, the loop below would read b_tile[x][i]: TILE reads a step with the
             * same bank conflicts. `tiled_padded` (tiled_padded.cu) shows how to avoid both. A's tile needs
             * no turn to avoid conflicts. It is turned for two reasons: one loop then serves all four cases,
             * and the words for successive i are neighbours, which the compiler reads together. */
            sum_type &a_slot = TRANSPOSE_A ? a_tile[x][y] : a_tile[y][x];
            a_slot = a_left > first_k ? ELEMENT::value(*a) : 0;
            a += a_stride;
            sum_type &b_slot = TRANSPOSE_B ? b_tile[x][y] : b_tile[y][x];
            b_slot = b_left > first_k ? ELEMENT::value(*b) : 0;
            b += b_stride;

            /* Each thread reads what others wrote: none may read before all have written. */
            __syncthreads();

            /* For each i a warp reads one word of a_tile, which its threads share (2 words at TILE 16, 4 at
             * 8), and successive words of b_tile: no bank is asked for two words. (Sums of 8 bytes take two
             * passes: for b_tile at TILE 32, for a_tile at 16.) Past k both tiles hold 0, so 0·0 is added;
             * with a 0 in only one, a NaN or Inf in the other would spoil the sum. Zeros past m or n only
             * reach sums that are not stored. mm_cuda_multiply_add(a, b, sum) is a·b + sum, rounded once. */
#pragma unroll
            for (unsigned i = 0; i < TILE; i++)
                sum = mm_cuda_multiply_add(a_tile[y][i], b_tile[i][x], sum);

            /* The next step overwrites the tiles: none may write before all have read. (After the last step
             * nothing remains to protect; a test for that would cost more than the barrier.) */
            __syncthreads();
        }

        /* Converts the sum to C's type and stores it, unless the element lies past an edge of C. */
        mm_store_c_guarded<ELEMENT>(product, first_row + y, first_col + x, sum);
    }
};

template <class ELEMENT> using tiled_16 = tiled<16, ELEMENT>;
template <class ELEMENT> using tiled_32 = tiled<32, ELEMENT>;

} // namespace

/* When a product waits in the queue, mm_cuda_plan calls the function that the table in variants.h names for
 * its variant. The function chooses what is to be launched: the kernel around `run` for this product's
 * element type and transposes, and the sizes of grid and block. (mm_cuda_plan_by takes a struct,
 * mm_cuda_plan_by_dtype a template, which it makes into a struct for each element type.) It launches nothing
 * and always succeeds: mm_cuda_plan has refused types that the table does not name. Later mm_cuda_launch
 * launches the kernel with the product as its argument, by value; mm_cuda_launch_batch launches a batch. Both
 * report a launch that CUDA refuses; a fault while the kernel runs fails the request that waits for the
 * result. A grid has at most 65535 blocks along y. If C needs more, mm_cuda_launch splits it into bands of
 * rows and launches each as a product of its own: with a smaller m, and with A and C cut to the band. */
enum mm_status mm_cuda_tiled_8(const struct mm_product *product, struct mm_plan *plan,
                               struct mm_error *error) {
    return mm_cuda_plan_by<tiled<8, mm_cuda_float32>>(product, plan, error);
}

enum mm_status mm_cuda_tiled_16(const struct mm_product *product, struct mm_plan *plan,
                                struct mm_error *error) {
    return mm_cuda_plan_by_dtype<tiled_16>(product, plan, error);
}

enum mm_status mm_cuda_tiled_32(const struct mm_product *product, struct mm_plan *plan,
                                struct mm_error *error) {
    return mm_cuda_plan_by_dtype<tiled_32>(product, plan, error);
}
