/* The real CUDA backend with rows that fail, in place of the list of gpu/backends.c: matmuld linked with it
 * shows what becomes of a service whose GPU fails. */
#include "gpu/backend.h"
#include "gpu/cuda/variants.h"
#include "tests/http/faulty/cuda.h"

#include <pthread.h>
#include <string.h>

/* clang-format off */
#define FAULTS(X)                                                                                            \
    X(out_of_bounds, mm_faulty_out_of_bounds)                                                                \
    X(traps, mm_faulty_trap)                                                                                 \
    X(hangs, mm_faulty_hang)                                                                                 \
    X(launch_fails, mm_faulty_launch)
/* clang-format on */

enum {
#define X(name, function) ROW_##name,
    FAULTS(X)
#undef X
        FAULT_COUNT
};

/* The backend's own rows, then those that fail. Filled in at first. */
static struct mm_variant variants[MM_CUDA_VARIANT_COUNT + FAULT_COUNT];
static struct mm_backend backend;

static const struct mm_variant faults[FAULT_COUNT] = {
#define X(row, function)                                                                                     \
    [ROW_##row] = {.name = #row, .summary = "fails as told", .plan[MM_FLOAT32] = function},
    FAULTS(X)
#undef X
};

/* What the backend chooses is a row of its own table. */
static const struct mm_variant *own(const struct mm_variant *chosen) {
    return &variants[chosen - mm_cuda_variants];
}

static const struct mm_variant *choose(const struct mm_device *device, const struct mm_product *product) {
    return own(mm_cuda_choose(device, product));
}

static const struct mm_variant *choose_transpose(const struct mm_device *device,
                                                 const struct mm_product *product) {
    return own(mm_cuda_choose_transpose(device, product));
}

static enum mm_status open_device(unsigned index, struct mm_device **device, struct mm_error *error) {
    const enum mm_status status = mm_cuda_backend.open(index, device, error);
    if (status == MM_OK)
        (*device)->backend = &backend;
    return status;
}

static void fill_in(void) {
    memcpy(variants, mm_cuda_variants, sizeof mm_cuda_variants);
    memcpy(variants + MM_CUDA_VARIANT_COUNT, faults, sizeof faults);
    variants[MM_CUDA_ROW_auto].choose[MM_FLOAT32] = choose;
    for (unsigned dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        variants[MM_CUDA_ROW_transpose_auto].choose[dtype] = choose_transpose;
    backend = mm_cuda_backend;
    backend.variants = variants;
    backend.variant_count = sizeof variants / sizeof variants[0];
    backend.open = open_device;
}

const struct mm_backend *const *mm_backends(void) {
    static const struct mm_backend *const backends[] = {&backend, &mm_cpu_backend, NULL};
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_in);
    return backends;
}
