/* Predicts the occupancy of a kernel: how many of its blocks run on a multiprocessor at a time, and which
 * resource limits them. For comparison, struct mm_attributes has the occupancy that a device reports.
 *
 * Sources: NVIDIA's CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", and
 * cuda_occupancy.h of CUDA 13. The model ignores clusters and named barriers.
 *
 * Any thread may call these functions. They take no NULL. */
#pragma once

#include "gpu/lab/access.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* One row for each resource: constant, name in the API. */
#define MM_LIMITER_TABLE(X)                                                                                  \
    X(MM_LIMITER_THREADS, "threads") /* threads of the multiprocessor, in whole warps */                     \
    X(MM_LIMITER_REGISTERS, "registers")                                                                     \
    X(MM_LIMITER_SHARED_MEMORY, "shared_memory")                                                             \
    X(MM_LIMITER_BLOCKS, "blocks") /* the most blocks of a multiprocessor, even if they are small */

enum mm_limiter { MM_LIMITER_TABLE(MM_CONSTANT) MM_LIMITER_COUNT };

const char *mm_limiter_name(enum mm_limiter limiter);

/* The most that a block may use on every chip of the table. */
enum { MM_BLOCK_THREADS_MAX = 1024, MM_THREAD_REGISTERS_MAX = 255 };

struct mm_block_use {
    unsigned threads;              /* 1 to MM_BLOCK_THREADS_MAX */
    unsigned registers_per_thread; /* 0 to MM_THREAD_REGISTERS_MAX */
    size_t shared_bytes;           /* static and dynamic */
};

/* Number of blocks in blocks_by for a resource that the kernel does not use. */
#define MM_OCCUPANCY_UNLIMITED UINT_MAX

struct mm_occupancy {
    unsigned blocks;    /* blocks at a time; 0: none fits */
    unsigned warps;     /* warps of these blocks */
    unsigned warps_max; /* the most warps of a multiprocessor */
    /* Blocks that each resource alone would allow. `blocks` is the smallest of these numbers. */
    unsigned blocks_by[MM_LIMITER_COUNT];
};

static inline unsigned mm_occupancy_block_warps(unsigned threads) {
    return (threads + MM_WARP_LANES - 1) / MM_WARP_LANES;
}

/* Returns a compute capability of the table, as 10·major + minor. They ascend. Returns 0 for the index after
 * the last one. */
unsigned mm_occupancy_capability(size_t index);

/* Predicts the occupancy. Returns false, with *occupancy untouched, if the compute capability is not in the
 * table. */
bool mm_occupancy_predict(unsigned compute_capability, const struct mm_block_use *use,
                          struct mm_occupancy *occupancy);
