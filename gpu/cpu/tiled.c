/* tiled_8, tiled_16, tiled_32: the shared-memory idea on a CPU. Squares of TILE×TILE elements of A
 * and of B are copied side by side into small arrays, and each copied element is used TILE times from
 * there, so that reads of the matrices fall to 1/TILE and the column walk of `naive` becomes a walk
 * along rows that the L1 cache holds and the compiler can vectorise. It costs 12·TILE² bytes of stack
 * (12 KiB at 32, a quarter of a usual L1) and the copying. Each element is still one sum in the order
 * of depth. The idea is that of the CUDA tutorials' shared memory; no barriers, since one thread does
 * both halves. */
#include "gpu/cpu/variants.h"

#include <string.h>

/* op(X), rows × cols, as the element at (row, col) is found in its storage. */
struct operand {
    const float *data;
    size_t rows;
    size_t cols;
    size_t row_step;
    size_t col_step;
};

static struct operand operand_of(const struct mm_matrix *matrix, bool transpose) {
    if (transpose)
        return (struct operand){matrix->data, matrix->cols, matrix->rows, 1, matrix->ld};
    return (struct operand){matrix->data, matrix->rows, matrix->cols, matrix->ld, 1};
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Copies the square of op(X) whose first element is (row, col). What lies past an edge becomes zero.
 * Past the depth both squares are zero there, so that nothing is added, not even 0·Inf; past the rows
 * of A or the columns of B the zeros only meet sums that are not stored. */
static inline void stage(float *square, size_t tile, const struct operand *x, size_t row, size_t col) {
    size_t rows = smaller(tile, x->rows - row);
    size_t cols = smaller(tile, x->cols - col);
    if (rows < tile || cols < tile)
        memset(square, 0, tile * tile * sizeof *square);
    const float *first = x->data + row * x->row_step + col * x->col_step;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            square[r * tile + c] = first[r * x->row_step + c * x->col_step];
}

/* Adds the product of two squares to a third. */
static inline void accumulate(float *sums, const float *a, const float *b, size_t tile) {
    for (size_t r = 0; r < tile; r++) {
        for (size_t depth = 0; depth < tile; depth++) {
            float factor = a[r * tile + depth];
            for (size_t c = 0; c < tile; c++)
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
        for (size_t col = 0; col < product->n; col += tile) {
            memset(sums, 0, tile * tile * sizeof *sums);
            for (size_t depth = 0; depth < product->k; depth += tile) {
                stage(a_square, tile, &a, row, depth);
                stage(b_square, tile, &b, depth, col);
                accumulate(sums, a_square, b_square, tile);
            }
            float *c = (float *)product->c.data + row * product->c.ld + col;
            size_t rows = smaller(tile, product->m - row);
            size_t cols = smaller(tile, product->n - col);
            for (size_t r = 0; r < rows; r++)
                memcpy(c + r * product->c.ld, sums + r * tile, cols * sizeof *c);
        }
    }
}

#define TILED(TILE)                                                                                          \
    enum mm_status mm_cpu_tiled_##TILE(const struct mm_product *product, struct mm_lane *lane,               \
                                       struct mm_error *error) {                                             \
        (void)lane;                                                                                          \
        (void)error;                                                                                         \
        _Alignas(64) float a_square[TILE * TILE];                                                            \
        _Alignas(64) float b_square[TILE * TILE];                                                            \
        _Alignas(64) float sums[TILE * TILE];                                                                \
        multiply(product, TILE, a_square, b_square, sums);                                                   \
        return MM_OK;                                                                                        \
    }

TILED(8)
TILED(16)
TILED(32)
