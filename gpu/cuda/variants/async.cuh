/* Asynchronous copies from global to shared memory (cp.async), which need no registers. A copy runs while its
 * thread continues. A thread may read its own copies after mm_wait_copies. Other threads' copies may be read
 * after their mm_wait_copies and a barrier, or after an mbarrier at which the copies arrive
 * (wgmma/mbarrier.cuh). For kernel files only.
 *
 * cp.async needs compute capability 8.0. On older devices these functions copy at once, and callers need no
 * change. */
#pragma once

/* Begins to copy the first `count` of COUNT elements (4, 8 or 16 bytes in all), and to fill the others with
 * zeros. Loads nothing past `count`, so edges need no special code; if `count` is 0, `from` may point
 * anywhere. Both pointers are aligned to COUNT elements. */
template <unsigned COUNT, typename ELEMENT>
__device__ __forceinline__ void mm_copy_async(ELEMENT *to, const ELEMENT *from, unsigned count) {
    constexpr unsigned BYTES = COUNT * sizeof(ELEMENT);
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "cp.async copies 4, 8 or 16 bytes");
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
    const unsigned bytes = static_cast<unsigned>(sizeof(ELEMENT)) * count;
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(bytes)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(from), "n"(BYTES),
                     "r"(bytes)
                     : "memory");
#else
    for (unsigned index = 0; index < COUNT; index++)
        to[index] = index < count ? from[index] : ELEMENT(0);
#endif
}

/* Commits this thread's copies since the last commit as a group, which may be empty. */
__device__ __forceinline__ void mm_commit_copies() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits until at most the last PENDING groups of this thread are still being copied. */
template <unsigned PENDING> __device__ __forceinline__ void mm_wait_copies_pending() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

/* Waits for all copies of this thread. */
__device__ __forceinline__ void mm_wait_copies() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
