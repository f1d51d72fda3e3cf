/* Programmatic dependent launch (compute capability 9.0): a kernel starts while the previous kernel on its
 * stream still runs, which saves time. A launch asks for this with layout.follows. Then the kernel must call
 * mm_wait_for_kernel_before before it accesses memory. For kernel files only. */
#pragma once

/* Returns whether the file that includes this header is compiled for compute capability 9.0 or higher. If
 * not, mm_wait_for_kernel_before does nothing, so layout.follows must not be set. */
constexpr bool mm_kernels_wait() {
    for (const int architecture : {__CUDA_ARCH_LIST__})
        if (architecture >= 900)
            return true;
    return false;
}

/* Waits until the previous kernel on the stream has ended and its stores are visible. Every thread of every
 * kernel must call this function. Otherwise a kernel could end before an earlier kernel. */
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
