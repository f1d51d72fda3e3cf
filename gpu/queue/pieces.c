/* Where a piece of a product lies, and how large the next one is. */
#include "gpu/queue/pieces.h"

#include "gpu/plan/forecast.h"

#include <assert.h>

/* Keeps `count` rows of op(X) from `first` on, or columns where `of_cols` is set. */
static void keep(struct mm_matrix *matrix, bool transposed, bool of_cols, size_t first, size_t count) {
    const bool along = of_cols != transposed; /* a row's elements are neighbours in memory */
    const size_t elements = along ? first : first * matrix->ld;
    *(along ? &matrix->cols : &matrix->rows) = count;
    if (matrix->data != NULL)
        matrix->data = (char *)matrix->data + elements * mm_dtype_bytes(matrix->dtype);
}

struct mm_product mm_product_piece(const struct mm_product *product, enum mm_op op, size_t row, size_t rows,
                                   size_t col, size_t cols) {
    struct mm_product piece = *product;
    assert(row + rows <= product->m && col + cols <= product->n);
    piece.m = rows;
    piece.n = cols;
    keep(&piece.c, false, false, row, rows);
    keep(&piece.c, false, true, col, cols);
    keep(&piece.a, product->transpose_a, false, row, rows);
    if (op == MM_TRANSPOSE)
        keep(&piece.a, product->transpose_a, true, col, cols);
    else if (cols < product->n)
        keep(&piece.b, product->transpose_b, true, col, cols);
    return piece;
}

/* Down to a multiple of `cut`, but at least that, and no more than there is. */
static size_t edge_of(double wanted, size_t cut, size_t most) {
    if (wanted >= (double)most)
        return most;
    const size_t edge = (size_t)wanted / cut * cut;
    const size_t least = edge < cut ? cut : edge;
    return least < most ? least : most;
}

/* Bands of whole rows, as long as a band can be so short; else parts of one. */
struct mm_product mm_pieces_next(struct mm_pieces *pieces, const struct mm_device *device,
                                 const struct mm_variant *ran, const struct mm_product *product) {
    const struct mm_product item = mm_product_item(product, pieces->item);
    const double all = (double)product->m * (double)product->n;
    double element_ns = pieces->element_ns;
    assert(pieces->row < product->m && pieces->col < product->n);
    if (element_ns <= 0.0)
        element_ns = mm_forecast_kernel_ns(device, ran, &item) / all;
    const bool is_whole = ran->cut == 0 || element_ns <= 0.0;
    const double elements = is_whole ? all : (double)MM_PIECE_NS / element_ns;
    const size_t cut = is_whole ? 1 : ran->cut;
    if (pieces->col == 0)
        pieces->rows = edge_of(elements / (double)product->n, cut, product->m - pieces->row);
    pieces->cols = edge_of(elements / (double)pieces->rows, cut, product->n - pieces->col);
    return mm_product_piece(&item, ran->op, pieces->row, pieces->rows, pieces->col, pieces->cols);
}

bool mm_pieces_end(struct mm_pieces *pieces, const struct mm_product *product, uint64_t took_ns) {
    pieces->spent_ns += took_ns;
    pieces->element_ns = (double)took_ns / ((double)pieces->rows * (double)pieces->cols);
    pieces->col += pieces->cols;
    if (pieces->col < product->n)
        return true;
    pieces->col = 0;
    pieces->row += pieces->rows;
    if (pieces->row < product->m)
        return true;
    pieces->row = 0;
    pieces->item++;
    return pieces->item < mm_product_count(product);
}
