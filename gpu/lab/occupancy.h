/* Occupancy: how many blocks of a kernel run on one multiprocessor at a time, and which resource limits
 * them. The model computes with a table of chips; struct mm_attributes has a device's own answer.
 *
 * Sources: NVIDIA's CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", for
 * threads, blocks, registers and shared memory. The occupancy calculator of CUDA 13 (cuda_occupancy.h),
 * for rules of allocation and the blocks of 12.0. Warps allocate registers in units of 256. Registers are
 * in four equal partitions, and a warp has all of its registers in one. The model ignores the limits of
 * clusters and of named barriers.
 *
 * The functions keep no state, so any thread may call them. They take no NULL. */
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
    X(MM_LIMITER_BLOCKS, "blocks") /* blocks at a time, even if they are small */

enum mm_limiter { MM_LIMITER_TABLE(MM_CONSTANT) MM_LIMITER_COUNT };

/* Returns the name in the API, a static string. */
const char *mm_limiter_name(enum mm_limiter limiter);

/* The most that a block may use on every chip of the table. */
enum { MM_BLOCK_THREADS_MAX = 1024, MM_THREAD_REGISTERS_MAX = 255 };

/* The resources that a block uses. */
struct mm_block_use {
    unsigned threads;              /* 1 to MM_BLOCK_THREADS_MAX */
    unsigned registers_per_thread; /* 0 to MM_THREAD_REGISTERS_MAX */
    size_t shared_bytes; /* static and dynamic shared memory; if a block cannot have so much, no block fits */
};

/* Blocks that a resource allows if the kernel does not use it. */
#define MM_OCCUPANCY_UNLIMITED UINT_MAX

struct mm_occupancy {
    unsigned blocks;    /* blocks that run on a multiprocessor at a time; 0: none fits */
    unsigned warps;     /* warps of these blocks */
    unsigned warps_max; /* the most warps of a multiprocessor */
    unsigned
        blocks_by[MM_LIMITER_COUNT]; /* blocks that each resource alone allows; the smallest number limits */
};

/* Returns the warps of a block; the last may have fewer threads. */
static inline unsigned mm_occupancy_block_warps(unsigned threads) {
    return (threads + MM_WARP_LANES - 1) / MM_WARP_LANES;
}

/* Returns all compute capabilities of the table, as 10·major + minor, in ascending order, ended by 0.
 * Static. */
const unsigned *mm_occupancy_capabilities(void);

/* Predicts the occupancy. Returns false, with *occupancy untouched, if the table lacks the compute
 * capability. */
bool mm_occupancy_predict(unsigned compute_capability, const struct mm_block_use *use,
                          struct mm_occupancy *occupancy);
