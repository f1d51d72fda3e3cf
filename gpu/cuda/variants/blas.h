/* What the files of `blas` share: NVIDIA's libraries as they are called (blas_library.c), and the kernel that
 * rounds their results (blas_round.cu). For blas.c alone. */
#pragma once

#include "gpu/cuda/lane.h"

#include <sys/cdefs.h>

__BEGIN_DECLS

/* What the libraries do with operands of a type. */
struct mm_blas_type {
    unsigned results; /* the types of C that they write, as bits; the sums' own is one of them. 0: none */
    /* 0: they take all transposes, strides and addresses. Else both operands must be stored with neighbours
     * along k side by side, which is A as it is and B transposed; and each matrix must begin at a multiple of
     * so many bytes, and each of its rows must begin and end at one. */
    unsigned alignment;
    size_t workspace_bytes; /* of cuBLASLt, which multiplies the type; 0: cuBLAS does */
    /* In the libraries' own numbers: the mode of arithmetic, the type, and the type of the sums. */
    int math;
    int data_type;
    int compute;
};

extern const struct mm_blas_type mm_blas_types[MM_DTYPE_COUNT];

/* Makes the lane's handle, if it has none. */
enum mm_status mm_blas_prepare(struct mm_lane *lane, struct mm_error *error);

/* Enqueues a product that suits its row of mm_blas_types; k is not 0. The workspace has the row's bytes, and
 * is aligned to 256. */
enum mm_status mm_blas_multiply(const struct mm_product *product, void *workspace, struct mm_lane *lane,
                                struct mm_error *error);

/* The kernel by which mm_cuda_launch rounds product.a, m×n sums, to C: MM_FLOAT32 or MM_FLOAT64. */
struct mm_layout mm_blas_round_layout(enum mm_dtype sum);

__END_DECLS
