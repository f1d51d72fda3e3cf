/* transpose naive: C row by row, so that writes follow each other and every read is a step down a column
 * of A, on a cache line of its own. Once a column has more lines than the cache holds, each element
 * costs a line from memory: that is what `shared` repairs. Elements are moved as 4 or 8 bytes, whatever
 * they mean. */
#include "gpu/cpu/transpose.h"
#include "gpu/cpu/variants.h"

#include <assert.h>
#include <string.h>

void mm_cpu_copy(const struct mm_product *product) {
    const size_t element_bytes = mm_dtype_bytes(product->a.dtype);
    const char *a = product->a.data;
    char *c = product->c.data;
    for (size_t row = 0; row < product->m; row++)
        memcpy(c + row * product->c.ld * element_bytes, a + row * product->a.ld * element_bytes,
               product->n * element_bytes);
}

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
    const size_t element_bytes = mm_dtype_bytes(product->a.dtype);
    (void)lane;
    (void)error;
    assert(element_bytes == 4 || element_bytes == 8);
    if (!product->transpose_a)
        mm_cpu_copy(product);
    else if (element_bytes == 4)
        transpose_uint32_t(product);
    else
        transpose_uint64_t(product);
    return MM_OK;
}
