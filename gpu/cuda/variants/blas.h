/* Internal functions of the variant `blas`, which call NVIDIA's libraries (blas_library.c). Call them on the
 * thread that uses the lane. */
#pragma once

#include "gpu/cuda/lane.h"

/* How the libraries multiply operands of one element type. */
struct mm_blas_type {
    unsigned results; /* MM_DTYPE_BITs of the result types that the library supports, or 0 */
    /* If this is 0, the library supports all transposes, strides and addresses. Otherwise A must not be
     * transposed, B must be transposed, and each row must begin and end at a multiple of this number of
     * bytes. */
    unsigned alignment;
    size_t workspace_bytes; /* workspace of cuBLASLt; 0 if cuBLAS multiplies this type */
    /* Values of cublasMath_t, cudaDataType_t and cublasComputeType_t. */
    int math;
    int data_type;
    int compute;
};

extern const struct mm_blas_type mm_blas_types[MM_DTYPE_COUNT];

/* Creates the lane's cuBLAS handle if the lane has none. mm_cuda_blas_close destroys the handle. */
enum mm_status mm_blas_prepare(struct mm_lane *lane, struct mm_error *error);

/* Enqueues a product. mm_blas_types must allow its types and its layout, and k must not be 0. `workspace` is
 * device memory with the workspace_bytes of A's type, aligned to 256 bytes. */
enum mm_status mm_blas_multiply(const struct mm_product *product, void *workspace, struct mm_lane *lane,
                                struct mm_error *error);
