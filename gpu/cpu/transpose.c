/* A transposition's way to the code for its elements' size, or to a plain copy where there is nothing to
 * turn. It knows no variant. */
#include "gpu/cpu/transpose.h"

#include <assert.h>
#include <string.h>

static void copy(const struct mm_product *product, size_t element_bytes) {
    const char *a = product->a.data;
    char *c = product->c.data;
    for (size_t row = 0; row < product->m; row++)
        memcpy(c + row * product->c.ld * element_bytes, a + row * product->a.ld * element_bytes,
               product->n * element_bytes);
}

enum mm_status mm_cpu_transpose(const struct mm_product *product,
                                void (*by_4_bytes)(const struct mm_product *product),
                                void (*by_8_bytes)(const struct mm_product *product)) {
    const size_t element_bytes = mm_dtype_bytes(product->a.dtype);
    assert(element_bytes == 4 || element_bytes == 8);
    if (!product->transpose_a)
        copy(product, element_bytes);
    else if (element_bytes == 4)
        by_4_bytes(product);
    else
        by_8_bytes(product);
    return MM_OK;
}
