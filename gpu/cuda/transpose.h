/* What the CUDA transpose variants share. Elements are moved as unsigned words of their size, never as
 * numbers: arithmetic might quiet a NaN, or flush a subnormal. */
#ifndef MM_GPU_CUDA_TRANSPOSE_H
#define MM_GPU_CUDA_TRANSPOSE_H

#include "gpu/cuda/lane.h"
#include "gpu/cuda/variants.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Launches a transposition by the layout's kernel. Without the product's flag A lies there column by column,
 * which is C already: then it is the runtime's plain copy on the device, whatever the variant. */
enum mm_status mm_cuda_transpose(const struct mm_cuda_layout *layout, const struct mm_product *product,
                                 struct mm_lane *lane, struct mm_error *error);

#ifdef __cplusplus
}

/* The kernels of a variant, one for elements of 4 bytes and one for those of 8. */
static inline const void *mm_cuda_pick_size(const mm_cuda_kernel (&kernels)[2],
                                            const struct mm_product *product) {
    return (const void *)kernels[mm_dtype_bytes(product->a.dtype) == 8];
}
#endif
#endif
