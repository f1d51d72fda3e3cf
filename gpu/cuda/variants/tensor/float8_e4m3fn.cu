/* Instantiates the kernels of `tensor` for float8_e4m3fn. */
#include "gpu/cuda/variants/tensor/wgmma.cuh"

const mm_tensor_kernels mm_tensor_float8_e4m3fn = mm_tensor_kernels_of<mm_wgmma_float8_e4m3fn>();
