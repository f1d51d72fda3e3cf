/* Finds the next part of a product, and chooses how large the part is. */
#include "gpu/queue/progress.h"

#include "gpu/plan/forecast.h"

#include <assert.h>

/* Rounds `wanted` down to a multiple of `cut`, but at least to `cut`. If the result would exceed `most`,
 * returns `most`. */
static size_t edge_of(double wanted, size_t cut, size_t most) {
    if (wanted >= (double)most)
        return most;
    const size_t edge = (size_t)wanted / cut * cut;
    const size_t least = edge < cut ? cut : edge;
    return least < most ? least : most;
}

/* A part has as many rows of C as the device computes in MM_PART_NS. If even the fewest possible rows would
 * take longer, the part has only some columns of these rows. */
struct mm_product mm_progress_next(struct mm_progress *progress, const struct mm_device *device,
                                   const struct mm_variant *ran, const struct mm_product *product) {
    const struct mm_product item = mm_product_item(product, progress->item);
    const double all = (double)product->m * (double)product->n;
    double element_ns = progress->element_ns;
    assert(progress->row < product->m && progress->col < product->n);
    if (element_ns <= 0.0)
        element_ns = mm_forecast_kernel_ns(device, ran, &item) / all;
    const bool is_whole = ran->cut == 0 || element_ns <= 0.0;
    const double elements = is_whole ? all : (double)MM_PART_NS / element_ns;
    const size_t cut = is_whole ? 1 : ran->cut;
    if (progress->col == 0)
        progress->rows = edge_of(elements / (double)product->n, cut, product->m - progress->row);
    progress->items = 1;
    progress->cols = edge_of(elements / (double)progress->rows, cut, product->n - progress->col);
    return mm_product_part(&item, ran->op, progress->row, progress->rows, progress->col, progress->cols);
}

bool mm_progress_end(struct mm_progress *progress, const struct mm_product *product, uint64_t took_ns) {
    progress->spent_ns += took_ns;
    progress->element_ns = (double)took_ns / ((double)progress->rows * (double)progress->cols);
    progress->col += progress->cols;
    if (progress->col < product->n)
        return true;
    progress->col = 0;
    progress->row += progress->rows;
    if (progress->row < product->m)
        return true;
    progress->row = 0;
    progress->item += progress->items;
    return progress->item < mm_product_count(product);
}
