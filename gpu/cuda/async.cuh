/* Asynchronous copies from global to shared memory (cp.async), which bypass the registers. A thread's
 * copies run while it goes on; it may take them for done after mm_wait_copies, and those of other
 * threads after a barrier that follows their mm_wait_copies. For kernel files alone.
 *
 * Before compute capability 8.0 there is no such instruction: there the copies are ordinary ones,
 * done at once, and the same code is right. */
#ifndef MM_GPU_CUDA_ASYNC_CUH
#define MM_GPU_CUDA_ASYNC_CUH

/* Copies the first `count` of WORDS floats (1 or 4) and fills the rest with zeros. Nothing past count is
 * read, so that an edge needs no other path, and where count is 0, `from` may point anywhere. Both are
 * aligned to WORDS floats. */
template <unsigned WORDS>
__device__ __forceinline__ void mm_copy_async(float *to, const float *from, unsigned count) {
    static_assert(WORDS == 1 || WORDS == 4, "cp.async copies 4, 8 or 16 bytes");
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
    const unsigned bytes = 4 * count;
    if (WORDS == 4)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(bytes)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared), "l"(from), "r"(bytes)
                     : "memory");
#else
    for (unsigned word = 0; word < WORDS; word++)
        to[word] = word < count ? from[word] : 0.0f;
#endif
}

/* Ends a group: this thread's copies since the last group, of which there may be none. */
__device__ __forceinline__ void mm_end_copies() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits for this thread's groups of copies but the last GROUPS. */
template <unsigned GROUPS> __device__ __forceinline__ void mm_wait_copies_but() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
#endif
}

/* Waits for all copies of this thread. */
__device__ __forceinline__ void mm_wait_copies() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

#endif
