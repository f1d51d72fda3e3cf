/* The clock of a multiprocessor, for kernels that take their own time. */
#ifndef MM_GPU_CUDA_CLOCK_CUH
#define MM_GPU_CUDA_CLOCK_CUH

/* Cycles since some moment. Volatile and said to touch memory, so that the compiler moves no volatile read
 * or write past it. */
__device__ __forceinline__ long long mm_cuda_clock() {
    long long now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
    return now;
}

#endif
