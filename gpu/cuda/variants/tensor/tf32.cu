/* Instantiates the kernels of `tf32`. TMA rounds the float32 elements to tf32 while it copies them to shared
 * memory. */
#include "gpu/cuda/variants/tensor/wgmma.cuh"

const mm_tensor_kernels mm_tensor_tf32 = mm_tensor_kernels_of<mm_wgmma_tf32>();
