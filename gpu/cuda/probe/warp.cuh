/* Kernels of one warp that reads memory in a given pattern, and the cycles it takes. The addresses come from
 * the model (gpu/lab/access.h).
 *
 * Latency: each word read is the next address. Throughput: reads that nothing waits for but the last. Both
 * are measured over few and many reads, and the difference counts, without the clock's own cost. Each is
 * measured several times, and the shortest time counts.
 *
 * Reads are volatile assembler, so the compiler cannot drop, merge or move them. The code is straight,
 * since a loop's instructions would count. One warp reaches a quarter of shared memory's speed, as it
 * belongs to one of four schedulers. */
#pragma once

#include "gpu/cuda/probe/memories.cuh"
#include "gpu/lab/access.h"

#include <limits.h>

namespace {

/* How many reads are few, and many. Those of global memory must all find registers of their own. */
constexpr unsigned SHARED_FEW = 32;
constexpr unsigned SHARED_MANY = 288;
constexpr unsigned SHARED_ROUNDS = 3;
constexpr unsigned GLOBAL_FEW = 8;
constexpr unsigned GLOBAL_MANY = 64;
constexpr unsigned GLOBAL_ROUNDS = 8;
constexpr unsigned GLOBAL_SPANS =
    GLOBAL_ROUNDS * (GLOBAL_FEW + GLOBAL_MANY); /* spans that a measurement reads */

/* Where each lane of the warp reads. */
struct lanes {
    uint32_t offsets[MM_WARP_LANES];
};

__device__ __forceinline__ uint32_t shared_address(const void *place) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(place));
}

/* One reads a word of 4 bytes or one of 8. */
struct Word4 {
    uint32_t low;

    __device__ __forceinline__ void read_shared(uint32_t address) {
        asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(low) : "r"(address) : "memory");
    }
    /* A relaxed read of the whole device's scope is served by the L2 cache or by what lies behind it: a
     * multiprocessor's own cache could be out of date. */
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

/* Writes to shared memory, for which the value must be there. */
__device__ __forceinline__ void write_shared(uint32_t address, uint32_t value) {
    asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

template <typename Word> __device__ __forceinline__ void use(const Word &word, uint32_t sink) {
    write_shared(sink, word.low ^ word.rest());
}

/* Cycles for COUNT reads, each of which gives the address of the next. All of a word is used, or the
 * compiler would read half of it. The high halves are gathered and written now and then, so they do not
 * fill the registers. */
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

/* Cycles for COUNT reads of one place in shared memory. They come back in their order. */
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

/* Cycles for COUNT reads of global memory, each of its own place. `keep`, which is never set, gives each
 * word registers of its own, so no read waits for an earlier one's. */
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

/* The shortest of several rounds over few and over many reads. */
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

template <typename Word>
__global__ void __launch_bounds__(MM_WARP_LANES)
    time_shared(const __grid_constant__ struct lanes lanes, struct mm_access_time *time) {
    /* The pattern begins in bank 0, and at a multiple of 8. */
    __shared__ alignas(256) char memory[MM_ACCESS_BYTES_MAX];
    __shared__ uint32_t sinks[MM_WARP_LANES];
    const uint32_t sink = shared_address(&sinks[threadIdx.x]);
    const uint32_t address = shared_address(memory) + lanes.offsets[threadIdx.x];

    /* Lanes that share a word write the same address into it. What else a word of 8 bytes holds, they leave.
     */
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

/* Times one warp reading words of word_bytes (4 or 8) at these offsets in shared memory, into *time. */
cudaError_t launch_time_shared(const struct lanes &lanes, unsigned word_bytes, struct mm_access_time *time,
                               cudaStream_t stream) {
    if (word_bytes == 4)
        time_shared<Word4><<<1, MM_WARP_LANES, 0, stream>>>(lanes, time);
    else
        time_shared<Word8><<<1, MM_WARP_LANES, 0, stream>>>(lanes, time);
    return cudaGetLastError();
}

/* Times one warp reading words of word_bytes (4 or 8) at these offsets in global memory, into *time;
 * time->latency_cycles becomes 0. Each access lies span_bytes (a multiple of 8) after the access before, so
 * none finds its words in a cache. GLOBAL_SPANS spans can be read from `memory` on; for the time of global
 * memory they must be in no cache. */
cudaError_t launch_time_global(const struct lanes &lanes, unsigned word_bytes, const char *memory,
                               size_t span_bytes, struct mm_access_time *time, cudaStream_t stream) {
    if (word_bytes == 4)
        time_global<Word4><<<1, MM_WARP_LANES, 0, stream>>>(lanes, memory, span_bytes, time, false);
    else
        time_global<Word8><<<1, MM_WARP_LANES, 0, stream>>>(lanes, memory, span_bytes, time, false);
    return cudaGetLastError();
}

} // namespace
