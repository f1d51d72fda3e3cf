/* The CPU backend: always there, one device, host memory. */
#ifndef MM_GPU_CPU_CPU_BACKEND_H
#define MM_GPU_CPU_CPU_BACKEND_H

#include "gpu/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct mm_backend mm_cpu_backend;

#ifdef __cplusplus
}
#endif
#endif
