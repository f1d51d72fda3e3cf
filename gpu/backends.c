/* The list of backends: the one file that knows whether CUDA was built in. */
#include "gpu/backend.h"
#include "gpu/cpu/cpu_backend.h"

#include <stddef.h>

#if MATMULD_WITH_CUDA
#include "gpu/cuda/cuda_backend.h"
static const struct mm_backend *const backends[] = {&mm_cuda_backend, &mm_cpu_backend, NULL};
#else
static const struct mm_backend *const backends[] = {&mm_cpu_backend, NULL};
#endif

const struct mm_backend *const *mm_backends(void) {
    return backends;
}
