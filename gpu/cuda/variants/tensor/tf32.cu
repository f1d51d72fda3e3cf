/* The kernels of tf32, of float32 elements that the copy to shared memory rounds. */
#include "gpu/cuda/variants/tensor/wgmma.cuh"

const mm_tensor_kernels mm_tensor_tf32 = mm_tensor_kernels_of<mm_wgmma_tf32>();
