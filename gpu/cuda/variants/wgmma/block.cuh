/* The roles of a block, and what is common to all kernels with such: a producer warpgroup fills a ring of
 * stages in shared memory, and two consumer warpgroups (one for small tiles) multiply them. A consumer that
 * uses wgmma has the sums of 64 rows of the block's tile of C. For kernel files alone. */
#pragma once

#include "gpu/cuda/variants/wgmma/hopper.cuh"
#include "gpu/cuda/variants/wgmma/schedule.cuh"

constexpr unsigned MM_GROUP = 128; /* threads of a warpgroup */
constexpr unsigned MM_CONSUMERS = 2;
constexpr unsigned MM_CONSUMER_ROWS = 64; /* of C, which is what one wgmma computes */

/* The thread's consumer warpgroup, and its index there. */
__device__ __forceinline__ unsigned mm_my_consumer() {
    return threadIdx.x / MM_GROUP - 1;
}

__device__ __forceinline__ unsigned mm_my_thread() {
    return threadIdx.x % MM_GROUP;
}

__device__ __forceinline__ void mm_consumer_sync() {
    mm_warpgroup_sync(1 + mm_my_consumer());
}

/* Registers: threads start with START, 65536 / threads of a multiprocessor, rounded down to 8; 384 threads
 * with 168. The producer keeps REGISTERS, and consumers get what it releases. setmaxnreg waits for ever if it
 * asks for more than were released. A kernel that needs no more registers does without. */
template <unsigned REGISTERS> __device__ __forceinline__ void mm_become_producer() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <unsigned OF_PRODUCER, unsigned START = 168, unsigned CONSUMERS = MM_CONSUMERS>
__device__ __forceinline__ void mm_become_consumer() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(START + (START - OF_PRODUCER) / CONSUMERS));
}

/* --- the ring ------------------------------------------------------------------------------------ */

template <unsigned STAGES> struct mm_ring {
    uint64_t full[STAGES];  /* barriers: the stage's bytes have arrived */
    uint64_t empty[STAGES]; /* all consumers of the cluster have read it */
};

/* By one thread. How often the consumers of the cluster arrive at a stage, and the producer. */
template <unsigned STAGES>
__device__ __forceinline__ void mm_ring_init(mm_ring<STAGES> &ring, unsigned consumers,
                                             unsigned producer = 1) {
    for (unsigned stage = 0; stage < STAGES; stage++) {
        mm_barrier_init(&ring.full[stage], producer);
        mm_barrier_init(&ring.empty[stage], consumers);
    }
}

/* Where a role is in the ring. */
struct mm_ring_state {
    unsigned stage;
    unsigned parity; /* of the stage's phase */
};

template <unsigned STAGES> __device__ __forceinline__ void mm_ring_next(mm_ring_state &at) {
    if (++at.stage == STAGES) {
        at.stage = 0;
        at.parity ^= 1;
    }
}

/* Of the producer: waits until the next stage is empty, which it is at first. */
template <unsigned STAGES>
__device__ __forceinline__ unsigned mm_wait_empty(mm_ring<STAGES> &ring, mm_ring_state &at) {
    const unsigned stage = at.stage;
    mm_barrier_wait(&ring.empty[stage], at.parity ^ 1);
    mm_ring_next<STAGES>(at);
    return stage;
}

/* Of a consumer. */
template <unsigned STAGES>
__device__ __forceinline__ unsigned mm_wait_full(mm_ring<STAGES> &ring, mm_ring_state &at) {
    const unsigned stage = at.stage;
    mm_barrier_wait(&ring.full[stage], at.parity);
    mm_ring_next<STAGES>(at);
    return stage;
}

/* Frees a stage in all blocks of the cluster, since all fill it. wgmma groups belong to the warpgroup, so one
 * thread that has waited may arrive for all. */
template <unsigned CLUSTER, unsigned STAGES>
__device__ __forceinline__ void mm_release(mm_ring<STAGES> &ring, unsigned stage) {
    if (mm_my_thread() < CLUSTER)
        mm_barrier_arrive_at(&ring.empty[stage], mm_my_thread());
}

/* --- a consumer's sums --------------------------------------------------------------------------- */

/* Where wgmma's accumulator fragment puts a thread's sums in the block's tile: two neighbours of a row, two
 * more 8 rows down, repeated every 8 columns. */
__device__ __forceinline__ mm_tile mm_fragment_position(unsigned index) {
    const unsigned lane = mm_my_thread() % 32;
    return {mm_my_consumer() * MM_CONSUMER_ROWS + mm_my_thread() / 32 * 16 + lane / 4 + index / 2 % 2 * 8,
            lane % 4 * 2 + index / 4 * 8 + index % 2};
}

template <typename SUM> struct alignas(4 * sizeof(SUM)) mm_four_sums { SUM sums[4]; };

/* The thread's sums in a workspace, COUNT for each consumer thread of each block. At each four neighbouring
 * threads access neighbouring 16 bytes. */
template <unsigned COUNT, unsigned CONSUMERS = MM_CONSUMERS, typename SUM>
__device__ __forceinline__ mm_four_sums<SUM> *mm_sums_at(SUM *memory, unsigned block) {
    return reinterpret_cast<mm_four_sums<SUM> *>(memory) +
           (block * CONSUMERS + mm_my_consumer()) * (COUNT / 4 * MM_GROUP) + mm_my_thread();
}

template <unsigned COUNT, typename SUM>
__device__ __forceinline__ void mm_store_sums(const SUM (&sums)[COUNT], mm_four_sums<SUM> *to) {
#pragma unroll
    for (unsigned i = 0; i < COUNT; i += 4)
        to[i / 4 * MM_GROUP] = {{sums[i], sums[i + 1], sums[i + 2], sums[i + 3]}};
}

/* Bypasses the L1 cache, which does not see what other multiprocessors write. */
__device__ __forceinline__ mm_four_sums<float> mm_load_past_l1(const mm_four_sums<float> *from) {
    const float4 x = __ldcg(reinterpret_cast<const float4 *>(from));
    return {{x.x, x.y, x.z, x.w}};
}

__device__ __forceinline__ mm_four_sums<uint32_t> mm_load_past_l1(const mm_four_sums<uint32_t> *from) {
    const uint4 x = __ldcg(reinterpret_cast<const uint4 *>(from));
    return {{x.x, x.y, x.z, x.w}};
}

__device__ __forceinline__ mm_four_sums<double> mm_load_past_l1(const mm_four_sums<double> *from) {
    const double2 *pairs = reinterpret_cast<const double2 *>(from);
    const double2 x = __ldcg(pairs), y = __ldcg(pairs + 1);
    return {{x.x, x.y, y.x, y.y}};
}

template <unsigned COUNT, typename SUM>
__device__ __forceinline__ void mm_add_sums(SUM (&sums)[COUNT], const mm_four_sums<SUM> *from) {
#pragma unroll
    for (unsigned i = 0; i < COUNT; i += 4) {
        const mm_four_sums<SUM> x = mm_load_past_l1(&from[i / 4 * MM_GROUP]);
#pragma unroll
        for (unsigned j = 0; j < 4; j++)
            sums[i + j] += x.sums[j];
    }
}
