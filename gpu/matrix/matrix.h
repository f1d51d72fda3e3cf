/* Matrix views. A view owns nothing, and knows no device: it describes host memory or device memory. Any
 * thread may call these functions. gpu/product/shape.h checks sizes from outside. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/cdefs.h>

#include "gpu/matrix/dtype.h"
#include "gpu/status.h"

__BEGIN_DECLS

/* A row-major matrix of rows × cols elements. Row r starts at data + r·ld elements; ld ≥ cols, and every
 * row takes ld elements of storage, the last one included. data is aligned to the element's size, and may
 * be NULL if rows·cols is 0. A view that is only read may point at read-only memory. */
struct mm_matrix {
    void *data;
    size_t rows;
    size_t cols;
    size_t ld;
    enum mm_dtype dtype;
};

/* A dense view: ld = cols. */
struct mm_matrix mm_matrix_dense(enum mm_dtype dtype, size_t rows, size_t cols, void *data);

/* Bytes of the storage that a view covers: rows·ld·element. The view's sizes were checked before. */
size_t mm_matrix_bytes(const struct mm_matrix *matrix);

/* The limits of a request. 0 is a limit like any other. */
struct mm_limits {
    size_t dimension_max;    /* a row or column count, or a leading dimension */
    size_t body_bytes_max;   /* a request's body */
    size_t memory_bytes_max; /* operands and result of one request together; SIZE_MAX: they are not in host
                                memory, or that is not known yet */
};

/* Adds sizes from outside. False, and *sum untouched, if the sum exceeds SIZE_MAX. */
bool mm_size_add(size_t a, size_t b, size_t *sum);

/* How many parts of the size `by`, which is not 0, cover a whole. */
static inline size_t mm_size_divide_up(size_t whole, size_t by) {
    return whole / by + (whole % by != 0);
}

static inline size_t mm_size_min(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Rounds up to a multiple of `by`, which is not 0. */
static inline size_t mm_size_round_up(size_t whole, size_t by) {
    return mm_size_divide_up(whole, by) * by;
}

__END_DECLS
