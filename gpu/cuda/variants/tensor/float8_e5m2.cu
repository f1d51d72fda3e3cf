/* Instantiates the kernels of `tensor` for float8_e5m2. */
#include "gpu/cuda/variants/tensor/wgmma.cuh"

const mm_tensor_kernels mm_tensor_float8_e5m2 = mm_tensor_kernels_of<mm_wgmma_float8_e5m2>();
