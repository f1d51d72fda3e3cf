/* Occupancy: how many blocks of a kernel one multiprocessor holds, and which resource allows no more. This is
 * plain arithmetic over a table of chips; a device's own answer is in struct mm_attributes.
 *
 * Sources: NVIDIA's CUDA C++ Programming Guide, "Technical Specifications per Compute Capability" (threads,
 * blocks, registers, shared memory); and for the rules of allocation, and blocks of 12.0, the occupancy
 * calculator of CUDA 13 (cuda_occupancy.h): registers go to warps, in units of 256, and lie in four equal
 * parts; a warp has its registers in one part. Not in the model: limits of clusters and of named barriers.
 *
 * The functions keep no state: any thread. They take no NULL. */
#pragma once

#include "gpu/lab/access.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* One row a resource: constant, wire name. */
#define MM_LIMITER_TABLE(X)                                                                                  \
    X(MM_LIMITER_THREADS, "threads") /* of the multiprocessor, in whole warps */                             \
    X(MM_LIMITER_REGISTERS, "registers")                                                                     \
    X(MM_LIMITER_SHARED_MEMORY, "shared_memory")                                                             \
    X(MM_LIMITER_BLOCKS, "blocks") /* at a time, however small */

enum mm_limiter { MM_LIMITER_TABLE(MM_CONSTANT) MM_LIMITER_COUNT };

/* The wire name. A static string. */
const char *mm_limiter_name(enum mm_limiter limiter);

/* What a block may use at most, on every chip of the table. */
enum { MM_BLOCK_THREADS_MAX = 1024, MM_THREAD_REGISTERS_MAX = 255 };

/* What a block uses. */
struct mm_block_use {
    unsigned threads;              /* 1 to MM_BLOCK_THREADS_MAX */
    unsigned registers_per_thread; /* 0 to MM_THREAD_REGISTERS_MAX */
    size_t shared_bytes;           /* static and dynamic; more than a block can have: no block fits */
};

/* A resource that a kernel does not use allows so many blocks. */
#define MM_OCCUPANCY_UNLIMITED UINT_MAX

struct mm_occupancy {
    unsigned blocks; /* that a multiprocessor holds at a time; 0: none fits */
    unsigned warps;  /* in these */
    unsigned warps_max;
    unsigned blocks_by[MM_LIMITER_COUNT]; /* that each resource alone allows; the least one limits */
};

/* The warps of a block, the last of them perhaps in part. */
static inline unsigned mm_occupancy_block_warps(unsigned threads) {
    return (threads + MM_WARP_LANES - 1) / MM_WARP_LANES;
}

/* Every compute capability of the table, as 10·major + minor, from the lowest; ended by 0. Static. */
const unsigned *mm_occupancy_capabilities(void);

/* False if the table lacks the compute capability; *occupancy is untouched then. */
bool mm_occupancy_predict(unsigned compute_capability, const struct mm_block_use *use,
                          struct mm_occupancy *occupancy);
