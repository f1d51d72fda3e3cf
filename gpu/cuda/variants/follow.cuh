/* Programmatic dependent launch, from compute capability 9.0 on: a kernel starts while the one before it
 * still runs, so starting it costs no time of its own. layout.follows asks for that. A kernel that it is set
 * for must wait before it touches memory. In other launches both calls do nothing. For kernel files alone. */
#pragma once

/* Whether this file's kernels wait. Kernels that were compiled for an older capability do not, even if a
 * newer device runs them; layout.follows must not be set for them. */
constexpr bool mm_kernels_wait() {
    for (const int architecture : {__CUDA_ARCH_LIST__})
        if (architecture >= 900)
            return true;
    return false;
}

/* Waits until the kernel before has ended and its stores are visible. Every thread of a kernel calls it. So a
 * kernel ends only after the one before it, and the wait covers all earlier kernels too. */
__device__ __forceinline__ void mm_wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

/* Lets the next kernel start once all blocks have called this, if resources are free. */
__device__ __forceinline__ void mm_trigger_dependent_launch() {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}
