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
    size_t to_ld;    /* elements from one row of a copy to the next; 0 if a copy has no gaps between rows */
    size_t diagonal; /* row 0 of the part has the diagonal's element at this column, modulo 2⁶⁴ */
};

static inline size_t mm_window_elements(const struct mm_window *part) {
    return part->count * part->rows * part->cols;
}

static inline bool mm_window_is_all(const struct mm_window *part) {
    return part->rows == part->all_rows && part->cols == part->all_cols;
}

/* Returns the elements from one row of a copy of the part to the next. */
static inline size_t mm_window_to_ld(const struct mm_window *part) {
    return part->to_ld > 0 ? part->to_ld : part->cols;
}

/* Returns what the part has of a block of one matrix. The block begins at `row` and `col`. Sets *first to the
 * index in a copy of the part of the first element. The result can be empty. */
struct mm_window mm_window_of_block(const struct mm_window *part, size_t row, size_t rows, size_t col,
                                    size_t cols, size_t *first);

/* Returns the view of the part of matrix `index`. `elements` is the beginning of the stack; if it is NULL,
 * the view has no data. */
struct mm_matrix mm_window_item(const struct mm_window *part, enum mm_dtype dtype, void *elements,
                                size_t index);

/* Whether the part's elements are contiguous in the stack. */
static inline bool mm_window_is_dense(const struct mm_window *part) {
    return part->cols == part->all_cols && (part->count == 1 || part->rows == part->all_rows);
}

/* Copies the part's elements to `to`, as a dense stack unless to_ld is set. `to` may be equal to `stack`. */
void mm_window_pack(const struct mm_window *part, enum mm_dtype dtype, void *stack, void *to);

__END_DECLS
