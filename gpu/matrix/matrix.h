/* Views of matrices in host memory or device memory. A view owns nothing. Any thread may call these
 * functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/cdefs.h>

#include "gpu/matrix/dtype.h"
#include "gpu/status.h"

__BEGIN_DECLS

/* A row-major matrix of rows × cols elements. Row r begins at data + r·ld elements. ld is at least cols.
 * Every row, also the last, has ld elements of storage. data is aligned to the element's size, and may be
 * NULL if rows·cols is 0. Operands may be in read-only memory, although data is not const. */
struct mm_matrix {
    void *data;
    size_t rows;
    size_t cols;
    size_t ld; /* leading dimension: elements from one row to the next */
    enum mm_dtype dtype;
};

struct mm_matrix mm_matrix_dense(enum mm_dtype dtype, size_t rows, size_t cols, void *data);

/* Returns the bytes of rows·ld elements. The caller has checked that this number does not overflow. */
size_t mm_matrix_bytes(const struct mm_matrix *matrix);

/* Returns the bytes of the elements, without gaps between rows. */
static inline size_t mm_matrix_dense_bytes(const struct mm_matrix *matrix) {
    return matrix->rows * matrix->cols * mm_dtype_bytes(matrix->dtype);
}

/* The limits of a request. 0 is a limit, and does not mean unlimited. */
struct mm_limits {
    size_t dimension_max; /* rows, columns, or leading dimension */
    size_t body_bytes_max;
    /* Host memory of a request's operands and result together. SIZE_MAX if the matrices are not in host
     * memory, or if it is not known yet where they will be. */
    size_t memory_bytes_max;
};

/* Adds two sizes. Returns false, with *sum untouched, if the sum exceeds SIZE_MAX. */
bool mm_size_add(size_t a, size_t b, size_t *sum);

/* Divides and rounds up. `by` is not 0. */
static inline size_t mm_size_divide_up(size_t whole, size_t by) {
    return whole / by + (whole % by != 0);
}

static inline size_t mm_size_min(size_t a, size_t b) {
    return a < b ? a : b;
}

static inline size_t mm_size_max(size_t a, size_t b) {
    return a > b ? a : b;
}

/* Rounds up to a multiple of `by`, which is not 0. */
static inline size_t mm_size_round_up(size_t whole, size_t by) {
    return mm_size_divide_up(whole, by) * by;
}

__END_DECLS
