/* Kernels that fail on a real device, each in one way. */
#include "tests/http/faulty/cuda.h"

#include "gpu/cuda/lane.h"
#include "gpu/cuda/variants.h"

namespace {

enum fault { OUT_OF_BOUNDS, TRAP, HANG, LAUNCH };

template <enum fault FAULT> __global__ void fail(const __grid_constant__ struct mm_product product) {
    constexpr size_t FAR = size_t{1} << 44; /* bytes: more than any device has */
    volatile float *c = static_cast<float *>(product.c.data);
    if (FAULT == OUT_OF_BOUNDS)
        c[FAR / sizeof *c] = 1.0f;
    if (FAULT == TRAP)
        __trap();
    while (FAULT == HANG)
        c[0] = c[0] + 1.0f;
}

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

} // namespace

enum mm_status mm_faulty_out_of_bounds(const struct mm_product *product, struct mm_plan *plan,
                                       struct mm_error *error) {
    return plan_by<OUT_OF_BOUNDS>(product, plan, error);
}

enum mm_status mm_faulty_trap(const struct mm_product *product, struct mm_plan *plan,
                              struct mm_error *error) {
    return plan_by<TRAP>(product, plan, error);
}

enum mm_status mm_faulty_hang(const struct mm_product *product, struct mm_plan *plan,
                              struct mm_error *error) {
    return plan_by<HANG>(product, plan, error);
}

enum mm_status mm_faulty_launch(const struct mm_product *product, struct mm_plan *plan,
                                struct mm_error *error) {
    return plan_by<LAUNCH>(product, plan, error);
}
