/* `tiled_8`, `tiled_16`, `tiled_32`: the CUDA kernel `tiled` for a CPU. Squares of TILE×TILE elements of A
 * and B are copied to small arrays, which take the place of shared memory. Each copied element is used TILE
 * times, so the matrices are read only 1/TILE as often. The inner loop reads rows that stay in the L1 cache,
 * and can be vectorized by the compiler. Copying also converts elements to the type of the sums.
 *
 * The cost is the copying and the space. With TILE 32 and elements of 4 bytes, three squares need 12 KiB of
 * the stack, a quarter of a usual L1 cache. There are no barriers, because one thread does everything. */
#include "gpu/cpu/variants.h"

#include <string.h>

/* Describes op(X) in memory. The element at (row, col) is at data + row·row_step + col·col_step. */
struct operand {
    const void *data;
    size_t row_step;
    size_t col_step;
};

static struct operand operand_of(const struct mm_matrix *matrix, bool transpose) {
    if (transpose)
        return (struct operand){matrix->data, 1, matrix->ld};
    return (struct operand){matrix->data, matrix->ld, 1};
}

/* Adds the product of two squares, rows × depths by depths × cols, to `sums`. At an edge of a matrix the
 * squares have fewer elements. The function is inlined, so loops over whole squares have constant lengths. */
#define ACCUMULATE(SUM)                                                                                      \
    static inline __attribute__((always_inline)) void accumulate_##SUM(                                      \
        SUM *sums, const SUM *a, const SUM *b, size_t tile, size_t rows, size_t depths, size_t cols) {       \
        for (size_t r = 0; r < rows; r++) {                                                                  \
            for (size_t depth = 0; depth < depths; depth++) {                                                \
                const SUM factor = a[r * tile + depth];                                                      \
                for (size_t c = 0; c < cols; c++)                                                            \
                    sums[r * tile + c] += factor * b[depth * tile + c];                                      \
            }                                                                                                \
        }                                                                                                    \
    }

ACCUMULATE(float)
ACCUMULATE(double)
ACCUMULATE(uint32_t)
ACCUMULATE(uint64_t)

/* stage_ copies rows × cols elements of op(X), beginning at (row, col), to a square. multiply_ computes
 * the whole product, and is inlined for each tile, so `tile` is a constant. */
#define MULTIPLY(constant, name, type, word, SUM, value, ...)                                                \
    static inline void stage_##constant(SUM *square, size_t tile, const struct operand *x, size_t row,       \
                                        size_t rows, size_t col, size_t cols) {                              \
        const type *first = (const type *)x->data + row * x->row_step + col * x->col_step;                   \
        for (size_t r = 0; r < rows; r++)                                                                    \
            for (size_t c = 0; c < cols; c++)                                                                \
                square[r * tile + c] = (SUM)value(first[r * x->row_step + c * x->col_step]);                 \
    }                                                                                                        \
    static inline __attribute__((always_inline)) void multiply_##constant(                                   \
        const struct mm_product *product, size_t tile, SUM *a_square, SUM *b_square, SUM *sums) {            \
        struct operand a = operand_of(&product->a, product->transpose_a);                                    \
        struct operand b = operand_of(&product->b, product->transpose_b);                                    \
        for (size_t row = 0; row < product->m; row += tile) {                                                \
            const size_t rows = mm_size_min(tile, product->m - row);                                         \
            for (size_t col = 0; col < product->n; col += tile) {                                            \
                const size_t cols = mm_size_min(tile, product->n - col);                                     \
                memset(sums, 0, tile *tile * sizeof *sums);                                                  \
                for (size_t depth = 0; depth < product->k; depth += tile) {                                  \
                    const size_t depths = mm_size_min(tile, product->k - depth);                             \
                    stage_##constant(a_square, tile, &a, row, rows, depth, depths);                          \
                    stage_##constant(b_square, tile, &b, depth, depths, col, cols);                          \
                    if (rows == tile && depths == tile && cols == tile)                                      \
                        accumulate_##SUM(sums, a_square, b_square, tile, tile, tile, tile);                  \
                    else                                                                                     \
                        accumulate_##SUM(sums, a_square, b_square, tile, rows, depths, cols);                \
                }                                                                                            \
                for (size_t r = 0; r < rows; r++)                                                            \
                    for (size_t c = 0; c < cols; c++)                                                        \
                        mm_store_c_##SUM(product, row + r, col + c, sums[r * tile + c]);                     \
            }                                                                                                \
        }                                                                                                    \
    }

MM_DTYPE_TABLE(MULTIPLY)

#define TILED(TILE, constant, SUM)                                                                           \
    static void tiled_##TILE##_##constant(const struct mm_product *product) {                                \
        _Alignas(64) SUM a_square[TILE * TILE];                                                              \
        _Alignas(64) SUM b_square[TILE * TILE];                                                              \
        _Alignas(64) SUM sums[TILE * TILE];                                                                  \
        multiply_##constant(product, TILE, a_square, b_square, sums);                                        \
    }

#define TILED_16_AND_32(constant, name, type, word, SUM, ...)                                                \
    TILED(16, constant, SUM)                                                                                 \
    TILED(32, constant, SUM)

TILED(8, MM_FLOAT32, float)
MM_DTYPE_TABLE(TILED_16_AND_32)

enum mm_status mm_cpu_tiled_8(const struct mm_product *product, struct mm_lane *lane,
                              struct mm_error *error) {
    tiled_8_MM_FLOAT32(product);
    return MM_OK;
}

#define VARIANT(TILE, ROW)                                                                                   \
    enum mm_status mm_cpu_tiled_##TILE(const struct mm_product *product, struct mm_lane *lane,               \
                                       struct mm_error *error) {                                             \
        static void (*const multiply[MM_DTYPE_COUNT])(const struct mm_product *product) = {                  \
            MM_DTYPE_TABLE(ROW)};                                                                            \
        multiply[product->a.dtype](product);                                                                 \
        return MM_OK;                                                                                        \
    }

#define ROW_16(constant, ...) [constant] = tiled_16_##constant,
#define ROW_32(constant, ...) [constant] = tiled_32_##constant,

VARIANT(16, ROW_16)
VARIANT(32, ROW_32)
