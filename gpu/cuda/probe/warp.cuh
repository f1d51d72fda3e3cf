/* Kernels in which one warp reads memory in a pattern and counts the cycles. To measure the latency, each
 * read returns the address of the next read. To measure the throughput, the warp waits only for the last
 * read. A kernel times few reads and many reads, several times each. Then it subtracts the shortest time of
 * few reads from the shortest time of many reads, so the cost of reading the clock cancels out.
 *
 * Reads are volatile asm, so the compiler cannot drop, merge or move them. The loops of reads are unrolled,
 * because a loop's instructions would also take time. One warp reaches only a quarter of shared memory's
 * speed, because it runs on only one of the four schedulers of a multiprocessor. */
#pragma once

#include "gpu/cuda/probe/memories.cuh"
#include "gpu/lab/access.h"

#include <limits.h>

namespace {

/* In each round, a kernel times FEW reads, and then MANY reads. GLOBAL_MANY is small, because each read needs
 * registers. */
constexpr unsigned SHARED_FEW = 32;
constexpr unsigned SHARED_MANY = 288;
constexpr unsigned SHARED_ROUNDS = 3;
constexpr unsigned GLOBAL_FEW = 8;
constexpr unsigned GLOBAL_MANY = 64;
constexpr unsigned GLOBAL_ROUNDS = 8;
constexpr unsigned GLOBAL_SPANS = GLOBAL_ROUNDS * (GLOBAL_FEW + GLOBAL_MANY);

/* For each lane of the warp, the offset in bytes at which the lane reads. */
struct lanes {
    uint32_t offsets[MM_WARP_LANES];
};

__device__ __forceinline__ uint32_t shared_address(const void *place) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(place));
}

/* A word of 4 bytes, in one register. Word4 and Word8 have functions with equal names, so a template can use
 * either struct. */
struct Word4 {
    uint32_t low;

    __device__ __forceinline__ void read_shared(uint32_t address) {
        asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(low) : "r"(address) : "memory");
    }
    /* A relaxed read with device scope bypasses the multiprocessor's L1 cache. */
    __device__ __forceinline__ void read_global(const char *address) {
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(low) : "l"(address) : "memory");
    }
    __device__ __forceinline__ uint32_t rest() const {
        return 0;
    }
};

struct Word8 {
    uint32_t low;
    uint32_t high;

    __device__ __forceinline__ void read_shared(uint32_t address) {
        asm volatile("ld.volatile.shared.v2.u32 {%0, %1}, [%2];"
                     : "=r"(low), "=r"(high)
                     : "r"(address)
                     : "memory");
    }
    __device__ __forceinline__ void read_global(const char *address) {
        asm volatile("ld.relaxed.gpu.global.v2.u32 {%0, %1}, [%2];"
                     : "=r"(low), "=r"(high)
                     : "l"(address)
                     : "memory");
    }
    __device__ __forceinline__ uint32_t rest() const {
        return high;
    }
};

