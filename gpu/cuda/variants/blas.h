/* The parts of `blas`: the calls of NVIDIA's libraries (blas_library.c), and the kernel that rounds their
 * results (blas_round.cu). Only the files of `blas` include it. */
#pragma once

#include "gpu/cuda/lane.h"

#include <sys/cdefs.h>

__BEGIN_DECLS

/* How the libraries multiply operands of a type. */
struct mm_blas_type {
    unsigned results; /* bits of the types that C may have, with the type of the sums; 0: not supported */
    /* If 0, the library takes all transposes, strides and addresses. Otherwise k must run along the stored
     * rows of both operands (A as it is, B transposed), and each matrix and each row must begin and end at a
     * multiple of `alignment` bytes. */
    unsigned alignment;
    size_t workspace_bytes; /* for cuBLASLt; 0: cuBLAS multiplies this type */
    /* The libraries' numbers for the mode of arithmetic, the type, and the type of the sums. */
    int math;
    int data_type;
    int compute;
};

extern const struct mm_blas_type mm_blas_types[MM_DTYPE_COUNT];

/* Creates the lane's handle if the lane has none. */
enum mm_status mm_blas_prepare(struct mm_lane *lane, struct mm_error *error);

/* Enqueues a product that fits its type's row in mm_blas_types; k is not 0. The workspace has the row's
 * workspace_bytes and is aligned to 256 bytes. */
enum mm_status mm_blas_multiply(const struct mm_product *product, void *workspace, struct mm_lane *lane,
                                struct mm_error *error);

/* The layout with which mm_cuda_launch rounds m×n sums in product.a to C. `sum` is MM_FLOAT32 or
 * MM_FLOAT64. */
struct mm_layout mm_blas_round_layout(enum mm_dtype sum);

__END_DECLS
