/* What the CPU's transpose variants share. */
#ifndef MM_GPU_CPU_TRANSPOSE_H
#define MM_GPU_CPU_TRANSPOSE_H

#include "gpu/product.h"

/* C = A of a transposition without its flag: A lies there column by column, which is the result already,
 * and its rows are only copied. */
void mm_cpu_copy(const struct mm_product *product);

#endif
