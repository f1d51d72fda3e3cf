/* The parts of `blas`: the calls of NVIDIA's libraries (blas_library.c), and the kernel that rounds their
 * results (blas_round.cu). Only the files of `blas` include this header. The thread that uses the lane calls
 * the functions. */
#pragma once

#include "gpu/cuda/lane.h"

#include <sys/cdefs.h>

__BEGIN_DECLS

/* How the libraries multiply operands of a type. */
struct mm_blas_type {
    unsigned results; /* bits of the types that C may have, including the sums' type; 0: not supported */
    /* 0: the library supports all transposes, strides and addresses. Otherwise k must run along the stored
     * rows of both operands (A not transposed, B transposed), and each matrix and each row must begin and end
     * at a multiple of `alignment` bytes. */
    unsigned alignment;
    size_t workspace_bytes; /* workspace of cuBLASLt; 0: cuBLAS multiplies this type */
    /* The libraries' numbers for the mode of arithmetic, the type, and the type of the sums. */
    int math;
    int data_type;
    int compute;
};

extern const struct mm_blas_type mm_blas_types[MM_DTYPE_COUNT];

/* Creates the lane's cuBLAS handle if there is none. The lane owns it (mm_cuda_blas_close). */
enum mm_status mm_blas_prepare(struct mm_lane *lane, struct mm_error *error);

/* Enqueues a product that mm_blas_types allows; k is not 0. The workspace has the type's workspace_bytes, and
 * is aligned to 256 bytes. */
enum mm_status mm_blas_multiply(const struct mm_product *product, void *workspace, struct mm_lane *lane,
                                struct mm_error *error);

/* Returns the layout with which mm_cuda_launch rounds m×n sums in product.a to C. `sum` is the type of the
 * sums: MM_FLOAT32 or MM_FLOAT64. */
struct mm_layout mm_blas_round_layout(enum mm_dtype sum);

__END_DECLS
