/* Instantiates the kernels of `tensor` for bfloat16. */
#include "gpu/cuda/variants/tensor/wgmma.cuh"

const mm_tensor_kernels mm_tensor_bfloat16 = mm_tensor_kernels_of<mm_wgmma_bfloat16>();
