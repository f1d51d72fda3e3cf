/* Kernels of one launch that begin while the one before them still runs (programmatic dependent launch, from
 * compute capability 9.0 on), so that starting one costs no time of its own: layout.follows asks for that.
 * Such a kernel waits before it touches memory. Who was not launched so need not wait, and who has none of
 * that kind behind it lets nobody begin: then these do nothing. For kernel files alone. */
#ifndef MM_GPU_CUDA_VARIANTS_FOLLOW_CUH
#define MM_GPU_CUDA_VARIANTS_FOLLOW_CUH

/* Whether this file's kernels wait where a device can do it. Those that were compiled for less do not, though
 * newer devices run them too: then layout.follows must not be set. */
constexpr bool mm_kernels_wait() {
    for (const int architecture : {__CUDA_ARCH_LIST__})
        if (architecture >= 900)
            return true;
    return false;
}

/* Waits until the kernel before is over, and what it wrote is to be seen. Each thread calls it, which makes
 * the wait hold for all kernels before that one as well. */
__device__ __forceinline__ void mm_wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

/* Lets the kernel behind begin, once all blocks have called it: as far as there is room beside them. */
__device__ __forceinline__ void mm_let_kernel_behind_begin() {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

#endif
