/* A part of a dense stack of matrices: the same rows and columns of each. Plain data; any thread may call
 * these functions. */
#pragma once

#include "gpu/matrix/matrix.h"

#include <sys/cdefs.h>

__BEGIN_DECLS

/* `rows` × `cols` elements from (row, col) on, of each of `count` matrices of all_rows × all_cols. */
struct mm_window {
    size_t count;
    size_t all_rows;
    size_t all_cols;
    size_t row;
    size_t rows;
    size_t col;
    size_t cols;
};

/* How many elements the part has. */
static inline size_t mm_window_elements(const struct mm_window *part) {
    return part->count * part->rows * part->cols;
}

static inline bool mm_window_is_all(const struct mm_window *part) {
    return part->rows == part->all_rows && part->cols == part->all_cols;
}

/* The part of matrix `index` alone, in the stack that begins at `elements` (NULL: no data). */
struct mm_matrix mm_window_item(const struct mm_window *part, enum mm_dtype dtype, void *elements,
                                size_t index);

/* Whether the part's elements lie side by side in the stack. */
static inline bool mm_window_is_dense(const struct mm_window *part) {
    return part->cols == part->all_cols && (part->count == 1 || part->rows == part->all_rows);
}

/* Copies the part's elements to `to`, where they lie dense, one matrix below another. `to` may be equal to
 * `stack`. */
void mm_window_pack(const struct mm_window *part, enum mm_dtype dtype, void *stack, void *to);

__END_DECLS
