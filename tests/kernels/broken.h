/* Rows that are wrong on purpose, for testing the harness: it must find each of them. They stand in
 * no backend's table. A row reads and writes wrong places only within 4096 bytes of its matrices'
 * storage, where the harness has guards. */
#ifndef MM_TESTS_KERNELS_BROKEN_H
#define MM_TESTS_KERNELS_BROKEN_H

#include "gpu/variant.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct mm_variant mm_broken_cpu[];
extern const size_t mm_broken_cpu_count;
extern const struct mm_variant mm_broken_cpu_transposes[];
extern const size_t mm_broken_cpu_transpose_count;

/* Of broken_cuda.cu and broken_cuda_transposes.cu, or none in a build without CUDA. */
extern const struct mm_variant mm_broken_cuda[];
extern const size_t mm_broken_cuda_count;
extern const struct mm_variant mm_broken_cuda_transposes[];
extern const size_t mm_broken_cuda_transpose_count;

#ifdef __cplusplus
}
#endif
#endif
