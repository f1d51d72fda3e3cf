/* The host side of the probe, which measures the speed of a device's memories. gpu/lab/access.h computes the
 * addresses, so this file knows no access pattern. */
#include "gpu/cuda/memory.h"
#include "gpu/cuda/job_memory.h"
#include "gpu/cuda/probe/warp.cuh"

#include <assert.h>

namespace {

/* The least size of each half of the probe's global memory. The probe measures in the first half. Before a
 * measurement, the probe reads or writes the second half, which evicts the first half from the L2 cache. */
constexpr size_t HALF_BYTES_MIN = (size_t)32 << 20;

/* The chain in the L2 cache has 1/CACHE_SHARE of the cache's lines, but at least CACHE_LINES_MIN lines. */
enum { CACHE_SHARE = 8, CACHE_LINES_MIN = 1024 };

/* With these numbers, a sweep takes hundreds of microseconds, which is much longer than a launch takes. */
enum { SHARED_TURNS = 64, GLOBAL_TURNS = 4, BLOCKS_PER_MULTIPROCESSOR = 4 };

/* The results in device memory, except the times of accesses. */
struct findings {
    double cache_latency_cycles;
    double global_latency_cycles;
    unsigned sink;
};

struct probe {
    struct mm_lane *lane;
    size_t half_bytes; /* a power of two, at least twice the L2 cache; 0 if only shared memory is measured */
    size_t read_bytes; /* how many bytes at the beginning of the first half have been read */

