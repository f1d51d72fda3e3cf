/* The shapes of blocks that `simt` chooses from (simt.cuh has the kernel, simt.cu the choice). For C as well:
 * the traffic of `simt` follows from them. */
#pragma once

#include <stdbool.h>

#ifdef __cplusplus
#define MM_SIMT_CONSTANT constexpr
#else
#define MM_SIMT_CONSTANT static const
#endif

/* A shape of block, and how fast it is. */
struct mm_simt_shape {
    unsigned rows; /* of C that a block computes */
    unsigned cols;
    unsigned depth;       /* of a stage, along k */
    unsigned stages;      /* in shared memory: one is multiplied, the others are being copied */
    unsigned thread_rows; /* of C that a thread computes */
    unsigned thread_cols;
    unsigned lane_rows; /* threads of a warp down its part of C; 32/lane_rows threads go across */
    unsigned resident;  /* blocks that must fit on a multiprocessor: the compiler limits registers to that */
    bool keeps_k_major; /* a slab of A stored along k keeps that layout, and aligned rows are copied 16 bytes
                           at a time; if not, 4-byte copies transpose it */
    /* Fraction of a multiprocessor's peak: with `resident` blocks, and with one. Measured on an H200, on
     * products of one round of blocks and k = 2048, whose data the caches hold. */
    float rate;
    float rate_alone;
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
