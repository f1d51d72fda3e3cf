/* The CPU's transpositions. Elements are copied as unsigned integers, so each size has one function.
 *
 * `naive` writes C row by row. Each read is in another row of A, and therefore in another cache line. If a
 * column has more lines than the cache holds, each element costs a line from memory.
 *
 * `shared` reads a square of 32×32 elements of A row by row into a small array, and writes it row by row to
 * C. A and C are accessed along their cache lines. Only the array, which stays in the L1 cache, is accessed
 * down its columns. The cost is the copying. */
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
    /* Computes the rows × cols elements of C that begin at (row, col). Inlined, so loops over whole        \
     * squares have constant lengths. */                                                                     \
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

typedef void transpose_function(const struct mm_product *product);

static transpose_function *const naive_functions[MM_DTYPE_COUNT] = {
#define X(constant, name, type, word, ...) [constant] = naive_##word,
    MM_DTYPE_TABLE(X)
#undef X
};

static transpose_function *const shared_functions[MM_DTYPE_COUNT] = {
#define X(constant, name, type, word, ...) [constant] = shared_##word,
    MM_DTYPE_TABLE(X)
#undef X
};

/* Only copies rows if A is stored column by column, because memory then already has the transpose. */
static enum mm_status transpose(const struct mm_product *product, transpose_function *const *functions) {
    const size_t element_bytes = mm_dtype_bytes(product->a.dtype);
    if (product->transpose_a)
        functions[product->a.dtype](product);
    for (size_t row = 0; row < product->m && !product->transpose_a; row++)
        memcpy((char *)product->c.data + row * product->c.ld * element_bytes,
               (const char *)product->a.data + row * product->a.ld * element_bytes,
               product->n * element_bytes);
    return MM_OK;
}

enum mm_status mm_cpu_transpose_naive(const struct mm_product *product, struct mm_lane *lane,
                                      struct mm_error *error) {
    return transpose(product, naive_functions);
}

enum mm_status mm_cpu_transpose_shared(const struct mm_product *product, struct mm_lane *lane,
                                       struct mm_error *error) {
    return transpose(product, shared_functions);
}
