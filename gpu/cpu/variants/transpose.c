/* The CPU's transposes. Elements are moved as words of their size, whatever they mean.
 *
 * naive: C row by row, so writes follow each other, and every read is a step down a column of A, on a cache
 * line of its own. Once a column has more lines than the cache holds, each element costs a line from memory.
 *
 * shared: the shared-memory idea of the CUDA tutorials on a CPU. A square of 32×32 elements of A is read row
 * by row into a small array, and written from there row by row of C. Both matrices are walked along their
 * cache lines, and the column walk happens in an array of 1 to 8 KiB that the L1 cache holds. It costs the
 * copying. */
#include "gpu/cpu/variants.h"

#include <string.h>

enum { TILE = 32 };

#define TRANSPOSES(TYPE)                                                                                     \
    static void naive_##TYPE(const struct mm_product *product) {                                             \
        const TYPE *a = product->a.data;                                                                     \
        TYPE *c = product->c.data;                                                                           \
        for (size_t row = 0; row < product->m; row++)                                                        \
            for (size_t col = 0; col < product->n; col++)                                                    \
                c[row * product->c.ld + col] = a[col * product->a.ld + row];                                 \
    }                                                                                                        \
    /* The rows × cols of C whose first element is (row, col). Inlined, so whole squares have loops of      \
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
    static void shared_##TYPE(const struct mm_product *product) {                                            \
        for (size_t row = 0; row < product->m; row += TILE) {                                                \
            for (size_t col = 0; col < product->n; col += TILE) {                                            \
                const size_t rows = mm_size_min(TILE, product->m - row);                                     \
                const size_t cols = mm_size_min(TILE, product->n - col);                                     \
                if (rows == TILE && cols == TILE)                                                            \
                    move_##TYPE(product, row, col, TILE, TILE);                                              \
                else                                                                                         \
                    move_##TYPE(product, row, col, rows, cols);                                              \
            }                                                                                                \
        }                                                                                                    \
    }

TRANSPOSES(uint8_t)
TRANSPOSES(uint16_t)
TRANSPOSES(uint32_t)
TRANSPOSES(uint64_t)

typedef void turner(const struct mm_product *product);

static turner *const turn_naive[MM_DTYPE_COUNT] = {
#define X(constant, name, type, word, ...) [constant] = naive_##word,
    MM_DTYPE_TABLE(X)
#undef X
};

static turner *const turn_shared[MM_DTYPE_COUNT] = {
#define X(constant, name, type, word, ...) [constant] = shared_##word,
    MM_DTYPE_TABLE(X)
#undef X
};

/* If A is stored column by column, C is there already, and its rows are only copied. */
static enum mm_status transpose(const struct mm_product *product, turner *const *turn) {
    const size_t element_bytes = mm_dtype_bytes(product->a.dtype);
    if (product->transpose_a)
        turn[product->a.dtype](product);
    for (size_t row = 0; row < product->m && !product->transpose_a; row++)
        memcpy((char *)product->c.data + row * product->c.ld * element_bytes,
               (const char *)product->a.data + row * product->a.ld * element_bytes,
               product->n * element_bytes);
    return MM_OK;
}

enum mm_status mm_cpu_transpose_naive(const struct mm_product *product, struct mm_lane *lane,
                                      struct mm_error *error) {
    return transpose(product, turn_naive);
}

enum mm_status mm_cpu_transpose_shared(const struct mm_product *product, struct mm_lane *lane,
                                       struct mm_error *error) {
    return transpose(product, turn_shared);
}
