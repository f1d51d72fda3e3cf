/* What the kernels of `tensor` and `tf32` share with the host. For this folder alone; tensor.c has the
 * overview. */
#pragma once

#include "gpu/cuda/variants/wgmma/schedule.h"
#include "gpu/plan/plan.h"

#include <cuda.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

enum {
    MM_TENSOR_CONSUMER_ROWS = 64, /* of C, that a consumer computes by wgmma (MM_CONSUMER_ROWS) */
    MM_TENSOR_LINE_BYTES = 128,   /* of k in a stage, for each row of op(A) and column of op(B) */
    MM_TENSOR_REDUCE_THREADS = 128
};

/* The argument of the kernels. The maps have three dimensions: a stored row, the rows, the matrices of a
 * stack. */
struct mm_tensor_plan {
    CUtensorMap a;
    CUtensorMap b;
    /* float64's operands without a map, of a stack the first matrix; data is NULL if there is a map. */
    struct mm_matrix unaligned_a;
    struct mm_matrix unaligned_b;
    CUtensorMap of_c; /* if the copy engine takes C */
    bool maps_c;
    unsigned a_lines; /* rows of op(A) that a block loads for each stage, and columns of op(B) */
    unsigned b_lines;
    struct mm_schedule schedule;
    unsigned rows;      /* of a tile */
    unsigned wide;      /* columns of a tile */
    unsigned cluster;   /* blocks, one below the other */
    void *sums;         /* partial sums of tiles that are shared (mm_tensor_slot) */
    struct mm_matrix c; /* of the first product */
    size_t c_step;      /* elements from one product's C to the next */
    unsigned rank;      /* of the stack; 0: one product */
    unsigned dims[MM_STACK_RANK_MAX];
    unsigned a_steps[MM_STACK_RANK_MAX];
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

/* The kernels of a type: [size of the tile][A, B not K-major]; NULL if the type has to be K-major,
 * or does not have the size. */
enum mm_tensor_size {
    MM_TENSOR_TINY,
    MM_TENSOR_NARROW,
    MM_TENSOR_SMALL,
    MM_TENSOR_MEDIUM,
    MM_TENSOR_LARGE,
    MM_TENSOR_SIZES
};

struct mm_tensor_kernels {
    struct mm_tensor_kernel of[MM_TENSOR_SIZES][2][2];
    bool threads_copy; /* its threads copy operands that the copy engine does not take, and store C */
};

/* How many of a block's `whole` lines it loads of an operand that has `all` lines. `square`: lines of a box
 * if the operand is not K-major, else 0. The copy engine is slow at lines past an operand's end, so they are
 * not loaded. Whatever lies there in shared memory reaches only rows and columns that C does not have.
 * 1×8192×8192 of bfloat16 took 76 us with them, and takes 50 us (H100). */
unsigned mm_tensor_lines(size_t all, unsigned whole, unsigned square);

/* What the partial sums of a cluster tile take. */
size_t mm_tensor_sums_bytes(const struct mm_product *product, const struct mm_tensor_kernel *kernel);

/* How a product is computed. */
struct mm_tensor_way {
    const struct mm_tensor_kernel *kernel; /* of K-major operands */
    enum mm_tensor_size size;
    struct mm_schedule schedule;
};

/* The fastest one, by the tile that the product asks for, or by any. The type has that tile, and k is not 0.
 * If device memory is short, no tile is shared. */
struct mm_tensor_way mm_tensor_way_of(const struct mm_plan *plan, const struct mm_product *product,
                                      const struct mm_tensor_kernels *kernels);

/* Whether a request may ask for this tile; for 0, which is any, always. */
bool mm_tensor_has_tile(const struct mm_tensor_kernels *kernels, unsigned tile);

/* What a product takes: the kernel and, of A and B, the matrix that it reads: the stored one, or a copy that
 * is made first, which may be transposed. */
struct mm_tensor_work {
    const struct mm_tensor_kernel *kernel;
    struct mm_schedule schedule;
    struct mm_matrix operands[2]; /* copies have no data */
    bool is_copied[2];
    bool is_transposed[2]; /* the copy */
};

/* Of a k that is not 0. If device memory is short, mm_cuda_tensor plans this only if nothing is copied. */
struct mm_tensor_work mm_tensor_work_of(const struct mm_plan *plan, const struct mm_product *product);

/* The kernel (struct mm_tensor_plan) that adds up partial sums, for operands of a type. The grid has along x
 * the blocks of the shared tiles, along y one for each 512 elements of a block's tile. */
const void *mm_tensor_reduce_of(enum mm_dtype operand);

extern const struct mm_tensor_kernels mm_tensor_float16, mm_tensor_bfloat16, mm_tensor_tf32,
    mm_tensor_float8_e4m3fn, mm_tensor_float8_e5m2, mm_tensor_int8, mm_tensor_uint8, mm_tensor_float64;

__END_DECLS
