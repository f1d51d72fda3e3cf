/* The roles of a block's warpgroups. A producer fills a ring of stages in shared memory. One or two consumers
 * multiply each stage, and keep the sums of the block's tile of C in registers. */
#pragma once

#include "gpu/cuda/variants/wgmma/consumers.h"
#include "gpu/cuda/variants/wgmma/instructions.cuh"
#include "gpu/cuda/variants/wgmma/mbarrier.cuh"
#include "gpu/cuda/variants/wgmma/schedule.cuh"
#include "gpu/cuda/variants/wgmma/tma.cuh"

/* Returns which consumer the thread belongs to: 0 or 1. Warpgroup 0 is the producer. */
__device__ __forceinline__ unsigned mm_my_consumer() {
    return threadIdx.x / MM_WARPGROUP - 1;
}

__device__ __forceinline__ unsigned mm_my_thread() {
    return threadIdx.x % MM_WARPGROUP;
}

/* Waits for all threads of the consumer. Barrier 0 belongs to __syncthreads. */
__device__ __forceinline__ void mm_consumer_sync() {
    asm volatile("bar.sync %0, 128;" ::"r"(1 + mm_my_consumer()) : "memory");
}

/* Each producer thread keeps KEPT registers, and releases the others to the consumers (setmaxnreg). A kernel
 * whose threads start with 255 registers need not call this, because 255 is the maximum. */
template <unsigned KEPT> __device__ __forceinline__ void mm_release_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(KEPT));
}

/* Acquires this consumer's share of the registers that the producer released. Each thread starts with START
 * registers: 65536 / threads on the multiprocessor, rounded down to a multiple of 8. If START is too large,
 * setmaxnreg waits for ever. */
template <unsigned KEPT, unsigned START = 168, unsigned CONSUMERS = MM_CONSUMERS>
__device__ __forceinline__ void mm_acquire_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(START + (START - KEPT) / CONSUMERS));
}

/* --- the ring ------------------------------------------------------------------------------------ */

template <unsigned STAGES> struct mm_ring {
    uint64_t full[STAGES];  /* mbarriers: the stage's bytes have arrived */
    uint64_t empty[STAGES]; /* mbarriers: all consumers of the cluster have read the stage */
};

/* Initialises the ring's mbarriers with the numbers of arrivals that each expects. One thread calls this. */
template <unsigned STAGES>
__device__ __forceinline__ void mm_ring_init(mm_ring<STAGES> &ring, unsigned empty_arrivals,
                                             unsigned full_arrivals = 1) {
    for (unsigned stage = 0; stage < STAGES; stage++) {
        mm_mbarrier_init(&ring.full[stage], full_arrivals);
        mm_mbarrier_init(&ring.empty[stage], empty_arrivals);
    }
}

/* A producer's or consumer's position in the ring. The first position is {0, 0}. */
struct mm_ring_state {
    unsigned stage;
    unsigned parity; /* parity of the mbarriers' phase; changes in each round */
};

template <unsigned STAGES> __device__ __forceinline__ void mm_ring_next(mm_ring_state &at) {
    if (++at.stage == STAGES) {
        at.stage = 0;
        at.parity ^= 1;
    }
}

/* Waits until the producer's next stage is empty, and returns the stage. In the first round all stages are
 * empty, and the inverted parity lets the wait return at once. */
template <unsigned STAGES>
__device__ __forceinline__ unsigned mm_wait_empty(mm_ring<STAGES> &ring, mm_ring_state &at) {
    const unsigned stage = at.stage;
    mm_mbarrier_wait(&ring.empty[stage], at.parity ^ 1);
    mm_ring_next<STAGES>(at);
    return stage;
}

/* Waits until a consumer's next stage is full, and returns the stage. */
template <unsigned STAGES>
__device__ __forceinline__ unsigned mm_wait_full(mm_ring<STAGES> &ring, mm_ring_state &at) {
    const unsigned stage = at.stage;
    mm_mbarrier_wait(&ring.full[stage], at.parity);
    mm_ring_next<STAGES>(at);
    return stage;
}

/* Tells all CLUSTER producers of the cluster that this consumer has read a stage, because each producer
 * writes to the stage. One thread arrives for the whole consumer. */
template <unsigned CLUSTER, unsigned STAGES>
__device__ __forceinline__ void mm_release(mm_ring<STAGES> &ring, unsigned stage) {
    if (mm_my_thread() < CLUSTER)
        mm_mbarrier_arrive_remote(&ring.empty[stage], mm_my_thread());
}

/* --- a consumer's sums --------------------------------------------------------------------------- */

/* Returns the position of the thread's sum `index` in the block's tile. wgmma defines this layout: a group of
 * four sums has two neighbours in a row, and the two elements 8 rows below them. */
__device__ __forceinline__ mm_tile mm_fragment_position(unsigned index) {
    const unsigned lane = mm_my_thread() % 32;
    return {mm_my_consumer() * MM_CONSUMER_ROWS + mm_my_thread() / 32 * 16 + lane / 4 + index / 2 % 2 * 8,
            lane % 4 * 2 + index / 4 * 8 + index % 2};
}

template <typename SUM> struct alignas(4 * sizeof(SUM)) mm_four_sums { SUM sums[4]; };

/* Returns the address of the thread's first four sums in the workspace. The next four are MM_WARPGROUP
 * elements further, so neighbouring threads access neighbouring addresses. */
template <unsigned COUNT, unsigned CONSUMERS = MM_CONSUMERS, typename SUM>
__device__ __forceinline__ mm_four_sums<SUM> *mm_sums_at(SUM *memory, unsigned block) {
    return reinterpret_cast<mm_four_sums<SUM> *>(memory) +
           (block * CONSUMERS + mm_my_consumer()) * (COUNT / 4 * MM_WARPGROUP) + mm_my_thread();
}

template <unsigned COUNT, typename SUM>
__device__ __forceinline__ void mm_store_sums(const SUM (&sums)[COUNT], mm_four_sums<SUM> *to) {
#pragma unroll
    for (unsigned i = 0; i < COUNT; i += 4)
        to[i / 4 * MM_WARPGROUP] = {{sums[i], sums[i + 1], sums[i + 2], sums[i + 3]}};
}

/* Loads four sums. Bypasses the L1 cache, which does not see writes of other multiprocessors. */
template <typename SUM>
__device__ __forceinline__ mm_four_sums<SUM> mm_load_past_l1(const mm_four_sums<SUM> *from) {
    using access = std::conditional_t<sizeof(SUM) == sizeof(double), double2, uint4>;
    mm_four_sums<SUM> four;
#pragma unroll
    for (unsigned i = 0; i < sizeof four / sizeof(access); i++)
        reinterpret_cast<access *>(&four)[i] = __ldcg(reinterpret_cast<const access *>(from) + i);
    return four;
}

template <unsigned COUNT, typename SUM>
__device__ __forceinline__ void mm_add_sums(SUM (&sums)[COUNT], const mm_four_sums<SUM> *from) {
#pragma unroll
    for (unsigned i = 0; i < COUNT; i += 4) {
        const mm_four_sums<SUM> x = mm_load_past_l1(&from[i / 4 * MM_WARPGROUP]);
#pragma unroll
        for (unsigned j = 0; j < 4; j++)
            sums[i + j] += x.sums[j];
    }
}
