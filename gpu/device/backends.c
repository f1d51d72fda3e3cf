/* The lists of backends. Only this file knows whether CUDA was built in. */
#include "gpu/device/backend.h"

#include <stddef.h>

static const struct mm_backend *const known[] = {&mm_cuda_backend, &mm_cpu_backend, NULL};

const struct mm_backend *const *mm_backends_known(void) {
    return known;
}

const struct mm_backend *const *mm_backends(void) {
    return MATMULD_WITH_CUDA ? known : known + 1;
}