/* Writes to shared memory. Before the write, the thread waits for the read that returns `value`. */
__device__ __forceinline__ void write_shared(uint32_t address, uint32_t value) {
    asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

template <typename Word> __device__ __forceinline__ void use(const Word &word, uint32_t sink) {
    write_shared(sink, word.low ^ word.rest());
}

/* Counts the cycles of COUNT reads, each of which returns the address of the next read. Uses both halves of a
 * word of 8 bytes, because otherwise the compiler would read only one half. Writes the high halves after
 * every PERIOD reads, because keeping them all would need too many registers. */
template <typename Word, unsigned COUNT>
__device__ __forceinline__ long long time_chain(uint32_t address, uint32_t sink) {
    constexpr unsigned PLACES = 4;
    constexpr unsigned PERIOD = 16;
    uint32_t rests[PLACES] = {};
    Word before = {};
    const long long start = now_cycles();
#pragma unroll
    for (unsigned i = 0; i < COUNT; i++) {
        Word word;
        word.read_shared(address);
        address = word.low;
        rests[i % PLACES] ^= before.rest();
        before = word;
        if (sizeof(Word) > sizeof(uint32_t) && i % PERIOD == PERIOD - 1)
            write_shared(sink, rests[0] ^ rests[1] ^ rests[2] ^ rests[3]);
    }
    write_shared(sink, address ^ before.rest());
    return now_cycles() - start;
}

/* Counts the cycles of COUNT reads of one address in shared memory. Waits only for the last read. */
template <typename Word, unsigned COUNT>
__device__ __forceinline__ long long time_shared_reads(uint32_t address, uint32_t sink) {
    Word word;
    const long long start = now_cycles();
#pragma unroll
    for (unsigned i = 0; i < COUNT; i++)
        word.read_shared(address);
    use(word, sink);
    return now_cycles() - start;
}

/* Counts the cycles of COUNT reads of global memory, each at another address. `keep` is always false, but the
 * compiler does not know that. So the compiler gives each word its own registers, and no read waits for
 * another read. */
template <typename Word, unsigned COUNT>
__device__ __forceinline__ long long time_global_reads(const char *&place, size_t span_bytes, uint32_t sink,
                                                       bool keep) {
    Word words[COUNT];
    const long long start = now_cycles();
#pragma unroll
    for (unsigned i = 0; i < COUNT; i++) {
        words[i].read_global(place);
        place += span_bytes;
    }
    use(words[COUNT - 1], sink);
    const long long cycles = now_cycles() - start;
    if (keep) {
#pragma unroll
        for (unsigned i = 0; i < COUNT; i++)
            use(words[i], sink);
    }
    return cycles;
}

/* The fewest cycles that a round took, for few reads and for many reads. */
struct Shortest {
    long long few = LLONG_MAX;
    long long many = LLONG_MAX;

    __device__ void take(long long few_cycles, long long many_cycles) {
        few = few_cycles < few ? few_cycles : few;
        many = many_cycles < many ? many_cycles : many;
    }
    __device__ double each(unsigned reads) const {
        return static_cast<double>(many - few) / reads;
    }
};

/* Times one warp that reads words of shared memory at these offsets. */
template <typename Word>
__global__ void __launch_bounds__(MM_WARP_LANES)
    time_shared(const __grid_constant__ struct lanes lanes, struct mm_access_time *time) {
    /* The alignment puts offset 0 in bank 0, and lets words of 8 bytes be read. */
    __shared__ alignas(256) char memory[MM_ACCESS_BYTES_MAX];
    __shared__ uint32_t sinks[MM_WARP_LANES];
    const uint32_t sink = shared_address(&sinks[threadIdx.x]);
    const uint32_t address = shared_address(memory) + lanes.offsets[threadIdx.x];

    /* Each lane writes the address of a word into that word, so a chain reads the word again and again. If
     * lanes share a word, they write equal values. */
    write_shared(address, address);
    __syncwarp();

    Shortest chain;
    Shortest reads;
#pragma unroll 1
    for (unsigned round = 0; round < SHARED_ROUNDS; round++) {
        const long long few = time_chain<Word, SHARED_FEW>(address, sink);
        chain.take(few, time_chain<Word, SHARED_MANY>(address, sink));
    }
#pragma unroll 1
    for (unsigned round = 0; round < SHARED_ROUNDS; round++) {
        const long long few = time_shared_reads<Word, SHARED_FEW>(address, sink);
        reads.take(few, time_shared_reads<Word, SHARED_MANY>(address, sink));
    }
    if (threadIdx.x == 0)
        *time = {chain.each(SHARED_MANY - SHARED_FEW), reads.each(SHARED_MANY - SHARED_FEW)};
}

/* Times one warp that reads words of global memory at these offsets. Sets time->latency_cycles to 0. Each
 * lane reads GLOBAL_SPANS times, and adds span_bytes to the address after each read. span_bytes is a multiple
 * of 8. The memory must not be in any cache. */
template <typename Word>
__global__ void __launch_bounds__(MM_WARP_LANES)
    time_global(const __grid_constant__ struct lanes lanes, const char *memory, size_t span_bytes,
                struct mm_access_time *time, bool keep) {
    __shared__ uint32_t sinks[MM_WARP_LANES];
    const uint32_t sink = shared_address(&sinks[threadIdx.x]);
    const char *place = memory + lanes.offsets[threadIdx.x];
    Shortest reads;
#pragma unroll 1
    for (unsigned round = 0; round < GLOBAL_ROUNDS; round++) {
        const long long few = time_global_reads<Word, GLOBAL_FEW>(place, span_bytes, sink, keep);
        reads.take(few, time_global_reads<Word, GLOBAL_MANY>(place, span_bytes, sink, keep));
    }
    if (threadIdx.x == 0)
        *time = {0.0, reads.each(GLOBAL_MANY - GLOBAL_FEW)};
}

} // namespace
