/* Views and copies of a part of a stack. */
#include "gpu/matrix/window.h"

#include <string.h>

/* Returns how many of the rows or columns from `begin` to `end` - 1 are wanted. Sets *first to the first. */
static size_t overlap(size_t begin, size_t end, size_t wanted, size_t wanted_end, size_t *first) {
    const size_t last = mm_size_min(end, wanted_end);
    *first = mm_size_max(begin, wanted);
    return last > *first ? last - *first : 0;
}

struct mm_window mm_window_of_block(const struct mm_window *part, size_t row, size_t rows, size_t col,
                                    size_t cols, size_t *first) {
    struct mm_window of_block = {
        .count = 1, .all_rows = rows, .all_cols = cols, .to_ld = mm_window_to_ld(part)};
    size_t top, left;
    of_block.rows = overlap(row, row + rows, part->row, part->row + part->rows, &top);
    of_block.cols = overlap(col, col + cols, part->col, part->col + part->cols, &left);
    of_block.row = top - row;
    of_block.col = left - col;
    of_block.diagonal = part->diagonal + (top - part->row) - (left - part->col);
    *first = (top - part->row) * of_block.to_ld + left - part->col;
    return of_block;
}

struct mm_matrix mm_window_item(const struct mm_window *part, enum mm_dtype dtype, void *elements,
                                size_t index) {
    const size_t first = (index * part->all_rows + part->row) * part->all_cols + part->col;
    struct mm_matrix item = mm_matrix_dense(dtype, part->rows, part->cols, NULL);
    item.ld = part->all_cols;
    if (elements != NULL)
        item.data = (char *)elements + first * mm_dtype_bytes(dtype);
    return item;
}

/* If `to` equals `stack`, rows move towards the beginning, so no row overwrites a row that must still be
 * moved. */
void mm_window_pack(const struct mm_window *part, enum mm_dtype dtype, void *stack, void *to) {
    const size_t row_bytes = part->cols * mm_dtype_bytes(dtype);
    char *end = to;
    if ((mm_window_is_all(part) && to == stack) || mm_window_elements(part) == 0)
        return;
    for (size_t index = 0; index < part->count; index++) {
        const struct mm_matrix item = mm_window_item(part, dtype, stack, index);
        for (size_t row = 0; row < item.rows; row++, end += mm_window_to_ld(part) * mm_dtype_bytes(dtype))
            memmove(end, (const char *)item.data + row * item.ld * mm_dtype_bytes(dtype), row_bytes);
    }
}
