/* A kernel may start while the one before it still runs (programmatic dependent launch, from compute
 * capability 9.0 on), so starting it costs no time of its own. layout.follows asks for that. Such a kernel
 * must wait before it touches memory. Without such a launch both calls do nothing. For kernel files alone. */
#pragma once

/* Whether this file's kernels wait where a device can do it. Those that were compiled for less do not, though
 * newer devices run them too: then layout.follows must not be set. */
constexpr bool mm_kernels_wait() {
    for (const int architecture : {__CUDA_ARCH_LIST__})
        if (architecture >= 900)
            return true;
    return false;
}

/* Waits until the kernel before has ended and its stores are visible. Every thread of such a kernel calls it.
 * So a kernel ends only after the one before it, and the wait covers all earlier kernels too. */
__device__ __forceinline__ void mm_wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

/* Lets the next kernel start once all blocks have called this, if resources are free. */
__device__ __forceinline__ void mm_let_kernel_behind_begin() {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}
