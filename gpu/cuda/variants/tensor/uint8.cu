/* Instantiates the kernels of `tensor` for uint8 and bool. */
#include "gpu/cuda/variants/tensor/wgmma.cuh"

const mm_tensor_kernels mm_tensor_uint8 = mm_tensor_kernels_of<mm_wgmma_uint8>();
