/* transpose shared: the shared-memory idea on a CPU. A square of 32×32 elements of A is read row by row
 * into a small array, and written from there row by row of C, so that both matrices are walked along
 * their cache lines and the column walk happens in an array that the L1 cache holds. It costs 4 or
 * 8 KiB of stack and the copying. The idea is that of the CUDA tutorials' transpose through a tile. */
#include "gpu/cpu/transpose.h"
#include "gpu/cpu/variants.h"

enum { TILE = 32 };

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

#define TRANSPOSE(TYPE)                                                                                      \
    /* The rows × cols of C whose first element is (row, col). Inlined, so that whole squares have loops of \
     * a known length. */                                                                                    \
    static inline __attribute__((always_inline)) void move_##TYPE(                                           \
        const struct mm_product *product, size_t row, size_t col, size_t rows, size_t cols) {                \
        _Alignas(64) TYPE tile[TILE][TILE];                                                                  \
        const TYPE *a = (const TYPE *)product->a.data + col * product->a.ld + row;                           \
        TYPE *c = (TYPE *)product->c.data + row * product->c.ld + col;                                       \
        for (size_t y = 0; y < cols; y++)                                                                    \
            for (size_t x = 0; x < rows; x++)                                                                \
                tile[y][x] = a[y * product->a.ld + x];                                                       \
        for (size_t y = 0; y < rows; y++)                                                                    \
            for (size_t x = 0; x < cols; x++)                                                                \
                c[y * product->c.ld + x] = tile[x][y];                                                       \
    }                                                                                                        \
    static void transpose_##TYPE(const struct mm_product *product) {                                         \
        for (size_t row = 0; row < product->m; row += TILE) {                                                \
            for (size_t col = 0; col < product->n; col += TILE) {                                            \
                size_t rows = smaller(TILE, product->m - row);                                               \
                size_t cols = smaller(TILE, product->n - col);                                               \
                if (rows == TILE && cols == TILE)                                                            \
                    move_##TYPE(product, row, col, TILE, TILE);                                              \
                else                                                                                         \
                    move_##TYPE(product, row, col, rows, cols);                                              \
            }                                                                                                \
        }                                                                                                    \
    }

TRANSPOSE(uint32_t)
TRANSPOSE(uint64_t)

enum mm_status mm_cpu_transpose_shared(const struct mm_product *product, struct mm_lane *lane,
                                       struct mm_error *error) {
    (void)lane;
    (void)error;
    return mm_cpu_transpose(product, transpose_uint32_t, transpose_uint64_t);
}
