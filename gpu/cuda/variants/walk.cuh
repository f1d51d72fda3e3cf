/* How a thread of a tiled kernel loads its operands. In each step along k a block copies a tile of A and a
 * tile of B to shared memory, TILE×TILE elements each. Thread (x, y) copies one element of each tile:
 *
 *     operand                   element of the stored matrix         goes to
 *     A                         [first_row + y][first_k + x]         a_tile[y][x]
 *     A, stored transposed      [first_k + y][first_row + x]         a_tile[x][y]
 *     B                         [first_k + y][first_col + x]         b_tile[y][x]
 *     B, stored transposed      [first_col + y][first_k + x]         b_tile[x][y]
 *
 * The block's square of C begins at (first_row, first_col), and the step at first_k. In each line of the
 * table a row of threads loads successive elements of one stored row. The chip fetches these together: the
 * loads are coalesced. For kernel files alone. */
#pragma once

#include "gpu/cuda/variants/kernel.cuh"

/* The walk of one thread through a stored operand: from its element of the first tile to its element of the
 * next tile, and so on. */
template <class ELEMENT> struct mm_walk {
    using type = typename ELEMENT::type;
    using sum_type = typename ELEMENT::sum_type;

    const type *element; /* in the current tile. Past an edge it points outside the matrix */
    size_t stride;       /* elements from one tile to the next */
    unsigned k_left;     /* elements along k from the thread's element of the first tile to the edge of the
                            matrix, both included; 0 if that element lies outside */

    /* Copies the element of the current tile, which begins at first_k, to shared memory, and goes on to the
     * next tile. Past an edge it loads nothing and stores 0. */
    __device__ __forceinline__ void copy(sum_type *slot, unsigned first_k) {
        *slot = k_left > first_k ? ELEMENT::value(*element) : 0;
        element += stride;
    }
};

/* Begins a walk along k. A line is a row of op(A) or a column of op(B), and the block's lines begin at
 * first_line. K_IS_DOWN: k grows down the stored columns (B, or A transposed), else along the stored rows.
 * Row r of a stored matrix begins r·ld elements after its first one. Offsets have 64 bits, because a matrix
 * may have more than 2³² elements. Sizes fit in 32 bits: mm_cuda_plan refuses a product if m, n or k is 2³¹
 * or more. */
template <class ELEMENT, unsigned TILE, bool K_IS_DOWN>
__device__ __forceinline__ mm_walk<ELEMENT> mm_walk_along_k(const struct mm_matrix &stored,
                                                            unsigned first_line) {
    const unsigned row = K_IS_DOWN ? threadIdx.y : first_line + threadIdx.y;
    const unsigned col = K_IS_DOWN ? first_line + threadIdx.x : threadIdx.x;
    const auto *element = static_cast<const typename ELEMENT::type *>(stored.data) + (row * stored.ld + col);
    const size_t stride = K_IS_DOWN ? TILE * stored.ld : TILE;
    const unsigned line = K_IS_DOWN ? col : row;
    const unsigned lines = static_cast<unsigned>(K_IS_DOWN ? stored.cols : stored.rows);
    const unsigned k_index = K_IS_DOWN ? row : col;
    const unsigned k = static_cast<unsigned>(K_IS_DOWN ? stored.rows : stored.cols);
    return {element, stride, line < lines && k_index < k ? k - k_index : 0};
}

/* This thread's walk through A. */
template <unsigned TILE, bool TRANSPOSE_A, class ELEMENT = mm_cuda_float32>
__device__ __forceinline__ mm_walk<ELEMENT> mm_walk_a(const struct mm_product &product) {
    return mm_walk_along_k<ELEMENT, TILE, TRANSPOSE_A>(product.a, blockIdx.y * TILE);
}

/* This thread's walk through B. */
template <unsigned TILE, bool TRANSPOSE_B, class ELEMENT = mm_cuda_float32>
__device__ __forceinline__ mm_walk<ELEMENT> mm_walk_b(const struct mm_product &product) {
    return mm_walk_along_k<ELEMENT, TILE, !TRANSPOSE_B>(product.b, blockIdx.x * TILE);
}

/* The word of a tile that this thread stores: [y][x], or [x][y] if the tile is turned because its operand is
 * stored transposed. Then a_tile[row][k] and b_tile[k][col] hold what the kernel's loop reads, in all four
 * cases.
 *
 * A turned tile is written down its columns. Word w of shared memory (4 bytes) lies in bank w mod 32, and a
 * bank serves one word at a time, to any number of threads. With sums of 4 bytes a thread's word lies TILE
 * words after its neighbour's. At TILE 32 all words of a warp lie in one bank and are written one after the
 * other (8 to a bank at 16, 2 at 8). That costs one slow write a step for each transposed operand. If B's
 * tile were not turned, the loop would read b_tile[x][i]: TILE reads a step with the same bank conflicts.
 * `tiled_padded` (tiled_padded.cu) avoids both. A's tile needs no turn to avoid conflicts. It is turned
 * because the words for successive i are then neighbours, which the compiler reads together. */
template <bool TURN, typename WORD, unsigned TILE>
__device__ __forceinline__ WORD *mm_slot(WORD (&tile)[TILE][TILE]) {
    return TURN ? &tile[threadIdx.x][threadIdx.y] : &tile[threadIdx.y][threadIdx.x];
}
