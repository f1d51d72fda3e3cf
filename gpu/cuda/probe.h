/* The probe's kernels as its host side launches them. Each function enqueues on the stream and returns; all
 * memory is the device's own. */
#ifndef MM_GPU_CUDA_PROBE_H
#define MM_GPU_CUDA_PROBE_H

#include "gpu/access.h"

#include <cuda_runtime_api.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where each lane of the warp reads, passed to a kernel by value. */
struct mm_cuda_lanes {
    uint32_t offsets[MM_WARP_LANES];
};

/* What mm_cuda_time_global reads on its way, for each byte that one access spans. */
enum { MM_CUDA_GLOBAL_SPANS = 576 };

/* Times one warp reading words of word_bytes (4 or 8) at these offsets in shared memory, into *time. */
cudaError_t mm_cuda_time_shared(const struct mm_cuda_lanes *lanes, unsigned word_bytes,
                                struct mm_access_time *time, cudaStream_t stream);

/* The same in global memory, where each access lies span_bytes (a multiple of 8) behind the one before, so
 * that none finds what another has brought to a cache; time->latency_cycles becomes 0. From `memory` on,
 * MM_CUDA_GLOBAL_SPANS spans can be read; they are in no cache if the time shall be global memory's. */
cudaError_t mm_cuda_time_global(const struct mm_cuda_lanes *lanes, unsigned word_bytes, const void *memory,
                                size_t span_bytes, struct mm_access_time *time, cudaStream_t stream);

/* Makes a chain of pointers through `memory`, one at the head of each of `lines` (a power of two) lines of
 * MM_CUDA_LINE_BYTES, that passes through all of them in an order without a pattern. */
enum { MM_CUDA_LINE_BYTES = 128 };
cudaError_t mm_cuda_chain(void *memory, unsigned lines, cudaStream_t stream);

/* Times one thread following such a chain for some hundred pointers: cycles for each into *cycles. */
cudaError_t mm_cuda_follow(const void *chain, double *cycles, cudaStream_t stream);

/* A read by every multiprocessor at once, of which the time is taken from outside. */
struct mm_cuda_sweep {
    unsigned blocks;
    unsigned turns;     /* how often each reads its share */
    const void *memory; /* for global memory alone: what is read in one turn, aligned to 16 bytes */
    size_t bytes;       /* its size, a multiple of 16 */
    unsigned *sink;     /* a word that makes the reads count; it is not written in fact */
};

/* Shared memory, in the pattern `linear`, by blocks of their own: MM_CUDA_SWEEP_BLOCK_BYTES a block and turn.
 */
enum { MM_CUDA_SWEEP_BLOCK_BYTES = 1024 * 64 * 4 };
cudaError_t mm_cuda_sweep_shared(const struct mm_cuda_sweep *sweep, cudaStream_t stream);

/* Global memory, by all blocks together: `bytes` a turn. */
cudaError_t mm_cuda_sweep_global(const struct mm_cuda_sweep *sweep, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
