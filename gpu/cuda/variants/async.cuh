/* Asynchronous copies from global to shared memory (cp.async), for kernel files only. A thread starts copies
 * and continues. The thread must call mm_wait_copies before it reads the copied elements. Other threads may
 * read these elements after that call and a barrier. wgmma/mbarrier.cuh shows another way to wait.
 *
 * cp.async needs compute capability 8.0. On older devices these functions copy immediately. */
#pragma once

/* Starts to copy `count` elements to `to`, and fills the rest of COUNT elements with zeros. COUNT elements
 * have 4, 8 or 16 bytes. Both addresses must be multiples of this size. If `count` is 0, `from` is not
 * read. */
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

/* Makes a group of the copies that this thread started after its previous group. A group may be empty. */
__device__ __forceinline__ void mm_commit_copies() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits until at most PENDING groups of this thread are still being copied. */
template <unsigned PENDING> __device__ __forceinline__ void mm_wait_copies_pending() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

/* Waits until all copies that this thread started are finished. */
__device__ __forceinline__ void mm_wait_copies() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
