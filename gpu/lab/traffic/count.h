/* Counts the memory accesses of a kernel's warps. A kernel reads a stored matrix in rectangles, and the
 * threads of a block divide each rectangle in the same way. Many rectangles have equal costs. The model
 * computes each of the costs once (gpu/lab/access.h), and multiplies the cost by the number of rectangles.
 *
 * The counts match the compiled kernels (cuobjdump -sass, compute capability 9.0). Matrices begin at
 * multiples of 32 bytes, as in device memory. Any thread may call these functions. No pointer may be NULL. */
#pragma once

#include "gpu/lab/access.h"
#include "gpu/lab/traffic/traffic.h"
#include "gpu/matrix/matrix.h"

/* How threads divide a rectangle of rows × cols elements. Each lane has `each` neighbouring elements of a
 * row, and one instruction of the lane accesses at_once elements. Lanes are assigned row by row. Elements
 * outside the matrix are not accessed. */
struct mm_share {
    unsigned rows;
    unsigned cols; /* a multiple of `each` */
    unsigned each; /* a multiple of at_once */
    /* At most 32 bytes in one access. If at_once exceeds 1, rows begin at multiples of at_once elements. */
    unsigned at_once;
    unsigned lanes; /* 32, or the threads of a smaller block */
};

/* The layout of a rectangle in shared memory: rows that are `pitch` words apart. */
struct mm_tile_layout {
    unsigned pitch;
    unsigned word_bytes;
    /* If set, the columns are `pitch` words apart instead of the rows. Each lane then stores its elements
     * one by one. */
    bool is_turned;
};

/* Adds the loads of a whole matrix from global memory. Each element is loaded `times` times. */
void mm_count_loads(struct mm_traffic *traffic, const struct mm_matrix *x, const struct mm_share *share,
                    uint64_t times);

/* Adds the stores of a whole matrix to global memory. */
void mm_count_stores(struct mm_traffic *traffic, const struct mm_matrix *x, const struct mm_share *share);

/* Adds the stores of a rectangle to shared memory, `times` times. Threads store zeros for elements outside
 * the matrix. */
void mm_count_staging(struct mm_traffic *traffic, const struct mm_share *share,
                      const struct mm_tile_layout *layout, uint64_t times);

/* Adds `times` accesses to shared memory by a warp. Each lane accesses `bytes` (1 to 16) at its offset.
 * `passes` is MM_SHARED_LOAD_PASSES or MM_SHARED_STORE_PASSES. */
void mm_count_shared(struct mm_traffic *traffic, enum mm_traffic_figure passes,
                     const uint32_t offsets[MM_WARP_LANES], unsigned bytes, uint64_t times);