    /* One block of device memory, in this order: the first half, the second half, and the results. */
    char *first;
    char *second;
    struct mm_access_time *times; /* the times of the accesses, then the time of linear shared reads */
    struct findings *findings;
};

size_t cache_bytes(const struct probe *probe) {
    return probe->lane->device->head.l2_bytes;
}

/* Acquires one block of device memory for the halves and the results. The halves are at the beginning of the
 * block, because they need the largest alignment. */
enum mm_status take(struct probe *probe, size_t count, struct mm_error *error) {
    const size_t times_bytes = (count + 1) * sizeof *probe->times;
    void *memory = NULL;
    const enum mm_status status = mm_cuda_pool_acquire(
        probe->lane, 2 * probe->half_bytes + times_bytes + sizeof *probe->findings, &memory, error);
    if (status != MM_OK)
        return status;
    probe->first = static_cast<char *>(memory);
    probe->second = probe->first + probe->half_bytes;
    probe->times = reinterpret_cast<struct mm_access_time *>(probe->second + probe->half_bytes);
    probe->findings = reinterpret_cast<struct findings *>(probe->times + count + 1);
    return MM_OK;
}

/* Returns the address of the next unread `bytes` of the first half. After the end, starts again at the
 * beginning of the half, which is no longer in the cache by then. */
const char *unread(struct probe *probe, size_t bytes) {
    assert(bytes <= probe->half_bytes);
    if (probe->read_bytes + bytes > probe->half_bytes)
        probe->read_bytes = 0;
    const char *part = probe->first + probe->read_bytes;
    probe->read_bytes += bytes;
    return part;
}

/* Returns the distance in bytes between two accesses. The distance is so large that two accesses share no
 * cache line. */
size_t span_of(const struct lanes *lanes, unsigned word_bytes) {
    size_t end = 0;
    for (unsigned lane = 0; lane < MM_WARP_LANES; lane++)
        if (lanes->offsets[lane] + word_bytes > end)
            end = lanes->offsets[lane] + word_bytes;
    return mm_size_round_up(end, LINE_BYTES);
}

cudaError_t time_access(struct probe *probe, const struct mm_access *access, struct mm_access_time *time) {
    const cudaStream_t stream = probe->lane->stream;
    const bool is_narrow = access->word_bytes == 4;
    struct lanes lanes;
    mm_access_offsets(access, lanes.offsets);
    if (access->memory == MM_MEMORY_SHARED) {
        const auto kernel = is_narrow ? time_shared<Word4> : time_shared<Word8>;
        kernel<<<1, MM_WARP_LANES, 0, stream>>>(lanes, time);
    } else {
        const auto kernel = is_narrow ? time_global<Word4> : time_global<Word8>;
        const size_t span_bytes = span_of(&lanes, access->word_bytes);
        const char *part = unread(probe, GLOBAL_SPANS * span_bytes);
        kernel<<<1, MM_WARP_LANES, 0, stream>>>(lanes, part, span_bytes, time, false);
    }
    return cudaGetLastError();
}

/* Measures the seconds of a sweep. A short first sweep loads the code and speeds up the device's clocks. */
cudaError_t time_sweep(struct mm_lane *lane, struct sweep *sweep, unsigned turns,
                       cudaError_t (*launch)(const struct sweep *, cudaStream_t), double *seconds) {
    float ms = 0.0f;
    sweep->turns = 1;
    cudaError_t code = launch(sweep, lane->stream);
    if (code == cudaSuccess)
        code = cudaEventRecord(lane->marks[MM_CUDA_UPLOADED], lane->stream);
    sweep->turns = turns;
    if (code == cudaSuccess)
        code = launch(sweep, lane->stream);
    if (code == cudaSuccess)
        code = cudaEventRecord(lane->marks[MM_CUDA_COMPUTED], lane->stream);
    if (code == cudaSuccess)
        code = cudaEventSynchronize(lane->marks[MM_CUDA_COMPUTED]);
    if (code == cudaSuccess)
        code = cudaEventElapsedTime(&ms, lane->marks[MM_CUDA_UPLOADED], lane->marks[MM_CUDA_COMPUTED]);
    *seconds = (double)ms / 1e3;
    return code;
}

double rate(double bytes, double seconds) {
    return seconds > 0 ? bytes / seconds : 0;
}

cudaError_t time_sweeps(struct probe *probe, struct mm_memory_speed *speed) {
    const unsigned blocks = BLOCKS_PER_MULTIPROCESSOR * probe->lane->device->head.multiprocessors;
    struct sweep sweep = {blocks, 0, probe->first, 2 * probe->half_bytes, &probe->findings->sink};
    double seconds = 0;
    cudaError_t code = time_sweep(probe->lane, &sweep, SHARED_TURNS, launch_shared, &seconds);
    speed->shared_bytes_per_second = rate((double)blocks * SHARED_TURNS * SWEEP_BLOCK_BYTES, seconds);
    if (code == cudaSuccess)
        code = time_sweep(probe->lane, &sweep, GLOBAL_TURNS, launch_global, &seconds);
    speed->global_bytes_per_second = rate((double)sweep.bytes * GLOBAL_TURNS, seconds);
    return code;
}

/* Returns how many lines are in the chain for the L2 cache's latency. The number is a power of two. */
unsigned cache_lines(const struct probe *probe) {
    unsigned lines = CACHE_LINES_MIN;
    while ((size_t)2 * lines * LINE_BYTES <= cache_bytes(probe) / CACHE_SHARE)
        lines *= 2;
    return lines;
}

/* Writes a chain to the second half, and reads the chain once, so the chain is in the L2 cache. Writing a
 * pointer would cache only the pointer's own bytes, and not the whole sector. */
cudaError_t lay_in_cache(struct probe *probe, unsigned lines) {
    const struct sweep once = {BLOCKS_PER_MULTIPROCESSOR * probe->lane->device->head.multiprocessors, 1,
                               probe->second, (size_t)lines * LINE_BYTES, &probe->findings->sink};
    const cudaError_t code = make_chain(probe->second, lines, probe->lane->stream);
    return code == cudaSuccess ? launch_global(&once, probe->lane->stream) : code;
}

/* Measures the memories' speed. Writes the chain in the first half before the sweeps, because the sweeps then
 * evict the chain from the cache. So follow_chain measures the latency of memory, and not of the cache. */
cudaError_t time_memories(struct probe *probe, struct mm_access_time *plainest,
                          struct mm_memory_speed *speed) {
    static const struct mm_access linear = {MM_MEMORY_SHARED, MM_PATTERN_LINEAR, 0, 4, false, {0}, 0};
    const cudaStream_t stream = probe->lane->stream;
    cudaError_t code = make_chain(probe->first, (unsigned)(probe->half_bytes / LINE_BYTES), stream);
    if (code == cudaSuccess)
        code = time_sweeps(probe, speed);
    if (code == cudaSuccess)
        code = follow_chain(probe->first, &probe->findings->global_latency_cycles, stream);
    if (code == cudaSuccess)
        code = lay_in_cache(probe, cache_lines(probe));
    if (code == cudaSuccess)
        code = follow_chain(probe->second, &probe->findings->cache_latency_cycles, stream);
    if (code == cudaSuccess)
        code = time_access(probe, &linear, plainest);
    return code;
}

cudaError_t read_back(struct probe *probe, struct mm_access_time *times, size_t count,
                      struct mm_memory_speed *speed) {
    struct mm_access_time plainest;
    struct findings findings;
    const cudaStream_t stream = probe->lane->stream;
    const enum cudaMemcpyKind kind = cudaMemcpyDeviceToHost;
    cudaError_t code = cudaMemcpyAsync(&plainest, probe->times + count, sizeof plainest, kind, stream);
    if (code == cudaSuccess)
        code = cudaMemcpyAsync(&findings, probe->findings, sizeof findings, kind, stream);
    if (code == cudaSuccess && count > 0)
        code = cudaMemcpyAsync(times, probe->times, count * sizeof *times, kind, stream);
    const cudaError_t waited = cudaStreamSynchronize(stream);
    if (code == cudaSuccess)
        code = waited;
    if (code == cudaSuccess && speed != NULL) {
        speed->shared_latency_cycles = plainest.latency_cycles;
        speed->cache_latency_cycles = findings.cache_latency_cycles;
        speed->global_latency_cycles = findings.global_latency_cycles;
    }
    return code;
}

/* First zeroes all memory, so no kernel reads memory that was never written. This also evicts the first half
 * from the cache. The accesses come after the sweeps, because sweeps speed up the device's clocks. */
cudaError_t run(struct probe *probe, const struct mm_access *accesses, size_t count,
                struct mm_access_time *times, struct mm_memory_speed *speed) {
    const size_t bytes = 2 * probe->half_bytes + (count + 1) * sizeof *probe->times + sizeof *probe->findings;
    cudaError_t code = cudaMemsetAsync(probe->first, 0, bytes, probe->lane->stream);
    if (code == cudaSuccess && speed != NULL)
        code = time_memories(probe, &probe->times[count], speed);
    for (size_t index = 0; index < count && code == cudaSuccess; index++)
        code = time_access(probe, &accesses[index], &probe->times[index]);
    return code == cudaSuccess ? read_back(probe, times, count, speed) : code;
}

bool needs_halves(const struct mm_access *accesses, size_t count, const struct mm_memory_speed *speed) {
    bool needed = speed != NULL;
    for (size_t index = 0; index < count; index++)
        needed = needed || accesses[index].memory == MM_MEMORY_GLOBAL;
    return needed;
}

} // namespace

enum mm_status mm_cuda_probe(struct mm_device *head, const struct mm_access *accesses, size_t count,
                             struct mm_access_time *times, struct mm_memory_speed *speed,
                             struct mm_error *error) {
    struct mm_cuda_device *device = reinterpret_cast<struct mm_cuda_device *>(head);
    struct probe probe = {};
    probe.lane = &device->direct;
    enum mm_status status = mm_cuda_use(head, error);
    if (status != MM_OK)
        return status;
    if (needs_halves(accesses, count, speed))
        probe.half_bytes = HALF_BYTES_MIN;
    while (probe.half_bytes > 0 && probe.half_bytes < 2 * cache_bytes(&probe))
        probe.half_bytes *= 2;
    struct mm_cuda_retry retry = {};
    retry.lane = probe.lane;
    do
        status = take(&probe, count, error);
    while (status == MM_NO_DEVICE_MEMORY && mm_cuda_prepare_retry(&retry));
    if (status != MM_OK)
        return status;
    const cudaError_t code = run(&probe, accesses, count, times, speed);
    mm_cuda_pool_free(probe.lane, probe.first);
    return mm_cuda_status(device, code, "timing its memories", error);
}
