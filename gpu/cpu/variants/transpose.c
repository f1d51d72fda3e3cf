/* The CPU's variants for transposing a matrix. They copy elements as unsigned integers of the same size.
 * `naive` writes C row by row and reads A column by column, so each read is in another cache line. If the
 * cache cannot hold one line for each row of A, each element costs the transfer of a whole line.
 * `shared` copies a square of 32×32 elements of A into a small array, and then writes the array to C. It
 * reads rows of A and writes rows of C, so it uses whole cache lines. Only the array is read down its
 * columns, and the array stays in the L1 cache. The price is that each element is copied twice. */
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
    /* Transposes one square, which may be smaller at the border of C: the rows × cols elements of C from   \
     * (row, col) on. It is inlined, so the compiler knows the loop lengths for full squares. */             \
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

/* If A is column-major, memory already holds the transpose, so transpose_a is false. */
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
