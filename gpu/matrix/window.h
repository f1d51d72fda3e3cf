/* A part of a dense stack of matrices: the same rows and columns of each matrix. Any thread may call these
 * functions. */
#pragma once

#include "gpu/matrix/matrix.h"

#include <sys/cdefs.h>

__BEGIN_DECLS

/* The rows × cols elements at (row, col) of each matrix of a stack. A matrix is all_rows × all_cols. */
struct mm_window {
    size_t count;
    size_t all_rows;
    size_t all_cols;
    size_t row;
    size_t rows;
    size_t col;
    size_t cols;
};

static inline size_t mm_window_elements(const struct mm_window *part) {
    return part->count * part->rows * part->cols;
}

static inline bool mm_window_is_all(const struct mm_window *part) {
    return part->rows == part->all_rows && part->cols == part->all_cols;
}

/* Returns the view of the part of matrix `index`. `elements` is the beginning of the stack; if it is NULL,
 * the view has no data. */
struct mm_matrix mm_window_item(const struct mm_window *part, enum mm_dtype dtype, void *elements,
                                size_t index);

/* Whether the part's elements are contiguous in the stack. */
static inline bool mm_window_is_dense(const struct mm_window *part) {
    return part->cols == part->all_cols && (part->count == 1 || part->rows == part->all_rows);
}

/* Copies the part's elements to `to` as a dense stack. `to` may be equal to `stack`. */
void mm_window_pack(const struct mm_window *part, enum mm_dtype dtype, void *stack, void *to);

__END_DECLS
