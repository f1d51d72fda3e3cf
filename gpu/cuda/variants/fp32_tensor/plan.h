/* The layout of split operands, and the arguments of fp32_tensor's kernels, for the kernels and the host. */
#pragma once

#include "gpu/cuda/variants/fp32_tensor/guard.h"
#include "gpu/cuda/lane.h"
#include "gpu/cuda/variants/wgmma/consumers.h"
#include "gpu/cuda/variants/wgmma/schedule.h"
#include "gpu/product/path.h"

#include <sys/cdefs.h>

__BEGIN_DECLS

/* A block computes a tile of C, ROWS×COLS. A line is a row of op(A) or a column of op(B). A split operand is
 * stored as tiles of ROWS or COLS lines, and a tile as slabs of 32 elements of each line. In a slab each line
 * has 128 bytes: 32 high halves, then 32 low halves. Wgmma's swizzle puts chunk i of line r at i ^ r % 8. */
enum {
    MM_FP32_ROWS = MM_CONSUMERS * MM_CONSUMER_ROWS,
    MM_FP32_COLS = 192,
    MM_FP32_SLAB = 32,
    MM_FP32_CHUNK = 8, /* halves in a chunk of 16 bytes */
    MM_FP32_LINE_BYTES = 128,
    MM_FP32_CLUSTER = 2,
    MM_FP32_FLUSH_STEPS = 128,       /* steps after which sums are flushed to memory */
    MM_FP32_SUMS = MM_FP32_COLS / 2, /* elements of C that a consumer's thread computes */
    MM_FP32_CONSUMER_THREADS = MM_CONSUMERS * MM_WARPGROUP,
    MM_FP32_CONSUMER_WARPS = MM_FP32_CONSUMER_THREADS / 32
};

/* Partial sums of tiles that clusters share: MM_FP32_SUMS for each consumer thread of each block. A block
 * stores partial sums at most once, because only the cluster's first shared tile can begin after step 0. */
struct mm_fp32_partial {
    float *sums;
    unsigned *ready; /* for each consumer warpgroup: 1 if its sums are stored; the caller zeroes it */
};

/* Flags and counts that the kernels set and the caller zeroes. */
struct mm_fp32_flags {
    unsigned uncertain; /* elements that were not certified */
    unsigned fallback;  /* 1 if simt must compute everything */
    unsigned tickets;   /* clusters of the product kernel that have started */
    unsigned has_costs; /* 1 if a warp has added to its mm_fp32_cost */
};

/* How much accuracy the limited range of float16 may cost (guard.h). Both sums run over the elements of C,
 * except elements whose cost is negligible. */
struct mm_fp32_cost {
    double error_squares; /* sum of the elements' squared error bounds E² */
    double squares;
};

/* An operand to split. The caller zeroes `max`, `lost` and `flags`. */
struct mm_fp32_operand {
    const float *from;
    size_t ld;
    unsigned lines;
    unsigned padded; /* `lines` rounded up to whole tiles; the added lines are zeros */
    unsigned k;
    unsigned steps;
    unsigned tile_lines;      /* lines of a tile: MM_FP32_ROWS or MM_FP32_COLS */
    bool k_contiguous;        /* a line's elements are neighbours in memory */
    unsigned char *tiles;     /* the split operand: 128 bytes for each line of each slab */
    unsigned *max;            /* for each line, the bits of its largest magnitude */
    unsigned long long *lost; /* for each line, what its halves lose, in MM_FP32_LOST_UNIT */
    struct mm_fp32_flags *flags;
};

struct mm_fp32_position {
    unsigned row;
    unsigned col;
};

/* The argument of the kernels `product` and `repair`. */
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
    struct mm_fp32_cost *costs; /* one for each consumer warp; the caller zeroes them */
    float *flushed;             /* sums of earlier steps, in the layout of partial.sums */
    struct mm_fp32_flags *flags;
    const struct mm_fp32_flags *a_flags; /* flags that splitting A sets */
    const struct mm_fp32_flags *b_flags; /* flags that splitting B sets */
    struct mm_fp32_position *uncertain;  /* memory for uncertain_max positions */
    unsigned uncertain_max;
    float threshold;
    float range_share;
    bool merges_path; /* the reported path must also cover the job's earlier launches */
};

#ifdef __CUDACC__
/* Whether an operand could not be split, because it has Inf or NaN. */
__device__ __forceinline__ bool mm_fp32_is_unsplit(const struct mm_fp32_plan &plan) {
    return (plan.flags->fallback | plan.a_flags->fallback | plan.b_flags->fallback) != 0;
}

/* Returns the offset in bytes of the high or low halves of a line's chunk in a split operand. */
__device__ __forceinline__ size_t mm_fp32_chunk_offset(unsigned tile_lines, unsigned steps, unsigned line,
                                                       unsigned chunk, bool is_low) {
    constexpr unsigned CHUNKS = MM_FP32_SLAB / MM_FP32_CHUNK;
    const unsigned row = line % tile_lines;
    const size_t slab = static_cast<size_t>(line / tile_lines) * 2 * steps + chunk / CHUNKS;
    const unsigned at = (chunk % CHUNKS + CHUNKS * is_low) ^ row % 8;
    return (slab * tile_lines + row) * MM_FP32_LINE_BYTES + at * (MM_FP32_CHUNK * sizeof(mm_fp32_half));
}
#endif

enum { MM_FP32_SPLIT_THREADS = 256, MM_FP32_PRODUCT_THREADS = 384, MM_FP32_REPAIR_THREADS = 256 };

/* Finds the largest magnitude of each line, and splits lines that are contiguous in memory. Arguments: two
 * struct mm_fp32_operand for A and B, and how many blocks work on A. */
extern const void *const mm_fp32_scan_kernel;

/* Splits lines that are not contiguous in memory. Takes the arguments of mm_fp32_scan_kernel. */
extern const void *const mm_fp32_split_kernel;

/* Multiplies split operands. Argument: struct mm_fp32_plan. */
extern const void *const mm_fp32_product_kernel;

/* Recomputes uncertified elements and reports the path. Arguments: struct mm_fp32_plan, struct mm_path *. */
extern const void *const mm_fp32_repair_kernel;

/* Bytes of dynamic shared memory of a block of mm_fp32_product_kernel. */
extern const size_t mm_fp32_product_shared_bytes;

/* Returns how many blocks of mm_fp32_scan_kernel an operand needs. */
unsigned mm_fp32_scan_blocks(const struct mm_fp32_operand *operand);

/* Returns how many blocks of mm_fp32_split_kernel an operand needs; 0 if its lines are contiguous. */
unsigned mm_fp32_split_blocks(const struct mm_fp32_operand *operand);

__END_DECLS
