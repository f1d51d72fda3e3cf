/* Counts what the warps of a kernel ask of memory. A kernel walks a stored matrix in rectangles, and the
 * threads of a block share out each rectangle in the same way. So one rectangle in the interior and one at
 * each border are walked, access by access (gpu/lab/access.h), and the counts are multiplied.
 *
 * The counts are those of the compiled kernels (cuobjdump -sass, compute capability 9.0): where the compiler
 * joins loads, the model has the joined ones. Matrices begin at multiples of 32 bytes, as device memory does.
 * The functions keep no state: any thread. No pointer may be NULL. */
#pragma once

#include "gpu/lab/access.h"
#include "gpu/lab/traffic/traffic.h"
#include "gpu/matrix/matrix.h"

/* How threads share out a rectangle of rows × cols elements: place p, row by row, has `each` neighbours, and
 * warps have successive places. A lane accesses `at_once` of its elements by one instruction. Lanes whose
 * elements lie past the edge of the matrix access nothing. */
struct mm_share {
    unsigned rows;
    unsigned cols;    /* a multiple of `each` */
    unsigned each;    /* a multiple of at_once */
    unsigned at_once; /* more than 1 only if all rows begin at multiples of so many; at most 32 bytes */
    unsigned lanes;   /* of a warp: 32, or fewer if a block has no more threads */
};

/* Where a rectangle lies in shared memory: rows `pitch` words apart. Turned: its columns do, and elements of
 * one lane are stored one by one. */
struct mm_tile_layout {
    unsigned pitch;
    unsigned word_bytes;
    bool is_turned;
};

/* Adds the loads of a whole matrix from global memory, each of them so many times. */
void mm_count_loads(struct mm_traffic *traffic, const struct mm_matrix *x, const struct mm_share *share,
                    uint64_t times);

/* Adds the stores of a whole matrix to global memory. */
void mm_count_stores(struct mm_traffic *traffic, const struct mm_matrix *x, const struct mm_share *share);

/* Adds the stores of one rectangle to shared memory, by all of its threads: past an edge they store zeros. */
void mm_count_staging(struct mm_traffic *traffic, const struct mm_share *share,
                      const struct mm_tile_layout *layout, uint64_t times);

/* Adds one access to shared memory, of 1 to 16 bytes from each of the offsets on, in bytes. `passes` is
 * MM_SHARED_LOAD_PASSES or MM_SHARED_STORE_PASSES. */
void mm_count_shared(struct mm_traffic *traffic, enum mm_traffic_figure passes,
                     const uint32_t offsets[MM_WARP_LANES], unsigned bytes, uint64_t times);
