/* The CUDA backend of a build without CUDA. It describes its variants, but has no devices. */
#include "gpu/device/backend.h"
#include "gpu/cuda/variants.h"

static const char no_cuda[] = "this build of matmuld has no CUDA";

#define PLAN(function)                                                                                       \
    enum mm_status function(const struct mm_product *product, struct mm_plan *plan,                          \
                            struct mm_error *error) {                                                        \
        return mm_fail(error, MM_UNSUPPORTED, no_cuda);                                                      \
    }

#define X(row, ...) PLAN(mm_cuda_##row)
MM_CUDA_VARIANTS(X)
#undef X
#define X(row, ...) PLAN(mm_cuda_transpose_##row)
MM_CUDA_TRANSPOSES(X)
#undef X

const struct mm_variant *mm_cuda_choose(const struct mm_device *device, const struct mm_product *product) {
    return &mm_cuda_variants[MM_CUDA_ROW_naive];
}

const struct mm_variant *mm_cuda_choose_transpose(const struct mm_device *device,
                                                  const struct mm_product *product) {
    return &mm_cuda_variants[MM_CUDA_ROW_transpose_naive];
}

#define MISSING(function)                                                                                    \
    const char *function(const struct mm_device *device) {                                                   \
        return no_cuda;                                                                                      \
    }
MISSING(mm_cuda_async_missing)
MISSING(mm_cuda_fp32_tensor_missing)
MISSING(mm_cuda_blas_missing)
MISSING(mm_cuda_blas_float8_missing)

static enum mm_status count_none(unsigned *count, struct mm_error *error) {
    return mm_fail(error, MM_NOT_READY, no_cuda);
}

const struct mm_backend mm_cuda_backend = {.name = "cuda",
                                           .variants = mm_cuda_variants,
                                           .variant_count = MM_CUDA_VARIANT_COUNT,
                                           .compiled = mm_cuda_compiled,
                                           .count = count_none};
