/* Instructions of compute capability 9.0 without CUDA C++ functions: mbarriers that count bytes, bulk copies
 * (TMA) that arrive at them, and warpgroups' tensor core products (wgmma). For kernel files alone.
 *
 * Waits have block scope even if the other block arrives: only TMA writes and only wgmma reads the memory
 * that such a barrier guards. Waiting with cluster scope (acquire.cluster) made drafts 1.4 times as slow on
 * an H200. */
#pragma once

#include <cstdint>

__device__ __forceinline__ uint32_t mm_shared_address(const void *pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void mm_barrier_init(uint64_t *barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(mm_shared_address(barrier)), "r"(arrivals)
                 : "memory");
}

/* Makes the initialised barriers visible to the cluster and to TMA. */
__device__ __forceinline__ void mm_barriers_init_fence() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Arrives, and adds `bytes` to what this phase waits for. */
__device__ __forceinline__ void mm_barrier_expect(uint64_t *barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(mm_shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void mm_barrier_arrive(uint64_t *barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(mm_shared_address(barrier)) : "memory");
}

/* Arrives at the same barrier in block `block` of the cluster. */
__device__ __forceinline__ void mm_barrier_arrive_at(uint64_t *barrier, unsigned block) {
    asm volatile("{\n"
                 ".reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
                 "}\n" ::"r"(mm_shared_address(barrier)),
                 "r"(block)
                 : "memory");
}

/* Waits until the phase of this parity is over. */
__device__ __forceinline__ void mm_barrier_wait(uint64_t *barrier, unsigned parity) {
    asm volatile("{\n"
                 ".reg .pred over;\n"
                 "wait_%=:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
                 "@!over bra wait_%=;\n"
                 "}\n" ::"r"(mm_shared_address(barrier)),
                 "r"(parity)
                 : "memory");
}

/* Starts a copy to shared memory; its bytes complete at the barrier. Addresses and sizes are multiples of 16
 * bytes. */
__device__ __forceinline__ void mm_bulk_copy(void *to, const void *from, unsigned bytes, uint64_t *barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            mm_shared_address(to)),
        "l"(from), "r"(bytes), "r"(mm_shared_address(barrier))
        : "memory");
}

/* The same, multicast to each block in the mask `blocks`, at the same offset; it completes at that block's
 * barrier. */
__device__ __forceinline__ void mm_bulk_copy_multicast(void *to, const void *from, unsigned bytes,
                                                       uint64_t *barrier, uint16_t blocks) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1], %2, [%3], %4;" ::"r"(mm_shared_address(to)),
                 "l"(from), "r"(bytes), "r"(mm_shared_address(barrier)), "h"(blocks)
                 : "memory");
}

/* All threads of the cluster wait for each other. Warps arrive as a whole (.aligned). */
__device__ __forceinline__ void mm_cluster_sync() {
    asm volatile("barrier.cluster.arrive.aligned;\n"
                 "barrier.cluster.wait.aligned;" ::
                     : "memory");
}

/* A warpgroup's own barrier, 1 to 15. */
__device__ __forceinline__ void mm_warpgroup_sync(unsigned barrier) {
    asm volatile("bar.sync %0, 128;" ::"r"(barrier) : "memory");
}

/* The wgmma descriptor of an operand in shared memory: K-major, 128-byte swizzle. Operands start at multiples
 * of 1024 bytes; 16 of k are 32 bytes further. */
__device__ __forceinline__ uint64_t mm_wgmma_descriptor(const void *pointer) {
    constexpr uint64_t SWIZZLE_128 = 1;
    constexpr uint64_t LEADING_OFFSET = 1; /* ignored when swizzled */
    constexpr uint64_t STRIDE = 1024;      /* from 8 rows to the next */
    return (mm_shared_address(pointer) & 0x3ffff) >> 4 | LEADING_OFFSET << 16 | STRIDE >> 4 << 32 |
           SWIZZLE_128 << 62;
}

__device__ __forceinline__ void mm_wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void mm_wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void mm_wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

/* Keeps the compiler from moving uses of the sums across this point. */
template <unsigned COUNT> __device__ __forceinline__ void mm_wgmma_fence_registers(float (&d)[COUNT]) {
#pragma unroll
    for (unsigned i = 0; i < COUNT; i++)
        asm volatile("" : "+f"(d[i])::"memory");
}

/* D (64×192 of float32, 96 of them in each thread) = A (64×16) · B (192×16)ᵀ, of float16; with `add`, D is
 * added. */
#define MM_WGMMA_TEXT(add)                                                                                   \
    "wgmma.mma_async.sync.aligned.m64n192k16.f32.f16.f16 "                                                   \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                       \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                       \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "                       \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "                       \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95}, "                      \
    "%96, %97, " add ", 1, 1, 0, 0;\n"
#define MM_EIGHT(kind, i)                                                                                    \
    kind(d[i]), kind(d[i + 1]), kind(d[i + 2]), kind(d[i + 3]), kind(d[i + 4]), kind(d[i + 5]),              \
        kind(d[i + 6]), kind(d[i + 7])
#define MM_ALL_OF_D(kind)                                                                                    \
    MM_EIGHT(kind, 0), MM_EIGHT(kind, 8), MM_EIGHT(kind, 16), MM_EIGHT(kind, 24), MM_EIGHT(kind, 32),        \
        MM_EIGHT(kind, 40), MM_EIGHT(kind, 48), MM_EIGHT(kind, 56), MM_EIGHT(kind, 64), MM_EIGHT(kind, 72),  \
        MM_EIGHT(kind, 80), MM_EIGHT(kind, 88)

__device__ __forceinline__ void mm_wgmma(float (&d)[96], uint64_t a, uint64_t b) {
    asm volatile(MM_WGMMA_TEXT("0") : MM_ALL_OF_D("=f") : "l"(a), "l"(b));
}

__device__ __forceinline__ void mm_wgmma_add(float (&d)[96], uint64_t a, uint64_t b) {
    asm volatile(MM_WGMMA_TEXT("1") : MM_ALL_OF_D("+f") : "l"(a), "l"(b));
}

#undef MM_ALL_OF_D
#undef MM_EIGHT
#undef MM_WGMMA_TEXT
