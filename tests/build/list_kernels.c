/* Prints the kernels that CUDA variants use on GPUs of compute capability 8.0 and 9.0, a line each. A line
 * begins with the kernel's address in this program. Opens no device. */
#include "gpu/cuda/variants.h"
#include "gpu/device/backend.h"

#include <inttypes.h>
#include <stdio.h>

#define X(constant, ...) #constant,
static const char *const dtypes[] = {MM_DTYPE_TABLE(X)};
#undef X

static void list_kernel(const char *row, const struct mm_device *device, const struct mm_variant *variant,
                        unsigned tile) {
    struct mm_plan plan;
    enum mm_dtype dtype;
    if (mm_plan_smallest(device, variant, tile, &plan, &dtype, NULL) != MM_OK || plan.layout.kernel == NULL)
        return;
    printf("%016" PRIxPTR " %s %u %u %s %u %zu\n", (uintptr_t)plan.layout.kernel, row,
           device->compute_capability, tile > 0 ? tile : variant->tile, dtypes[dtype],
           plan.layout.threads_x * plan.layout.threads_y, plan.layout.dynamic_shared_bytes);
}

static void list_kernels(const char *row, const struct mm_variant *variant) {
    static const struct mm_device devices[] = {{.backend = &mm_cuda_backend, /* an A100 */
                                                .compute_capability = 80,
                                                .multiprocessors = 108,
                                                .shared_bytes_per_block_max = 166912},
                                               {.backend = &mm_cuda_backend, /* an H100 */
                                                .compute_capability = 90,
                                                .multiprocessors = 132,
                                                .shared_bytes_per_block_max = 232448}};
    static const unsigned only[] = {0, 0};
    for (size_t index = 0; index < 2; index++) {
        const unsigned *tile = variant->tiles != NULL ? variant->tiles : only;
        do
            if (mm_variant_missing(variant, &devices[index], MM_FLOAT32) == NULL)
                list_kernel(row, &devices[index], variant, *tile);
        while (*++tile != 0);
    }
}

int main(void) {
#define X(name, ...) list_kernels("MM_CUDA_ROW_" #name, &mm_cuda_variants[MM_CUDA_ROW_##name]);
    MM_CUDA_VARIANTS(X)
#undef X
#define X(name, ...)                                                                                         \
    list_kernels("MM_CUDA_ROW_transpose_" #name, &mm_cuda_variants[MM_CUDA_ROW_transpose_##name]);
    MM_CUDA_TRANSPOSES(X)
#undef X
    return 0;
}
