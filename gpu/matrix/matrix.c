/* Views, and the checked arithmetic for sizes from outside. */
#include "gpu/matrix/matrix.h"

#include <assert.h>

_Static_assert(sizeof(size_t) == 8, "sizes are 64 bits wide");

struct mm_matrix mm_matrix_dense(enum mm_dtype dtype, size_t rows, size_t cols, void *data) {
    return (struct mm_matrix){.data = data, .rows = rows, .cols = cols, .ld = cols, .dtype = dtype};
}

size_t mm_matrix_bytes(const struct mm_matrix *matrix) {
    return matrix->rows * matrix->ld * mm_dtype_bytes(matrix->dtype);
}

static enum mm_status check(const char *field, const char *what, size_t value, size_t limit,
                            const char *option, struct mm_error *error) {
    if (value <= limit)
        return MM_OK;
    mm_fail_limit(error, field, limit, "%s of %s is %zu, but the limit is %zu (%s)", what, field, value,
                  limit, option);
    mm_fail_got(error, "%zu", value);
    return MM_TOO_LARGE;
}

enum mm_status mm_matrix_size(const char *field, const struct mm_matrix *matrix,
                              const struct mm_limits *limits, size_t *bytes, struct mm_error *error) {
    const size_t most = limits->memory_bytes_max;
    size_t elements;
    size_t total;
    assert(matrix->ld >= matrix->cols);
    enum mm_status status =
        check(field, "the number of rows", matrix->rows, limits->dimension_max, "--max-dimension", error);
    if (status == MM_OK)
        status = check(field, "the number of columns", matrix->cols, limits->dimension_max, "--max-dimension",
                       error);
    if (status == MM_OK)
        status = check(field, "the leading dimension", matrix->ld, limits->dimension_max, "--max-dimension",
                       error);
    if (status != MM_OK)
        return status;
    if (__builtin_mul_overflow(matrix->rows, matrix->ld, &elements) ||
        __builtin_mul_overflow(elements, mm_dtype_bytes(matrix->dtype), &total)) {
        mm_fail_limit(error, field, most,
                      "the size in bytes of %s is more than 2^64, but the limit is %zu (--memory-budget)",
                      field, most);
        mm_fail_got(error, "more than 2^64");
        return MM_TOO_LARGE;
    }
    status = check(field, "the size in bytes", total, most, "--memory-budget", error);
    if (status == MM_OK)
        *bytes = total;
    return status;
}

bool mm_size_add(size_t a, size_t b, size_t *sum) {
    size_t total;
    if (__builtin_add_overflow(a, b, &total))
        return false;
    *sum = total;
    return true;
}
