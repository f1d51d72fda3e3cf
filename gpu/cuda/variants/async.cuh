/* Asynchronous copies from global to shared memory (cp.async). A thread that starts a copy continues at once.
 * Before the thread reads the copied elements, it must call mm_wait_copies. Other threads may read the
 * elements after that call and a barrier. Another way to wait is in wgmma/mbarrier.cuh. For kernel files
 * only.
 *
 * cp.async needs compute capability 8.0. On older devices these functions copy without cp.async, and the copy
 * is complete when they return. */
#pragma once

/* Starts to copy `count` elements to the array `to`, which has COUNT elements. Fills the other elements of
 * the array with zeros. COUNT elements must have 4, 8 or 16 bytes, and both addresses must be multiples of
 * this size. If `count` is 0, the function does not read `from`. */
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

/* Makes a group of all copies that this thread has started since its previous group. A group may be empty. */
__device__ __forceinline__ void mm_commit_copies() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits until at most PENDING of this thread's groups are incomplete. */
template <unsigned PENDING> __device__ __forceinline__ void mm_wait_copies_pending() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

__device__ __forceinline__ void mm_wait_copies() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
