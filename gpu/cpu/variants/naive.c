/* naive: the triple loop over rows, columns and depth. Every element of C is one sum in float32, in
 * the order of depth, as the definition reads: this is the reference of all other variants, so it
 * stays plain. It costs one walk down a column of B per element, which a cache line serves badly;
 * that is what the tiled variants repair. */
#include "gpu/cpu/variants.h"

enum mm_status mm_cpu_naive(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error) {
    const float *a = product->a.data;
    const float *b = product->b.data;
    float *c = product->c.data;
    /* A transposed operand is the same storage with its two strides exchanged. */
    size_t a_row_step = product->transpose_a ? 1 : product->a.ld;
    size_t a_depth_step = product->transpose_a ? product->a.ld : 1;
    size_t b_depth_step = product->transpose_b ? 1 : product->b.ld;
    size_t b_col_step = product->transpose_b ? product->b.ld : 1;

    for (size_t row = 0; row < product->m; row++) {
        for (size_t col = 0; col < product->n; col++) {
            float sum = 0.0F;
            for (size_t depth = 0; depth < product->k; depth++)
                sum +=
                    a[row * a_row_step + depth * a_depth_step] * b[depth * b_depth_step + col * b_col_step];
            c[row * product->c.ld + col] = sum;
        }
    }
    return MM_OK;
}
