/* The block shapes of `simt`. */
#pragma once

struct mm_simt_shape {
    unsigned rows;        /* rows of C that a block computes */
    unsigned cols;        /* columns of C that a block computes */
    unsigned depth;       /* elements of k in a stage */
    unsigned stages;      /* stages in shared memory: one is multiplied while the others are filled */
    unsigned thread_rows; /* rows of C that a thread computes */
    unsigned thread_cols; /* columns of C that a thread computes */
    unsigned lane_rows;   /* a warp's threads form lane_rows rows and 32/lane_rows columns */
    unsigned resident;    /* blocks that must fit on a multiprocessor; limits the registers of a thread */
    /* Whether the slabs of A in shared memory are contiguous along k if A itself is. If so, copies can have
     * 16 bytes. Otherwise copies of 4 bytes transpose the slab. */
    bool keeps_k_major;
    /* Speed as a fraction of a multiprocessor's peak, measured on an H200 with operands in the caches. */
    float rate;       /* with `resident` blocks on a multiprocessor */
    float rate_alone; /* with one block on a multiprocessor */
};

/* The first shape needs the least shared memory, so every device supports it. */
/* clang-format off */
constexpr struct mm_simt_shape mm_simt_shapes[] = {
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
