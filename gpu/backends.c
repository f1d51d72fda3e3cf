/* The list of backends: the one file that knows whether CUDA was built in. */
#include "gpu/backend.h"

#include <stddef.h>

static const struct mm_backend *const backends[] = {
#if MATMULD_WITH_CUDA
    &mm_cuda_backend,
#endif
    &mm_cpu_backend, NULL};

const struct mm_backend *const *mm_backends(void) {
    return backends;
}
