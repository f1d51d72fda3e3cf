/* PTX for TMA, Hopper's copy engine. One thread starts a copy between global and shared memory, and TMA moves
 * the bytes. A load completes at an mbarrier. */
#pragma once

#include "gpu/cuda/variants/wgmma/cluster.cuh"

/* Starts to load contiguous bytes. Addresses and sizes must be multiples of 16 bytes. */
__device__ __forceinline__ void mm_tma_load_bulk(void *to, const void *from, unsigned bytes,
                                                 uint64_t *barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            mm_shared_address(to)),
        "l"(from), "r"(bytes), "r"(mm_shared_address(barrier))
        : "memory");
}

/* Starts to load contiguous bytes into each block of the cluster that is in the mask `blocks`. The addresses
 * `to` and `barrier` apply to each of these blocks. */
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

/* Starts to load the box of a tensor map that begins at (x, y, z). The mbarrier counts elements outside the
 * tensor as loaded, and they arrive as zeros. */
__device__ __forceinline__ void mm_tma_load(void *to, const void *map, int x, int y, int z,
                                            uint64_t *barrier) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(mm_shared_address(to)),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(mm_shared_address(barrier))
                 : "memory");
}

/* Starts to load a box into each block of the cluster that is in the mask `blocks`. The addresses `to` and
 * `barrier` apply to each of these blocks. */
__device__ __forceinline__ void mm_tma_load_multicast(void *to, const void *map, int x, int y, int z,
                                                      uint64_t *barrier, uint16_t blocks) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(mm_shared_address(to)),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(mm_shared_address(barrier)), "h"(blocks)
                 : "memory");
}

/* Orders this thread's accesses to shared memory before TMA copies that start after a later barrier. */
__device__ __forceinline__ void mm_async_proxy_fence() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Starts to store the box of a tensor map that begins at (x, y, z). Writes nothing outside the tensor. */
__device__ __forceinline__ void mm_tma_store(const void *map, int x, int y, int z, const void *from) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];\n"
                 "cp.async.bulk.commit_group;" ::"l"(map),
                 "r"(x), "r"(y), "r"(z), "r"(mm_shared_address(from))
                 : "memory");
}

/* Waits until TMA has read shared memory for all stores of the thread, except the last PENDING stores. */
template <unsigned PENDING> __device__ __forceinline__ void mm_tma_store_wait() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}
