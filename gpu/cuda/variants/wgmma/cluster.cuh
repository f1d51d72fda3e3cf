/* Access to the shared memory of a cluster's blocks. For kernel files alone. */
#pragma once

#include <cstdint>

/* A pointer to the block's shared memory, as the 32-bit address that PTX instructions take. */
__device__ __forceinline__ uint32_t mm_shared_address(const void *pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/* Loads block `block`'s copy of the word *from, which lies in shared memory. That block has started and has
 * not ended. */
__device__ __forceinline__ unsigned mm_cluster_load(const unsigned *from, unsigned block) {
    unsigned value;
    asm volatile("{\n"
                 ".reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %1, %2;\n"
                 "ld.shared::cluster.u32 %0, [remote];\n"
                 "}\n"
                 : "=r"(value)
                 : "r"(mm_shared_address(from)), "r"(block)
                 : "memory");
    return value;
}

/* All threads of the cluster wait for each other. Whole warps call it (.aligned). */
__device__ __forceinline__ void mm_cluster_sync() {
    asm volatile("barrier.cluster.arrive.aligned;\n"
                 "barrier.cluster.wait.aligned;" ::
                     : "memory");
}
