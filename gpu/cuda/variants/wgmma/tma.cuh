/* TMA, Hopper's copy engine. One thread starts a copy between global and shared memory, and no thread moves
 * its bytes. A load completes at an mbarrier. For kernel files only. */
#pragma once

#include "gpu/cuda/variants/wgmma/cluster.cuh"

/* Starts to load contiguous bytes. Addresses and sizes are multiples of 16 bytes. */
__device__ __forceinline__ void mm_tma_load_bulk(void *to, const void *from, unsigned bytes,
                                                 uint64_t *barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            mm_shared_address(to)),
        "l"(from), "r"(bytes), "r"(mm_shared_address(barrier))
        : "memory");
}

/* Starts to load contiguous bytes into each block of the cluster that is in the mask `blocks`. In each block
 * the bytes arrive at the address `to`, and complete at the mbarrier at the address `barrier`. */
__device__ __forceinline__ void mm_tma_load_bulk_multicast(void *to, const void *from, unsigned bytes,
                                                           uint64_t *barrier, uint16_t blocks) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1], %2, [%3], %4;" ::"r"(mm_shared_address(to)),
                 "l"(from), "r"(bytes), "r"(mm_shared_address(barrier)), "h"(blocks)
                 : "memory");
}

/* Loads a tensor map into TMA's cache, so the first copy with the map does not wait for it. */
__device__ __forceinline__ void mm_tma_prefetch_map(const void *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* Starts to load the box of a tensor map that begins at (x, y, z). Elements past the tensor's edges arrive as
 * zeros, and their bytes count. */
__device__ __forceinline__ void mm_tma_load(void *to, const void *map, int x, int y, int z,
                                            uint64_t *barrier) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(mm_shared_address(to)),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(mm_shared_address(barrier))
                 : "memory");
}

/* Starts to load a box (mm_tma_load) into each block of the cluster that is in the mask `blocks`. In each
 * block the box arrives at the address `to`, and completes at the mbarrier at the address `barrier`. */
__device__ __forceinline__ void mm_tma_load_multicast(void *to, const void *map, int x, int y, int z,
                                                      uint64_t *barrier, uint16_t blocks) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(mm_shared_address(to)),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(mm_shared_address(barrier)), "h"(blocks)
                 : "memory");
}

/* Orders the thread's earlier accesses to shared memory before TMA copies that any thread starts after this
 * fence and a barrier. */
__device__ __forceinline__ void mm_async_proxy_fence() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Starts to store the box of a tensor map that begins at (x, y, z). Nothing past the tensor's edges is
 * written. */
__device__ __forceinline__ void mm_tma_store(const void *map, int x, int y, int z, const void *from) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];\n"
                 "cp.async.bulk.commit_group;" ::"l"(map),
                 "r"(x), "r"(y), "r"(z), "r"(mm_shared_address(from))
                 : "memory");
}

/* Waits until all TMA stores of the thread, except the last PENDING stores, have read shared memory. */
template <unsigned PENDING> __device__ __forceinline__ void mm_tma_store_wait() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}
