/* transpose naive: C row by row, so that writes follow each other and every read is a step down a column
 * of A, on a cache line of its own. Once a column has more lines than the cache holds, each element
 * costs a line from memory: that is what `shared` repairs. Elements are moved as 4 or 8 bytes, whatever
 * they mean. */
#include "gpu/cpu/transpose.h"
#include "gpu/cpu/variants.h"

#define TRANSPOSE(TYPE)                                                                                      \
    static void transpose_##TYPE(const struct mm_product *product) {                                         \
        const TYPE *a = product->a.data;                                                                     \
        TYPE *c = product->c.data;                                                                           \
        for (size_t row = 0; row < product->m; row++)                                                        \
            for (size_t col = 0; col < product->n; col++)                                                    \
                c[row * product->c.ld + col] = a[col * product->a.ld + row];                                 \
    }

TRANSPOSE(uint32_t)
TRANSPOSE(uint64_t)

enum mm_status mm_cpu_transpose_naive(const struct mm_product *product, struct mm_lane *lane,
                                      struct mm_error *error) {
    (void)lane;
    (void)error;
    return mm_cpu_transpose(product, transpose_uint32_t, transpose_uint64_t);
}
