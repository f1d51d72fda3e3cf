/* Instantiates the kernels of `tensor` for int32. */
#include "gpu/cuda/variants/tensor/wgmma.cuh"

const mm_tensor_kernels mm_tensor_int32 = mm_tensor_kernels_of<mm_wgmma_int32>();
