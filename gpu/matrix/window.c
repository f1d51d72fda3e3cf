/* Views and copies of a part of a stack. */
#include "gpu/matrix/window.h"

#include <string.h>

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
