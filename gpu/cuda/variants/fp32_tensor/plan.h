/* What the kernels of fp32_tensor and the host share: the layout of split operands, and the kernels'
 * arguments. For this folder alone. fp32_tensor.c has the overview. */
#pragma once

#include "gpu/cuda/variants/fp32_tensor/guard.h"
#include "gpu/cuda/lane.h"
#include "gpu/cuda/variants/wgmma/consumers.h"
#include "gpu/cuda/variants/wgmma/schedule.h"
#include "gpu/product/path.h"

#include <sys/cdefs.h>

__BEGIN_DECLS

/* A block computes a tile of C, ROWS×COLS. A line is a row of op(A) or a column of op(B): k elements. Split
 * operands are stored in tiles of ROWS lines of op(A) or COLS lines of op(B), one slab of 32 of k after
 * another. A line of a slab has 128 bytes: 32 high halves, then 32 low ones. Its 16-byte chunks are swizzled
 * for wgmma: chunk i of line r is stored at i ^ (r % 8). A step of the product is two slabs, 64 of k. */
enum {
    MM_FP32_ROWS = MM_CONSUMERS * MM_CONSUMER_ROWS,
    MM_FP32_COLS = 192,
    MM_FP32_SLAB = 32,
    MM_FP32_CHUNK = 8, /* halves in 16 bytes */
    MM_FP32_LINE_BYTES = 128,
    MM_FP32_CLUSTER = 2,             /* blocks, one below the other */
    MM_FP32_FLUSH_STEPS = 128,       /* after which a running sum is flushed */
    MM_FP32_SUMS = MM_FP32_COLS / 2, /* elements of C that a consumer's thread computes */
    MM_FP32_CONSUMER_THREADS = MM_CONSUMERS * MM_WARPGROUP,
    MM_FP32_CONSUMER_WARPS = MM_FP32_CONSUMER_THREADS / 32
};

/* Partial sums: MM_FP32_SUMS of each consumer thread of each block. A block stores them at most once, because
 * only the first work of its cluster's share can begin past step 0. */
struct mm_fp32_partial {
    float *sums;
    unsigned *ready; /* for each consumer: 1 once its sums are stored; zeros at the start */
};

/* Flags that the kernels set; zeros at the start. Split operands that are kept have their own. */
struct mm_fp32_flags {
    unsigned uncertain; /* elements that were not certified */
    unsigned fallback;  /* 1 if simt must compute everything */
    unsigned tickets;   /* clusters of the product kernel that have started */
    unsigned has_costs; /* 1 if a warp has added to its mm_fp32_cost */
};

/* What the range of float16 may cost: sums over unscaled elements of C. A thread of the product kernel adds
 * its elements of a tile unless the cost is negligible for them (guard.h). */
struct mm_fp32_cost {
    double error_squares; /* E², of certified elements */
    double squares;       /* C² */
};

/* An operand to split. The caller zeroes `max`, `lost` and `flags`. */
struct mm_fp32_operand {
    const float *from;
    size_t ld;
    unsigned lines;
    unsigned padded; /* lines of whole tiles; lines past the operand's last one are zeros */
    unsigned k;
    unsigned steps;
    unsigned tile_lines;      /* ROWS or COLS */
    bool k_contiguous;        /* a line's elements are neighbours in memory */
    unsigned char *tiles;     /* 128 bytes for each line of each slab */
    unsigned *max;            /* of each line: the bits of its largest magnitude */
    unsigned long long *lost; /* of each line: what its halves do not hold, in LOST_UNIT */
    struct mm_fp32_flags *flags;
};

/* An element of C that was not certified. */
struct mm_fp32_position {
    unsigned row;
    unsigned col;
};

/* The product of two split operands: the argument of the kernels `product` and `repair`. */
struct mm_fp32_plan {
    struct mm_product product;
    const unsigned char *a;
    const unsigned char *b;
    const unsigned *max_a;
    const unsigned *max_b;
    const unsigned long long *lost_a;
    const unsigned long long *lost_b;
    struct mm_schedule schedule;
    struct mm_fp32_partial partial;
    struct mm_fp32_cost *costs; /* one for each warp of a consumer; zeros at the start */
    float *flushed;             /* running sums of earlier steps, in the layout of partial.sums */
    struct mm_fp32_flags *flags;
    const struct mm_fp32_flags *a_flags; /* set by the splitting of A */
    const struct mm_fp32_flags *b_flags;
    struct mm_fp32_position *uncertain; /* memory for uncertain_max positions */
    unsigned uncertain_max;
    float threshold;   /* of the guard */
    float range_share; /* of the guard */
    bool is_of_stack;  /* the reported path covers all products of the stack so far */
};

#ifdef __CUDACC__
/* Whether an operand could not be split. */
__device__ __forceinline__ bool mm_fp32_is_unsplit(const struct mm_fp32_plan &plan) {
    return (plan.flags->fallback | plan.a_flags->fallback | plan.b_flags->fallback) != 0;
}

/* The offset of a line's high or low halves of a chunk. */
__device__ __forceinline__ size_t mm_fp32_chunk_offset(unsigned tile_lines, unsigned steps, unsigned line,
                                                       unsigned chunk, bool is_low) {
    constexpr unsigned CHUNKS = MM_FP32_SLAB / MM_FP32_CHUNK;
    const unsigned row = line % tile_lines;
    const size_t slab = static_cast<size_t>(line / tile_lines) * 2 * steps + chunk / CHUNKS;
    const unsigned at = (chunk % CHUNKS + CHUNKS * is_low) ^ row % 8;
    return (slab * tile_lines + row) * MM_FP32_LINE_BYTES + at * (MM_FP32_CHUNK * sizeof(mm_fp32_half));
}
#endif

/* The kernels, and how many blocks to launch. `scan` finds the largest magnitude of each line, and splits
 * k-contiguous lines. `split` splits k-strided lines. */
enum { MM_FP32_SPLIT_THREADS = 256, MM_FP32_PRODUCT_THREADS = 384, MM_FP32_REPAIR_THREADS = 256 };
extern const void *const mm_fp32_scan_kernel;    /* (a, b, a's blocks) */
extern const void *const mm_fp32_split_kernel;   /* (a, b, a's blocks) */
extern const void *const mm_fp32_product_kernel; /* (plan) */
extern const void *const mm_fp32_repair_kernel;  /* (plan, struct mm_path *) */
extern const size_t mm_fp32_product_shared_bytes;
unsigned mm_fp32_scan_blocks(const struct mm_fp32_operand *operand);
unsigned mm_fp32_split_blocks(const struct mm_fp32_operand *operand);

__END_DECLS
