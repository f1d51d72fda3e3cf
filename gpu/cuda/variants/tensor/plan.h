/* The argument and the tables of the kernels in this folder, for the kernels and the host. */
#pragma once

#include "gpu/cuda/variants/wgmma/consumers.h"
#include "gpu/cuda/variants/wgmma/schedule.h"
#include "gpu/plan/plan.h"

#include <cuda.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

enum {
    MM_TENSOR_LINE_BYTES = 128,     /* bytes of each row of op(A) and column of op(B) in a stage */
    MM_TENSOR_REDUCE_THREADS = 128, /* threads in a block of the fix-up kernel */
    MM_TENSOR_LIMBS = 4             /* bytes of an int32 */
};

/* How int32 operands are multiplied. The limbs of an element are its bytes. A line, which is a row of op(A)
 * or a column of op(B), has four planes of `depth` bytes. Plane 0 of A has the least significant limb of each
 * element and zeros up to `depth`, and plane 3 the most significant limb. The planes of B have the opposite
 * order. Let T(s) be the sum of the products of those limbs whose positions add up to s. Then modulo 2^32
 *     A·B = T(0) + 2^8·T(1) + 2^16·T(2) + 2^24·T(3) = ((T(3)·2^8 + T(2))·2^8 + T(1))·2^8 + T(0)
 * T(s) is the product of the first s + 1 planes of A and the last s + 1 planes of B. Group g of the steps
 * along k computes T(3 - g). Before each group the sums are multiplied by 2^8. */
struct mm_tensor_groups {
    unsigned depth;
    unsigned begin[MM_TENSOR_LIMBS + 1]; /* first step of each group; the last element counts all steps */
};

/* Returns the groups of a product of int32. 0 < k <= MM_TENSOR_LIMBS_K_MAX. */
struct mm_tensor_groups mm_tensor_groups_of(size_t k);

/* TMA counts the bytes of a line in signed 32-bit numbers. */
enum { MM_TENSOR_LIMBS_K_MAX = INT32_MAX / MM_TENSOR_LIMBS / 32 * 32 };

/* The kernels' argument. The dimensions of the tensor maps are column, row, and matrix of the stack. */
struct mm_tensor_plan {
    CUtensorMap a;
    CUtensorMap b;
    struct mm_matrix unaligned_a; /* A of product 0 if TMA cannot load A, else without data */
    struct mm_matrix unaligned_b; /* B of product 0 if TMA cannot load B, else without data */
    CUtensorMap of_c;             /* valid if maps_c */
    CUtensorMap of_addend;        /* valid if the product has an addend and is not float64 */
    bool maps_c;                  /* TMA stores C */
    unsigned a_lines;             /* rows of op(A) that a block loads for each stage */
    unsigned b_lines;             /* columns of op(B) that a block loads for each stage */
    struct mm_schedule schedule;
    unsigned rows; /* a tile of C is rows × cols */
    unsigned cols;
    unsigned cluster;
    void *sums;                /* memory for partial sums (mm_tensor_slot) */
    struct mm_product product; /* the product, or product 0 of a stack */
    unsigned rank;             /* dimensions of the stack; 0 for a single product */
    unsigned dims[MM_STACK_RANK_MAX];
    unsigned a_steps[MM_STACK_RANK_MAX]; /* stride of each dimension in A, in matrices */
    unsigned b_steps[MM_STACK_RANK_MAX];
    unsigned addend_steps[MM_STACK_RANK_MAX];
    const unsigned *products; /* how many products to compute, for tiles with COUNTS_PRODUCTS; NULL: all */
    struct mm_tensor_groups groups; /* used if the operands are int32 */
};

/* A product is plain if it is no stack and has no epilogue, C has the type mm_dtype_result, TMA can store C,
 * and clusters share no tiles. The kernel for plain products has less than half of the code, and takes
 * about 2 µs less, because a multiprocessor fetches code while it runs. Both kernels compute equal bits,
 * because they use equal instructions in the same order for each sum. So a share may use either. */
