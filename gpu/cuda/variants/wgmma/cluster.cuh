/* PTX for clusters, whose blocks can read each other's shared memory. */
#pragma once

#include <cstdint>

/* Converts a pointer to shared memory to the 32-bit address that PTX instructions take. */
__device__ __forceinline__ uint32_t mm_shared_address(const void *pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/* Reads *from in the shared memory of block `block` of the cluster, which must be running. */
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

/* Waits for all threads of the cluster. All threads of a warp must call this together (.aligned). */
__device__ __forceinline__ void mm_cluster_sync() {
    asm volatile("barrier.cluster.arrive.aligned;\n"
                 "barrier.cluster.wait.aligned;" ::
                     : "memory");
}
