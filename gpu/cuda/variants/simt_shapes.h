/* The shapes of blocks from which `simt` chooses (simt.cu); simt.cuh has the kernel. C code includes this
 * too, to compute the memory traffic of `simt`. */
#pragma once

#include <stdbool.h>

#ifdef __cplusplus
#define MM_SIMT_CONSTANT constexpr
#else
#define MM_SIMT_CONSTANT static const
#endif

/* A shape of a block, and its speed. */
struct mm_simt_shape {
    unsigned rows;        /* rows of C that a block computes */
    unsigned cols;        /* columns of C that a block computes */
    unsigned depth;       /* elements of k in a stage */
    unsigned stages;      /* stages in shared memory: one is multiplied while the others are filled */
    unsigned thread_rows; /* rows of C that a thread computes */
    unsigned thread_cols; /* columns of C that a thread computes */
    unsigned lane_rows;   /* threads of a warp along a column of C; 32/lane_rows threads are along a row */
    unsigned resident;  /* blocks that must fit on a multiprocessor; this limits the registers of a thread */
    bool keeps_k_major; /* a slab of A that is contiguous along k stays so, and aligned rows are copied 16
                           bytes at a time; false: 4-byte copies transpose the slab */
    /* Fractions of a multiprocessor's peak rate. Measured on an H200, with one round of blocks, k = 2048, and
     * operands in the caches. */
    float rate;       /* with `resident` blocks on a multiprocessor */
    float rate_alone; /* with one block on a multiprocessor */
};

/* All shapes. The first needs the least shared memory, so it fits every device. */
/* clang-format off */
MM_SIMT_CONSTANT struct mm_simt_shape mm_simt_shapes[] = {
    {.rows = 32, .cols = 32, .depth = 32, .stages = 3, .thread_rows = 4, .thread_cols = 4,
     .lane_rows = 8, .resident = 8, .keeps_k_major = true, .rate = 0.584f, .rate_alone = 0.242f},
    {.rows = 64, .cols = 64, .depth = 32, .stages = 3, .thread_rows = 4, .thread_cols = 8,
     .lane_rows = 8, .resident = 3, .keeps_k_major = true, .rate = 0.656f, .rate_alone = 0.540f},
    {.rows = 16, .cols = 128, .depth = 32, .stages = 4, .thread_rows = 4, .thread_cols = 4,
     .lane_rows = 4, .resident = 3, .keeps_k_major = true, .rate = 0.594f, .rate_alone = 0.446f},
    {.rows = 256, .cols = 16, .depth = 16, .stages = 3, .thread_rows = 8, .thread_cols = 4,
     .lane_rows = 8, .resident = 3, .keeps_k_major = true, .rate = 0.479f, .rate_alone = 0.249f},
    {.rows = 64, .cols = 128, .depth = 16, .stages = 3, .thread_rows = 8, .thread_cols = 8,
     .lane_rows = 8, .resident = 3, .keeps_k_major = false, .rate = 0.732f, .rate_alone = 0.621f},
    {.rows = 128, .cols = 256, .depth = 16, .stages = 3, .thread_rows = 8, .thread_cols = 16,
     .lane_rows = 4, .resident = 1, .keeps_k_major = false, .rate = 0.727f, .rate_alone = 0.726f},
};
/* clang-format on */