struct mm_tensor_kernel {
    const void *kernel; /* takes one struct mm_tensor_plan */
    unsigned rows;      /* a block's tile of C is rows × cols */
    unsigned cols;
    unsigned threads;
    unsigned cluster;
    unsigned resident;   /* blocks that fit on a multiprocessor */
    size_t shared_bytes; /* dynamic shared memory of a block */
    const void *plain;   /* computes only plain products; not for float64 */
};

/* Sizes of a block's tile of C, rows × columns. */
enum mm_tensor_size {
    MM_TENSOR_TINY,   /* 64×64; for float64 32×32 */
    MM_TENSOR_NARROW, /* 64×128, in clusters of two; for float64 64×64 */
    MM_TENSOR_SMALL,  /* 128×128 */
    MM_TENSOR_MEDIUM, /* 128×192; not for float64 */
    MM_TENSOR_LARGE,  /* 128×256, for float8 128×192, in clusters of two; not for float64 */
    MM_TENSOR_SIZES
};

struct mm_tensor_kernels {
    /* Indexed by [size][A is MN-major][B is MN-major]. `kernel` is NULL if there is no such kernel. */
    struct mm_tensor_kernel of[MM_TENSOR_SIZES][2][2];
    bool threads_copy; /* threads load operands that TMA cannot load, and threads store C */
};

/* Returns how many rows of op(A), or columns of op(B), a block loads: at most `whole`. `all` is their number
 * in the whole operand. `square` is the size of a TMA box of an MN-major operand, or 0 if the operand is
 * K-major. Blocks load few rows outside the operand, because TMA loads such rows slowly. For example,
 * 1×8192×8192 of bfloat16 takes 50 µs, but took 76 µs with many such loads (H100). */
unsigned mm_tensor_lines(size_t all, unsigned whole, unsigned square);

/* Returns the bytes of partial sums for the tiles of one cluster. */
size_t mm_tensor_sums_bytes(const struct mm_product *product, const struct mm_tensor_kernel *kernel);

struct mm_tensor_way {
    const struct mm_tensor_kernel *kernel; /* the kernel for K-major operands */
    enum mm_tensor_size size;
    struct mm_schedule schedule;
};

/* Returns the tile size and schedule with the shortest estimated time. k must not be 0. product->tile must
 * pass mm_tensor_has_tile. */
struct mm_tensor_way mm_tensor_way_of(const struct mm_plan *plan, const struct mm_product *product,
                                      const struct mm_tensor_kernels *kernels);

/* Whether a request may set `tile` to this value. 0 means any tile, and is always allowed. */
bool mm_tensor_has_tile(const struct mm_tensor_kernels *kernels, unsigned tile);

/* Returns the fix-up kernel for operands of a type. The kernel takes a struct mm_tensor_plan. The grid needs
 * a block along x for each tile that clusters share, and a block along y for each 512 elements of a tile. */
const void *mm_tensor_reduce_of(enum mm_dtype operand);

/* Returns the kernels for small products of elements of 1 or 2 bytes (small.cu). */
struct mm_layout mm_tensor_small_layout(const struct mm_product *product);

/* The argument of the kernel that copies the limbs of int32 matrices, which lie one below another. If
 * is_k_major, they count as one matrix. */
struct mm_tensor_split {
    struct mm_matrix from;
    unsigned char *to;
    size_t matrices;
    unsigned lines; /* lines of each matrix */
    unsigned k;
    unsigned depth; /* mm_tensor_groups */
    bool is_k_major;
    bool descends; /* plane 0 has the most significant limbs */
};

struct mm_layout mm_tensor_split_layout(void);

/* Returns the blocks of this kernel's one-dimensional grid. */
unsigned mm_tensor_split_blocks(const struct mm_tensor_split *split);

/* The kernels of each element type. mm_tensor_tf32 is for float32, and mm_tensor_uint8 also for bool. */
extern const struct mm_tensor_kernels mm_tensor_float16, mm_tensor_bfloat16, mm_tensor_tf32,
    mm_tensor_float8_e4m3fn, mm_tensor_float8_e5m2, mm_tensor_int8, mm_tensor_uint8, mm_tensor_int32,
    mm_tensor_float64;

__END_DECLS
