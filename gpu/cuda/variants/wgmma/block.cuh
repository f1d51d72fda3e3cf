/* A block of warpgroups with roles: a producer, and one or two consumers. The producer fills a ring of stages
 * in shared memory. The consumers multiply each stage (mbarrier.cuh, tma.cuh and instructions.cuh have the
 * PTX) and keep the sums of the block's tile of C in registers. For kernel files only. */
#pragma once

#include "gpu/cuda/variants/wgmma/consumers.h"
#include "gpu/cuda/variants/wgmma/instructions.cuh"
#include "gpu/cuda/variants/wgmma/mbarrier.cuh"
#include "gpu/cuda/variants/wgmma/schedule.cuh"
#include "gpu/cuda/variants/wgmma/tma.cuh"

/* Returns the consumer of the thread: 0 or 1. Warpgroup 0 is the producer. */
__device__ __forceinline__ unsigned mm_my_consumer() {
    return threadIdx.x / MM_WARPGROUP - 1;
}

/* Returns the thread's index in its warpgroup. */
__device__ __forceinline__ unsigned mm_my_thread() {
    return threadIdx.x % MM_WARPGROUP;
}

/* Waits until all threads of the consumer call this. Each consumer has its own barrier; barrier 0 belongs to
 * __syncthreads. */
__device__ __forceinline__ void mm_consumer_sync() {
    asm volatile("bar.sync %0, 128;" ::"r"(1 + mm_my_consumer()) : "memory");
}

/* Releases the producer's registers to the consumers (setmaxnreg), except KEPT registers of each thread. A
 * thread can have at most 255 registers, so a kernel whose threads start with 255 need not call this. */
template <unsigned KEPT> __device__ __forceinline__ void mm_release_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(KEPT));
}

/* Acquires an equal share of the registers that the producer released with KEPT. START is the registers with
 * which each thread starts: 65536 / threads of a multiprocessor, rounded down to a multiple of 8. setmaxnreg
 * waits for ever if it asks for more registers than were released. */
template <unsigned KEPT, unsigned START = 168, unsigned CONSUMERS = MM_CONSUMERS>
__device__ __forceinline__ void mm_acquire_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(START + (START - KEPT) / CONSUMERS));
}

/* --- the ring ------------------------------------------------------------------------------------ */

template <unsigned STAGES> struct mm_ring {
    uint64_t full[STAGES];  /* mbarriers: the stage's bytes have arrived */
    uint64_t empty[STAGES]; /* mbarriers: all consumers of the cluster have read the stage */
};

/* Initialises the ring's mbarriers; one thread calls this. The producer arrives full_arrivals times at each
 * `full`, and the consumers of the cluster arrive empty_arrivals times at each `empty`. */
template <unsigned STAGES>
__device__ __forceinline__ void mm_ring_init(mm_ring<STAGES> &ring, unsigned empty_arrivals,
                                             unsigned full_arrivals = 1) {
    for (unsigned stage = 0; stage < STAGES; stage++) {
        mm_mbarrier_init(&ring.full[stage], full_arrivals);
        mm_mbarrier_init(&ring.empty[stage], empty_arrivals);
    }
}

/* The position of a producer or consumer in the ring; {0, 0} at the start. */
struct mm_ring_state {
    unsigned stage;
    unsigned parity; /* parity of the stage's phase, which changes with each round */
};

template <unsigned STAGES> __device__ __forceinline__ void mm_ring_next(mm_ring_state &at) {
    if (++at.stage == STAGES) {
        at.stage = 0;
        at.parity ^= 1;
    }
}

/* Waits until the producer's next stage is empty, and returns the stage. In the first round all stages are
 * empty, and waiting for the other parity returns at once. */
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

/* Releases a consumer's stage: arrives at `empty` in all CLUSTER blocks, because the producers of all these
 * blocks write to the stage. wgmma groups belong to the warpgroup, so a thread that has waited for them
 * arrives for the whole consumer. */
template <unsigned CLUSTER, unsigned STAGES>
__device__ __forceinline__ void mm_release(mm_ring<STAGES> &ring, unsigned stage) {
    if (mm_my_thread() < CLUSTER)
        mm_mbarrier_arrive_remote(&ring.empty[stage], mm_my_thread());
}

/* --- a consumer's sums --------------------------------------------------------------------------- */

/* Returns the row and column in the block's tile of the thread's sum `index`. In wgmma's accumulator fragment
 * four sums are two neighbours of a row and two neighbours 8 rows below. The next four sums are 8 columns
 * further. */
__device__ __forceinline__ mm_tile mm_fragment_position(unsigned index) {
    const unsigned lane = mm_my_thread() % 32;
    return {mm_my_consumer() * MM_CONSUMER_ROWS + mm_my_thread() / 32 * 16 + lane / 4 + index / 2 % 2 * 8,
            lane % 4 * 2 + index / 4 * 8 + index % 2};
}

template <typename SUM> struct alignas(4 * sizeof(SUM)) mm_four_sums { SUM sums[4]; };

/* Returns where the workspace has the first four of the thread's COUNT sums. The next four sums lie
 * MM_WARPGROUP fours further, so neighbouring threads access neighbouring fours. */
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

/* Loads four sums, 16 bytes an access, without the L1 cache, because it does not see writes of other
 * multiprocessors. */
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
