/* What the kernels of fp32_tensor share: the layout of split operands, what is known of their lines, and
 * which block computes what. For this folder alone; fp32_tensor.c has the overview. */
#ifndef MM_GPU_CUDA_VARIANTS_FP32_TENSOR_PARTS_H
#define MM_GPU_CUDA_VARIANTS_FP32_TENSOR_PARTS_H

#include "gpu/cuda/variants/fp32_tensor/guard.h"
#include "gpu/cuda/lane.h"
#include "gpu/path.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A line is a row of op(A) or a column of op(B): k elements. They are split into tiles of EDGE lines (of
 * WIDE, of B), in slabs of 32 of k. A line of a slab takes 128 bytes: 32 high halves, and the 32 low ones
 * behind them. Its pieces of 16 bytes are swizzled as the tensor cores read them: piece i of line r lies at
 * i ^ r % 8. A tile's slabs lie one after the other. Two slabs, 64 of k, are a step. */
enum {
    MM_FP32_EDGE = 128,
    MM_FP32_WIDE = 192,
    MM_FP32_SLAB = 32,
    MM_FP32_PIECE = 8, /* halves of 16 bytes */
    MM_FP32_LINE_BYTES = 128,
    MM_FP32_CLUSTER = 2,             /* blocks that share a tile of B */
    MM_FP32_SUMS = MM_FP32_WIDE / 2, /* elements of C that a thread computes */
    MM_FP32_COMPUTING = 256          /* threads of a block that do */
};

/* The least steps of a tile that are one cluster's share. */
enum { MM_FP32_SHARE_MIN = 4 };

/* Steps after which a sum is stored and another begun. */
enum { MM_FP32_FOLD_STEPS = 128 };

/* Flags between blocks; zeros at the start. */
struct mm_fp32_notes {
    unsigned uncertain; /* elements that were not certified */
    unsigned fallback;  /* 1: all is to be computed without the tensor cores */
};

/* One operand on its way. `most` and `lost` are zeros before. */
struct mm_fp32_operand {
    const float *from;
    size_t ld;
    unsigned lines;
    unsigned padded; /* lines of whole tiles; those that the operand does not have are zeros */
    unsigned k;
    unsigned steps;
    unsigned tile_lines;      /* EDGE or WIDE */
    bool along;               /* a line's elements are neighbours in memory */
    unsigned char *tiles;     /* 128 bytes for each line of each slab */
    unsigned *most;           /* of each line: the largest magnitude, as its bits */
    unsigned long long *lost; /* of each line: all that no half holds, in LOST_UNIT */
    struct mm_fp32_notes *notes;
};

/* An element of C that was not certified. */
struct mm_fp32_place {
    unsigned row;
    unsigned col;
};

/* The product of two split operands. Two tiles of C that lie below each other are a pair, which a cluster
 * of two blocks computes. The first whole_pairs are computed by one cluster each, in turn. The steps of
 * the rest are shared evenly among all clusters (stream-K); the cluster that does a tile's first steps
 * adds up the others' partial sums. */
struct mm_fp32_plan {
    struct mm_product product;
    const unsigned char *a;
    const unsigned char *b;
    const unsigned *most_a;
    const unsigned *most_b;
    const unsigned long long *lost_a;
    const unsigned long long *lost_b;
    unsigned steps;
    unsigned pair_rows;
    unsigned pair_cols;
    unsigned whole_pairs;
    unsigned clusters;
    unsigned share;         /* steps of the rest for each cluster, about */
    unsigned longer_shares; /* so many clusters have one more */
    float *partial;         /* sums for another cluster: MM_FP32_SUMS of each thread that computes */
    float *folded;          /* a thread's own sums of earlier steps */
    unsigned *arrived; /* of each warpgroup that computes: 1, once its partial sums are there; zeros before */
    struct mm_fp32_notes *notes;
    struct mm_fp32_place *uncertain; /* uncertain_max of them */
    unsigned uncertain_max;
    float threshold; /* of the guard */
};

/* The kernels, and how many blocks they want. */
enum { MM_FP32_SPLIT_THREADS = 256, MM_FP32_PRODUCT_THREADS = 384, MM_FP32_REPAIR_THREADS = 256 };
extern const void
    *const mm_fp32_scan_kernel; /* (a, b, a's blocks): the largest of lines; splits those along */
extern const void *const mm_fp32_split_kernel;   /* (a, b, a's blocks): splits lines across */
extern const void *const mm_fp32_product_kernel; /* (plan) */
extern const void *const mm_fp32_repair_kernel;  /* (plan, struct mm_path *) */
extern const size_t mm_fp32_product_shared_bytes;
unsigned mm_fp32_scan_blocks(const struct mm_fp32_operand *operand);
unsigned mm_fp32_split_blocks(const struct mm_fp32_operand *operand);

#ifdef __cplusplus
}
#endif
#endif
