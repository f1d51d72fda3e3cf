/* How a long product is cut into bands of C's rows, whose result has the same bits. It launches nothing. */
#include "gpu/cuda/device.h"
#include "gpu/pieces.h"

#include <math.h>

/* What a band takes at most, about. */
#define BAND_NS 100e6

/* Whether a block computes the same in a band of so many rows as in all of C: by the same kernel and the same
 * splits of k. */
static bool is_alike(const struct mm_plan *whole, const struct mm_product *product, size_t rows) {
    const struct mm_product band = mm_product_piece(product, whole->variant->op, 0, rows, 0, product->n);
    struct mm_plan plan;
    return mm_plan_make(whole->device, whole->variant, &band, whole->is_frugal, &plan, NULL) == MM_OK &&
           plan.layout.kernel == whole->layout.kernel && plan.layout.block_rows == whole->layout.block_rows &&
           plan.layout.split_depth == whole->layout.split_depth && plan.splits == whole->splits &&
           plan.workspace_bytes <= whole->workspace_bytes;
}

size_t mm_cuda_band_rows(const struct mm_plan *plan, const struct mm_product *product) {
    const double expected_ns = mm_forecast_kernel_ns(plan->device, plan->variant, product);
    const size_t block_rows = plan->layout.block_rows;
    if (expected_ns <= BAND_NS || block_rows == 0)
        return product->m;
    for (double count = ceil(expected_ns / BAND_NS); count > 1.0; count = floor(count / 2.0)) {
        const size_t blocks = (size_t)ceil((double)product->m / count / (double)block_rows);
        const size_t rows = blocks * block_rows;
        const size_t rest = product->m % rows;
        if (rows < product->m && is_alike(plan, product, rows) &&
            (rest == 0 || is_alike(plan, product, rest)))
            return rows;
    }
    return product->m;
}
