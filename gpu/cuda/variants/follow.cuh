/* Programmatic dependent launch, from compute capability 9.0 on: a kernel starts while the kernel before it
 * on the stream still runs, which hides the time of the start. A launch with layout.follows allows it. A
 * kernel that is launched so must wait before it accesses memory. In other launches both calls do nothing.
 * For kernel files only. */
#pragma once

/* Whether mm_wait_for_kernel_before waits in the kernels of this file. It does nothing in kernels compiled
 * for an older capability, even on a newer device; layout.follows must not be set for such kernels. */
constexpr bool mm_kernels_wait() {
    for (const int architecture : {__CUDA_ARCH_LIST__})
        if (architecture >= 900)
            return true;
    return false;
}

/* Waits until the kernel before has ended and its stores are visible. Every thread of a kernel calls this, so
 * a kernel ends after the kernel before it, and the wait covers all earlier kernels too. */
__device__ __forceinline__ void mm_wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

/* Lets the next kernel on the stream start once all blocks have called this, if resources are free. */
__device__ __forceinline__ void mm_trigger_dependent_launch() {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}
