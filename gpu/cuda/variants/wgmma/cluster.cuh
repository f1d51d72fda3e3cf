/* Access to the shared memory of a cluster's blocks. For kernel files only. */
#pragma once

#include <cstdint>

/* Converts a pointer to the block's shared memory to the 32-bit address of PTX instructions. */
__device__ __forceinline__ uint32_t mm_shared_address(const void *pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/* Loads a word from the shared memory of block `block` of the cluster, at the address that *from has in this
 * block. That block has started and has not ended. */
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

/* Waits until all threads of the cluster call this. Whole warps must call it together (.aligned). */
__device__ __forceinline__ void mm_cluster_sync() {
    asm volatile("barrier.cluster.arrive.aligned;\n"
                 "barrier.cluster.wait.aligned;" ::
                     : "memory");
}
