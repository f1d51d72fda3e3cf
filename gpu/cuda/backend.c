/* The CUDA backend: its functions and its table of variants. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/variants.h"

const struct mm_backend mm_cuda_backend = {
    .name = "cuda",
    .variants = mm_cuda_variants,
    .variant_count = MM_CUDA_VARIANT_COUNT,
    .compiled = mm_cuda_compiled,
    .count = mm_cuda_count,
    .open = mm_cuda_open,
    .close = mm_cuda_close,
    .begin = mm_cuda_begin,
    .end = mm_cuda_end,
    .is_over = mm_cuda_is_over,
    .plan = mm_cuda_plan,
    .schedule = mm_cuda_schedule,
    .find_tiles = mm_cuda_find_tiles,
    .page_locking = &mm_cuda_page_locking,
    .memory_free = mm_cuda_memory_free,
    .acquire_copy = mm_cuda_acquire_copy,
    .attributes = mm_cuda_attributes,
    .acquire = mm_cuda_acquire,
    .release = mm_cuda_release,
    .upload = mm_cuda_upload,
    .download = mm_cuda_download,
    .fill = mm_cuda_fill,
    .measure = mm_cuda_measure,
    .probe = mm_cuda_probe,
};
