/* Programmatic dependent launch (compute capability 9.0). It saves time, because a kernel can start while the
 * previous kernel on its stream still runs. A launch with layout.follows asks for this. The launched kernel
 * must then call mm_wait_for_kernel_before before it accesses memory. For kernel files only. */
#pragma once

/* Returns whether this file is compiled for compute capability 9.0 or higher. If it is not, layout.follows
 * must not be set, because mm_wait_for_kernel_before then does nothing. */
constexpr bool mm_kernels_wait() {
    for (const int architecture : {__CUDA_ARCH_LIST__})
        if (architecture >= 900)
            return true;
    return false;
}

/* Waits until the previous kernel on the stream has ended and its stores are visible. Every thread of every
 * kernel with layout.follows must call this function. Otherwise a kernel could end before an earlier kernel
 * on the stream. */
__device__ __forceinline__ void mm_wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

/* Allows the next kernel on the stream to start once all blocks of this kernel have called this function. */
__device__ __forceinline__ void mm_trigger_dependent_launch() {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}
