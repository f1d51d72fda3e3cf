/* Kernels that measure the speed of a device's memories. The kernel `follow` measures the latency of global
 * memory. sweep_shared and sweep_global read on all multiprocessors at once, and the host times them. */
#pragma once

#include <cstdint>

namespace {

/* Reads the multiprocessor's cycle counter. The asm statement is volatile and clobbers memory, so the
 * compiler moves no volatile access across the asm statement. */
__device__ __forceinline__ long long now_cycles() {
    long long now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
    return now;
}

/* `follow` times STEPS reads, after STEPS_BEFORE reads that fill the caches of instructions and addresses. */
constexpr unsigned STEPS = 256;
constexpr unsigned STEPS_BEFORE = 32;

constexpr unsigned FILL_THREADS = 256;
constexpr unsigned LINE_BYTES = 128;

/* sweep_shared repeats its reads several times (`turns`). Each time, each thread of a block reads one word
 * SHARED_READS times. */
constexpr unsigned SHARED_THREADS = 1024;
constexpr unsigned SHARED_READS = 64;
constexpr size_t SWEEP_BLOCK_BYTES = SHARED_THREADS * SHARED_READS * sizeof(uint32_t);

constexpr unsigned GLOBAL_THREADS = 512;

/* Returns the index of the cache line that follows `line` in a chain: a·line + c modulo `lines`, a linear
 * congruential sequence. The chain visits all lines before it repeats, because `lines` is a power of two, c
 * is odd, and a − 1 is a multiple of 4 (Hull and Dobell, 1962). */
__device__ unsigned line_after(unsigned line, unsigned lines) {
    return (line * 1664525u + 1013904223u) & (lines - 1);
}

__global__ void __launch_bounds__(FILL_THREADS) fill(char *memory, unsigned lines) {
    const unsigned line = blockIdx.x * FILL_THREADS + threadIdx.x;
    if (line < lines)
        *reinterpret_cast<const char **>(memory + static_cast<size_t>(line) * LINE_BYTES) =
            memory + static_cast<size_t>(line_after(line, lines)) * LINE_BYTES;
}

/* Reads the pointer at `place`. A relaxed read with device scope bypasses the multiprocessor's L1 cache. */
__device__ __forceinline__ const char *pointer_at(const char *place) {
    const char *next;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(next) : "l"(place) : "memory");
    return next;
}

/* Follows a chain, and measures the cycles of one read. The loop's other instructions cost no time, because
 * they run during the reads. The write to `last` makes the thread wait for the last pointer. */
__global__ void follow(const char *place, double *cycles) {
    __shared__ const char *volatile last;
    for (unsigned step = 0; step < STEPS_BEFORE; step++)
        place = pointer_at(place);
    last = place;
    const long long start = now_cycles();
#pragma unroll 8
    for (unsigned step = 0; step < STEPS; step++)
        place = pointer_at(place);
    last = place;
    *cycles = static_cast<double>(now_cycles() - start) / STEPS;
}

/* Reads shared memory without conflicts: the 32 threads of a warp read words in 32 different banks. */
__global__ void __launch_bounds__(SHARED_THREADS) sweep_shared(unsigned turns, unsigned *sink) {
    __shared__ volatile uint32_t words[SHARED_THREADS];
    uint32_t all = 0;
    words[threadIdx.x] = threadIdx.x;
    for (unsigned turn = 0; turn < turns; turn++) {
#pragma unroll
        for (unsigned i = 0; i < SHARED_READS; i++)
            all |= words[threadIdx.x];
    }
    if (all >= SHARED_THREADS)
        *sink = all;
}

__device__ __forceinline__ unsigned sum_at(const uint4 *place) {
    uint4 words;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "l"(place)
                 : "memory");
    return words.x ^ words.y ^ words.z ^ words.w;
}

/* Reads global memory. Neighbouring threads read neighbouring groups of 16 bytes, and each thread has four
 * reads in flight. The write to `sink` almost never happens. But the compiler cannot know this, so it drops
 * no reads. */
__global__ void __launch_bounds__(GLOBAL_THREADS)
    sweep_global(const uint4 *memory, size_t count, unsigned turns, unsigned *sink) {
    const size_t step = static_cast<size_t>(gridDim.x) * GLOBAL_THREADS;
    unsigned all = 0;
    for (unsigned turn = 0; turn < turns; turn++) {
        size_t i = static_cast<size_t>(blockIdx.x) * GLOBAL_THREADS + threadIdx.x;
        for (; i + 3 * step < count; i += 4 * step) {
            unsigned sums[4];
#pragma unroll
            for (unsigned piece = 0; piece < 4; piece++)
                sums[piece] = sum_at(memory + i + piece * step);
            all += sums[0] + sums[1] + sums[2] + sums[3];
        }
        for (; i < count; i += step)
            all += sum_at(memory + i);
    }
    if (all == 0x9e3779b9u)
        *sink = all;
}

/* Writes a pointer at the beginning of each cache line of 128 bytes. The pointers form a chain through all
 * lines in an irregular order. `lines` is the number of lines, a power of two. */
cudaError_t make_chain(void *memory, unsigned lines, cudaStream_t stream) {
    fill<<<(lines + FILL_THREADS - 1) / FILL_THREADS, FILL_THREADS, 0, stream>>>(static_cast<char *>(memory),
                                                                                 lines);
    return cudaGetLastError();
}

/* Makes one thread follow a chain. The kernel writes the cycles of one read to *cycles, in device memory. */
cudaError_t follow_chain(const char *chain, double *cycles, cudaStream_t stream) {
    follow<<<1, 1, 0, stream>>>(chain, cycles);
    return cudaGetLastError();
}

/* A sweep, in which all multiprocessors read at once. The caller measures its time. */
struct sweep {
    unsigned blocks;
    unsigned turns;     /* how often each block repeats its reads */
    const void *memory; /* launch_global reads this once in each turn; address and size are multiples of 16 */
    size_t bytes;
    unsigned *sink; /* device memory that kernels could write, so the compiler cannot drop reads */
};

cudaError_t launch_shared(const struct sweep *sweep, cudaStream_t stream) {
    sweep_shared<<<sweep->blocks, SHARED_THREADS, 0, stream>>>(sweep->turns, sweep->sink);
    return cudaGetLastError();
}

cudaError_t launch_global(const struct sweep *sweep, cudaStream_t stream) {
    sweep_global<<<sweep->blocks, GLOBAL_THREADS, 0, stream>>>(
        static_cast<const uint4 *>(sweep->memory), sweep->bytes / sizeof(uint4), sweep->turns, sweep->sink);
    return cudaGetLastError();
}

} // namespace
