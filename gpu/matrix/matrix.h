/* Matrix views. A view owns nothing, and describes host memory or device memory. Any thread may call these
 * functions. gpu/product/shape.h checks sizes that clients give. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/cdefs.h>

#include "gpu/matrix/dtype.h"
#include "gpu/status.h"

__BEGIN_DECLS

/* A row-major matrix of rows × cols elements. Row r begins at data + r·ld elements. ld is at least cols,
 * and every row has ld elements of storage, also the last. data is aligned to the element's size, and may
 * be NULL if rows·cols is 0. A view that is only read may point to read-only memory. */
struct mm_matrix {
    void *data;
    size_t rows;
    size_t cols;
    size_t ld; /* leading dimension: elements from one row to the next */
    enum mm_dtype dtype;
};

/* Returns a dense view: ld = cols. */
struct mm_matrix mm_matrix_dense(enum mm_dtype dtype, size_t rows, size_t cols, void *data);

/* Returns the bytes of a view's storage: rows·ld elements. The caller has checked that the sizes do not
 * overflow. */
size_t mm_matrix_bytes(const struct mm_matrix *matrix);

/* The limits of a request. 0 is a limit like any other. */
struct mm_limits {
    size_t dimension_max;    /* rows, columns, or leading dimension */
    size_t body_bytes_max;   /* bytes of a request's body */
    size_t memory_bytes_max; /* bytes of one request's operands and result together; SIZE_MAX: they are not in
                                host memory, or this is not known yet */
};

/* Adds sizes that clients gave. Returns false, with *sum untouched, if the sum exceeds SIZE_MAX. */
bool mm_size_add(size_t a, size_t b, size_t *sum);

/* Returns how many parts of size `by` (not 0) cover a whole. */
static inline size_t mm_size_divide_up(size_t whole, size_t by) {
    return whole / by + (whole % by != 0);
}

static inline size_t mm_size_min(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Rounds up to a multiple of `by` (not 0). */
static inline size_t mm_size_round_up(size_t whole, size_t by) {
    return mm_size_divide_up(whole, by) * by;
}

__END_DECLS
