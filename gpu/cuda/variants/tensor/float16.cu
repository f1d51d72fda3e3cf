/* Instantiates the kernels of `tensor` for float16. */
#include "gpu/cuda/variants/tensor/wgmma.cuh"

const mm_tensor_kernels mm_tensor_float16 = mm_tensor_kernels_of<mm_wgmma_float16>();
