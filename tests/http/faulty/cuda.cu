/* The CUDA backend with additional variants that fail for products of one row, and otherwise compute like
 * `naive`. Replaces the list in gpu/device/backends.c. */
#include "gpu/device/backend.h"
#include "gpu/cuda/lane.h"
#include "gpu/cuda/variants.h"

#include <cstring>

namespace {

enum fault { OUT_OF_BOUNDS, TRAP, HANG, LAUNCH, FAULT_COUNT };

/* Loses the CUDA context, with a write outside all memory or a trap. */
template <enum fault FAULT> __global__ void fail(const __grid_constant__ struct mm_product product) {
    constexpr size_t FAR = size_t{1} << 44; /* bytes, more than any GPU's memory */
    volatile float *c = static_cast<float *>(product.c.data);
    if (FAULT == OUT_OF_BOUNDS)
        c[FAR / sizeof *c] = 1.0f;
    if (FAULT == TRAP)
        __trap();
    while (FAULT == HANG)
        c[0] = c[0] + 1.0f;
}

/* For the fault LAUNCH, the launch fails, because the blocks have too many threads. */
template <enum fault FAULT>
enum mm_status plan_by(const struct mm_product *product, struct mm_plan *plan, struct mm_error *error) {
    if (product->m != 1)
        return mm_cuda_naive(product, plan, error);
    plan->layout.kernel = reinterpret_cast<const void *>(fail<FAULT>);
    plan->layout.block_rows = plan->layout.block_cols = 16;
    plan->layout.threads_x = FAULT == LAUNCH ? 4096 : 1;
    plan->layout.threads_y = 1;
    return MM_OK;
}

struct mm_variant variants[MM_CUDA_VARIANT_COUNT + FAULT_COUNT];
struct mm_backend backend;

template <enum fault FAULT> void add(const char *name) {
    struct mm_variant *row = &variants[MM_CUDA_VARIANT_COUNT + FAULT];
    row->name = name;
    row->summary = "simulates a failure";
    row->plan[MM_FLOAT32] = plan_by<FAULT>;
}

/* Returns the row in our table that corresponds to the CUDA backend's choice in its own table. */
const struct mm_variant *choose(const struct mm_device *device, const struct mm_product *product) {
    return &variants[mm_cuda_choose(device, product) - mm_cuda_variants];
}

const struct mm_variant *choose_transpose(const struct mm_device *device, const struct mm_product *product) {
    return &variants[mm_cuda_choose_transpose(device, product) - mm_cuda_variants];
}

enum mm_status open_device(unsigned index, struct mm_device **device, struct mm_error *error) {
    const enum mm_status status = mm_cuda_backend.open(index, device, error);
    if (status == MM_OK)
        (*device)->backend = &backend;
    return status;
}

const struct mm_backend *fill_in() {
    std::memcpy(variants, mm_cuda_variants, sizeof mm_cuda_variants);
    add<OUT_OF_BOUNDS>("out_of_bounds");
    add<TRAP>("traps");
    add<HANG>("hangs");
    add<LAUNCH>("launch_fails");
    variants[MM_CUDA_ROW_auto].choose[MM_FLOAT32] = choose;
    for (unsigned dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        variants[MM_CUDA_ROW_transpose_auto].choose[dtype] = choose_transpose;
    backend = mm_cuda_backend;
    backend.variants = variants;
    backend.variant_count = sizeof variants / sizeof variants[0];
    backend.open = open_device;
    return &backend;
}

} // namespace

extern "C" const struct mm_backend *const *mm_backends(void) {
    static const struct mm_backend *const backends[] = {fill_in(), &mm_cpu_backend, nullptr};
    return backends;
}

extern "C" const struct mm_backend *const *mm_backends_known(void) {
    return mm_backends();
}
