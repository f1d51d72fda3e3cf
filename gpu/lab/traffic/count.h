/* Counts the memory accesses of a kernel's warps. A kernel reads a stored matrix in rectangles, and the
 * threads of a block divide each rectangle in the same way. The model computes one rectangle of the
 * interior and one at each border, access by access (gpu/lab/access.h), and multiplies the counts.
 *
 * The counts match the compiled kernels (cuobjdump -sass, compute capability 9.0): if the compiler merges
 * loads, so does the model. Matrices begin at multiples of 32 bytes, as device memory does. The functions
 * keep no state, so any thread may call them. No pointer may be NULL. */
#pragma once

#include "gpu/lab/access.h"
#include "gpu/lab/traffic/traffic.h"
#include "gpu/matrix/matrix.h"

/* How threads divide a rectangle of rows × cols elements. Each lane has `each` neighbouring elements of a
 * row; successive lanes have successive groups, row by row. One instruction of a lane accesses at_once of
 * its elements. Elements outside the matrix are not accessed. */
struct mm_share {
    unsigned rows;
    unsigned cols;    /* a multiple of `each` */
    unsigned each;    /* a multiple of at_once */
    unsigned at_once; /* elements of one instruction; more than 1 only if all rows begin at multiples of
                         at_once; at most 32 bytes */
    unsigned lanes;   /* lanes of a warp: 32, or fewer if a block has fewer threads */
};

/* Where a rectangle is in shared memory: its rows are `pitch` words apart. */
struct mm_tile_layout {
    unsigned pitch;
    unsigned word_bytes;
    bool is_turned; /* the columns are `pitch` words apart, and a lane's elements are stored one by one */
};

/* Adds the loads of a whole matrix from global memory, if each element is loaded `times` times. */
void mm_count_loads(struct mm_traffic *traffic, const struct mm_matrix *x, const struct mm_share *share,
                    uint64_t times);

/* Adds the stores of a whole matrix to global memory. */
void mm_count_stores(struct mm_traffic *traffic, const struct mm_matrix *x, const struct mm_share *share);

/* Adds the stores of one rectangle to shared memory by all of its threads. Outside the matrix they store
 * zeros. */
void mm_count_staging(struct mm_traffic *traffic, const struct mm_share *share,
                      const struct mm_tile_layout *layout, uint64_t times);

/* Adds `times` accesses to shared memory. Each lane accesses `bytes` (1 to 16) at its offset. `passes` is
 * MM_SHARED_LOAD_PASSES or MM_SHARED_STORE_PASSES. */
void mm_count_shared(struct mm_traffic *traffic, enum mm_traffic_figure passes,
                     const uint32_t offsets[MM_WARP_LANES], unsigned bytes, uint64_t times);
