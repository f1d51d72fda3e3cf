/* What the CPU's transpose variants share. */
#ifndef MM_GPU_CPU_TRANSPOSE_H
#define MM_GPU_CPU_TRANSPOSE_H

#include "gpu/product.h"

/* Transposes by the function for elements of 4 bytes or by that for 8. Without the product's flag A lies
 * there column by column, which is C already: then its rows are only copied. */
enum mm_status mm_cpu_transpose(const struct mm_product *product,
                                void (*by_4_bytes)(const struct mm_product *product),
                                void (*by_8_bytes)(const struct mm_product *product));

#endif
