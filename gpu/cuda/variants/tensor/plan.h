/* The arguments and tables of the kernels of `tensor` and `tf32`, for the kernels and the host. Only files of
 * this folder include it. tensor.c has the overview, and product.cuh has the structure of the kernel. */
#pragma once

#include "gpu/cuda/variants/wgmma/consumers.h"
#include "gpu/cuda/variants/wgmma/schedule.h"
#include "gpu/plan/plan.h"

#include <cuda.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

enum {
    MM_TENSOR_LINE_BYTES = 128,    /* bytes along k in a stage of each row of op(A) and column of op(B) */
    MM_TENSOR_REDUCE_THREADS = 128 /* threads of a block of the fix-up */
};

/* The argument of the kernels. A tensor map has three dimensions: along a stored row, down the rows, and over
 * the matrices of a stack. */
struct mm_tensor_plan {
    CUtensorMap a;
    CUtensorMap b;
    struct mm_matrix unaligned_a; /* A of float64 if TMA cannot load it (of product 0); else data is NULL */
    struct mm_matrix unaligned_b; /* B of float64 if TMA cannot load it (of product 0); else data is NULL */
    CUtensorMap of_c;             /* valid if maps_c */
    bool maps_c;                  /* TMA stores C */
    unsigned a_lines;             /* rows of op(A) that a block loads for each stage */
    unsigned b_lines;             /* columns of op(B) that a block loads for each stage */
    struct mm_schedule schedule;
    unsigned rows;             /* rows of a tile of C */
    unsigned cols;             /* columns of a tile of C */
    unsigned cluster;          /* blocks of a cluster, whose tiles lie one below the other */
    void *sums;                /* partial sums of shared tiles (mm_tensor_slot) */
    struct mm_product product; /* the product, or product 0 of a stack */
    unsigned rank;             /* dimensions of the stack; 0: there is one product */
    unsigned dims[MM_STACK_RANK_MAX];
    unsigned a_steps[MM_STACK_RANK_MAX]; /* matrices of A from one index of a dimension to the next */
    unsigned b_steps[MM_STACK_RANK_MAX]; /* matrices of B from one index of a dimension to the next */
    unsigned addend_steps[MM_STACK_RANK_MAX]; /* matrices of the addend, likewise */
};

/* A kernel and its sizes. */
struct mm_tensor_kernel {
    const void *kernel; /* its argument is a struct mm_tensor_plan */
    unsigned rows;      /* rows of a block's tile of C */
    unsigned cols;      /* columns of a block's tile of C */
    unsigned threads;
    unsigned cluster;    /* blocks of a cluster, whose tiles lie one below the other */
    unsigned resident;   /* blocks that fit on a multiprocessor */
    size_t shared_bytes; /* dynamic shared memory of a block */
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

/* The kernels of an element type. */
struct mm_tensor_kernels {
    /* Kernels by [size][A is MN-major][B is MN-major]. `kernel` is NULL if the type does not have the size,
     * or if its operands must be K-major. */
    struct mm_tensor_kernel of[MM_TENSOR_SIZES][2][2];
    bool threads_copy; /* threads load operands that TMA cannot load, and store C */
};

/* Returns how many of an operand's `all` lines a block loads, at most `whole`. `square` is the lines of a box
 * if the operand is MN-major, else 0. A block does not load lines past an operand's end, because TMA loads
 * them slowly. The bytes in their place reach only sums that C does not have. 1×8192×8192 of bfloat16 took 76
 * µs with these loads, and takes 50 µs without them (H100). */
unsigned mm_tensor_lines(size_t all, unsigned whole, unsigned square);

/* Returns the bytes of the partial sums of a cluster tile. */
size_t mm_tensor_sums_bytes(const struct mm_product *product, const struct mm_tensor_kernel *kernel);

/* How a product is computed. */
struct mm_tensor_way {
    const struct mm_tensor_kernel *kernel; /* the kernel for K-major operands */
    enum mm_tensor_size size;
    struct mm_schedule schedule;
};

/* Returns the way with the shortest estimated time, with the tile of product->tile, or with any tile if that
 * is 0. The type has that tile, and k is not 0. If plan->is_frugal, no tile is shared. */
struct mm_tensor_way mm_tensor_way_of(const struct mm_plan *plan, const struct mm_product *product,
                                      const struct mm_tensor_kernels *kernels);

/* Whether a request may ask for this tile. 0 means any tile, and is always allowed. */
bool mm_tensor_has_tile(const struct mm_tensor_kernels *kernels, unsigned tile);

/* Returns the kernel that adds up partial sums (the fix-up), for operands of a type. Its argument is a struct
 * mm_tensor_plan. The grid has one x for each tile in shared cluster tiles, and one y for each 512 elements
 * of a tile. */
const void *mm_tensor_reduce_of(enum mm_dtype operand);

/* The kernels of each element type; mm_tensor_tf32 is for float32, mm_tensor_uint8 also for bool. */
extern const struct mm_tensor_kernels mm_tensor_float16, mm_tensor_bfloat16, mm_tensor_tf32,
    mm_tensor_float8_e4m3fn, mm_tensor_float8_e5m2, mm_tensor_int8, mm_tensor_uint8, mm_tensor_float64;

__END_DECLS
