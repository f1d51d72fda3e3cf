/* The CUDA backend: every NVIDIA GPU that the driver shows. Needs no CUDA header. */
#ifndef MM_GPU_CUDA_CUDA_BACKEND_H
#define MM_GPU_CUDA_CUDA_BACKEND_H

#include "gpu/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct mm_backend mm_cuda_backend;

#ifdef __cplusplus
}
#endif
#endif
