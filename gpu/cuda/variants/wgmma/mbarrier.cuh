/* PTX for mbarriers, which are barriers in shared memory. A phase of an mbarrier ends after its last expected
 * arrival, when all expected bytes have been copied.
 *
 * mm_mbarrier_wait has block scope, even if another block of the cluster arrives. Block scope is enough,
 * because in this case only TMA writes the guarded memory, and only wgmma reads it. Cluster scope is
 * slower. */
#pragma once

#include "gpu/cuda/variants/wgmma/cluster.cuh"

__device__ __forceinline__ void mm_mbarrier_init(uint64_t *barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(mm_shared_address(barrier)), "r"(arrivals)
                 : "memory");
}

/* Makes the thread's initialised mbarriers visible to the cluster and to TMA. */
__device__ __forceinline__ void mm_mbarrier_init_fence() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Arrives, and adds `bytes` to the bytes that the phase expects. */
__device__ __forceinline__ void mm_mbarrier_arrive_expect(uint64_t *barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(mm_shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void mm_mbarrier_arrive(uint64_t *barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(mm_shared_address(barrier)) : "memory");
}

/* Arrives when the thread's earlier asynchronous copies (async.cuh) are complete. Does not wait. */
__device__ __forceinline__ void mm_mbarrier_arrive_after_copies(uint64_t *barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(mm_shared_address(barrier))
                 : "memory");
}

/* Arrives at the mbarrier *barrier of block `block` of the cluster, which must not have ended. */
__device__ __forceinline__ void mm_mbarrier_arrive_remote(uint64_t *barrier, unsigned block) {
    asm volatile("{\n"
                 ".reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
                 "}\n" ::"r"(mm_shared_address(barrier)),
                 "r"(block)
                 : "memory");
}

/* Waits until the phase with this parity is over. Phases have parity 0, 1, 0, 1 and so on. */
__device__ __forceinline__ void mm_mbarrier_wait(uint64_t *barrier, unsigned parity) {
    asm volatile("{\n"
                 ".reg .pred over;\n"
                 "wait_%=:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
                 "@!over bra wait_%=;\n"
                 "}\n" ::"r"(mm_shared_address(barrier)),
                 "r"(parity)
                 : "memory");
}
