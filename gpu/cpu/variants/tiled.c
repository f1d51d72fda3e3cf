/* tiled_8, tiled_16, tiled_32: the shared-memory idea on a CPU. Squares of TILE×TILE elements of A
 * and of B are copied side by side into small arrays, and each copied element is used TILE times from
 * there, so that reads of the matrices fall to 1/TILE and the column walk of `naive` becomes a walk
 * along rows that the L1 cache holds and the compiler can vectorise. It costs 12·TILE² bytes of stack
 * (12 KiB at 32, a quarter of a usual L1) and the copying. Each element is still one sum in the order
 * of depth. The idea is that of the CUDA tutorials' shared memory; no barriers, since one thread does
 * both halves. */
#include "gpu/cpu/variants.h"

#include <string.h>

/* op(X), as the element at (row, col) is found in its storage. */
struct operand {
    const float *data;
    size_t row_step;
    size_t col_step;
};

static struct operand operand_of(const struct mm_matrix *matrix, bool transpose) {
    if (transpose)
        return (struct operand){matrix->data, 1, matrix->ld};
    return (struct operand){matrix->data, matrix->ld, 1};
}

/* Copies the rows × cols elements of op(X) from (row, col) on. */
static inline void stage(float *square, size_t tile, const struct operand *x, size_t row, size_t rows,
                         size_t col, size_t cols) {
    const float *first = x->data + row * x->row_step + col * x->col_step;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            square[r * tile + c] = first[r * x->row_step + c * x->col_step];
}

/* Adds the product of a square's rows × depths and another's depths × cols to a third. Inlined, so that whole
 * squares have loops of a known length. At an edge of a matrix the squares hold less. */
static inline __attribute__((always_inline)) void accumulate(float *sums, const float *a, const float *b,
                                                             size_t tile, size_t rows, size_t depths,
                                                             size_t cols) {
    for (size_t r = 0; r < rows; r++) {
        for (size_t depth = 0; depth < depths; depth++) {
            float factor = a[r * tile + depth];
            for (size_t c = 0; c < cols; c++)
                sums[r * tile + c] += factor * b[depth * tile + c];
        }
    }
}

/* The whole product. Inlined into one function a tile, where `tile` is a constant and the loops over
 * it have a known length. */
static inline __attribute__((always_inline)) void multiply(const struct mm_product *product, size_t tile,
                                                           float *a_square, float *b_square, float *sums) {
    struct operand a = operand_of(&product->a, product->transpose_a);
    struct operand b = operand_of(&product->b, product->transpose_b);
    for (size_t row = 0; row < product->m; row += tile) {
        const size_t rows = mm_size_min(tile, product->m - row);
        for (size_t col = 0; col < product->n; col += tile) {
            const size_t cols = mm_size_min(tile, product->n - col);
            memset(sums, 0, tile * tile * sizeof *sums);
            for (size_t depth = 0; depth < product->k; depth += tile) {
                const size_t depths = mm_size_min(tile, product->k - depth);
                stage(a_square, tile, &a, row, rows, depth, depths);
                stage(b_square, tile, &b, depth, depths, col, cols);
                if (rows == tile && depths == tile && cols == tile)
                    accumulate(sums, a_square, b_square, tile, tile, tile, tile);
                else
                    accumulate(sums, a_square, b_square, tile, rows, depths, cols);
            }
            float *c = (float *)product->c.data + row * product->c.ld + col;
            for (size_t r = 0; r < rows; r++)
                memcpy(c + r * product->c.ld, sums + r * tile, cols * sizeof *c);
        }
    }
}

#define TILED(TILE)                                                                                          \
    enum mm_status mm_cpu_tiled_##TILE(const struct mm_product *product, struct mm_lane *lane,               \
                                       struct mm_error *error) {                                             \
        _Alignas(64) float a_square[TILE * TILE];                                                            \
        _Alignas(64) float b_square[TILE * TILE];                                                            \
        _Alignas(64) float sums[TILE * TILE];                                                                \
        multiply(product, TILE, a_square, b_square, sums);                                                   \
        return MM_OK;                                                                                        \
    }

TILED(8)
TILED(16)
TILED(32)
