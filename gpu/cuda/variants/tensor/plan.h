/* What the kernels of `tensor` and `tf32` share with the host. For this folder alone. tensor.c has the
 * overview, and product.cuh the structure of the kernel. */
#pragma once

#include "gpu/cuda/variants/wgmma/consumers.h"
#include "gpu/cuda/variants/wgmma/schedule.h"
#include "gpu/plan/plan.h"

#include <cuda.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

enum {
    MM_TENSOR_LINE_BYTES = 128, /* of k in a stage, for each line: a row of op(A) or a column of op(B) */
    MM_TENSOR_REDUCE_THREADS = 128
};

/* The argument of the kernels. The tensor maps have three dimensions: along a stored row, down the rows, and
 * through the matrices of a stack. */
struct mm_tensor_plan {
    CUtensorMap a;
    CUtensorMap b;
    /* Operands of float64 that TMA cannot load, the first of a stack; data is NULL if TMA can. */
    struct mm_matrix unaligned_a;
    struct mm_matrix unaligned_b;
    CUtensorMap of_c; /* only if maps_c */
    bool maps_c;      /* TMA takes C */
    unsigned a_lines; /* rows of op(A) that a block loads for each stage */
    unsigned b_lines; /* columns of op(B) that it loads */
    struct mm_schedule schedule;
    unsigned rows; /* of a tile */
    unsigned cols;
    unsigned cluster;          /* blocks, one below the other */
    void *sums;                /* partial sums of shared tiles (mm_tensor_slot) */
    struct mm_product product; /* the first of a stack */
    unsigned rank;             /* of the stack; 0 if there is one product */
    unsigned dims[MM_STACK_RANK_MAX];
    unsigned a_steps[MM_STACK_RANK_MAX]; /* matrices of A from one index of a dimension to the next */
    unsigned b_steps[MM_STACK_RANK_MAX];
};

/* One kernel, and what it takes. */
struct mm_tensor_kernel {
    const void *kernel; /* (struct mm_tensor_plan) */
    unsigned rows;      /* of a block's tile of C */
    unsigned cols;
    unsigned threads;
    unsigned cluster;    /* blocks, one below the other */
    unsigned resident;   /* blocks of a multiprocessor */
    size_t shared_bytes; /* dynamic */
};

/* Sizes of a block's tile, rows × columns. */
enum mm_tensor_size {
    MM_TENSOR_TINY,   /* 64×64; of float64 32×32 */
    MM_TENSOR_NARROW, /* 128×64; of float64 64×64 */
    MM_TENSOR_SMALL,  /* 128×128 */
    MM_TENSOR_MEDIUM, /* 128×192; float64 does not have it */
    MM_TENSOR_LARGE,  /* 128×256 in clusters of two; of float8 128×192; float64 does not have it */
    MM_TENSOR_SIZES
};

/* The kernels of a type. */
struct mm_tensor_kernels {
    /* [size][A is MN-major][B is MN-major]. `kernel` is NULL if the type does not have the size, or its
     * operands must be K-major. */
    struct mm_tensor_kernel of[MM_TENSOR_SIZES][2][2];
    bool threads_copy; /* threads load operands that TMA does not take, and store C */
};

/* How many lines a block loads of an operand that has `all`; `whole` is the most. `square` is the lines of a
 * box if the operand is MN-major, else 0. TMA is slow at lines past an operand's end, so a block does not
 * load them. What shared memory has in their place reaches only rows and columns that C does not have.
 * 1×8192×8192 of bfloat16 took 76 us with them, and takes 50 us without (H100). */
unsigned mm_tensor_lines(size_t all, unsigned whole, unsigned square);

/* Bytes of the partial sums of a cluster tile. */
size_t mm_tensor_sums_bytes(const struct mm_product *product, const struct mm_tensor_kernel *kernel);

/* How a product is computed. */
struct mm_tensor_way {
    const struct mm_tensor_kernel *kernel; /* for K-major operands */
    enum mm_tensor_size size;
    struct mm_schedule schedule;
};

/* The fastest way, with the tile that the product asks for, or with any. The type has that tile, and k is not
 * 0. If device memory is short, no tile is shared. */
struct mm_tensor_way mm_tensor_way_of(const struct mm_plan *plan, const struct mm_product *product,
                                      const struct mm_tensor_kernels *kernels);

/* Whether a request may ask for this tile. It may always ask for 0, which is any tile. */
bool mm_tensor_has_tile(const struct mm_tensor_kernels *kernels, unsigned tile);

/* The kernel (struct mm_tensor_plan) that adds up partial sums, for operands of a type. The grid's x counts
 * the blocks' tiles in all shared cluster tiles, its y the 512 elements of a tile that a block adds up. */
const void *mm_tensor_reduce_of(enum mm_dtype operand);

extern const struct mm_tensor_kernels mm_tensor_float16, mm_tensor_bfloat16, mm_tensor_tf32,
    mm_tensor_float8_e4m3fn, mm_tensor_float8_e5m2, mm_tensor_int8, mm_tensor_uint8, mm_tensor_float64;

__END_DECLS
