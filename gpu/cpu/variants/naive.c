/* `naive`: the triple loop over rows, columns and depth. The loop follows the definition, because `naive` is
 * the reference for all other variants. For each element of C the loop reads a whole column of B, and uses
 * only one element of each cache line. The tiled variants avoid this. */
#include "gpu/cpu/variants.h"

/* A transposed operand is the stored matrix with its two strides exchanged. */
#define NAIVE(constant, name, type, word, sum_type, value, ...)                                              \
    static void naive_##constant(const struct mm_product *product) {                                         \
        const type *a = product->a.data;                                                                     \
        const type *b = product->b.data;                                                                     \
        const size_t a_row_step = product->transpose_a ? 1 : product->a.ld;                                  \
        const size_t a_depth_step = product->transpose_a ? product->a.ld : 1;                                \
        const size_t b_depth_step = product->transpose_b ? 1 : product->b.ld;                                \
        const size_t b_col_step = product->transpose_b ? product->b.ld : 1;                                  \
                                                                                                             \
        for (size_t row = 0; row < product->m; row++) {                                                      \
            for (size_t col = 0; col < product->n; col++) {                                                  \
                sum_type sum = 0;                                                                            \
                for (size_t depth = 0; depth < product->k; depth++)                                          \
                    sum += (sum_type)value(a[row * a_row_step + depth * a_depth_step]) *                     \
                           (sum_type)value(b[depth * b_depth_step + col * b_col_step]);                      \
                mm_store_c_##sum_type(product, row, col, sum);                                               \
            }                                                                                                \
        }                                                                                                    \
    }

MM_DTYPE_TABLE(NAIVE)

enum mm_status mm_cpu_naive(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error) {
    static void (*const multiply[MM_DTYPE_COUNT])(const struct mm_product *product) = {
#define X(constant, ...) [constant] = naive_##constant,
        MM_DTYPE_TABLE(X)
#undef X
    };
    multiply[product->a.dtype](product);
    return MM_OK;
}
