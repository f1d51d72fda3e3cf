/* Element types, views, and the checked arithmetic for sizes from outside. */
#include "gpu/matrix.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(size_t) == 8, "sizes are 64 bits wide");

static const struct {
    const char *name;
    size_t bytes;
} table[MM_DTYPE_COUNT] = {
#define X(constant, name, type, word) [constant] = {name, sizeof(type)},
    MM_DTYPE_TABLE(X)
#undef X
};

#define X(constant, name, type, word) _Static_assert(sizeof(type) == sizeof(word), "of " name);
MM_DTYPE_TABLE(X)
#undef X

const char *mm_dtype_name(enum mm_dtype dtype) {
    assert(dtype < MM_DTYPE_COUNT);
    return table[dtype].name;
}

size_t mm_dtype_bytes(enum mm_dtype dtype) {
    assert(dtype < MM_DTYPE_COUNT);
    return table[dtype].bytes;
}

enum mm_status mm_dtype_find(const char *name, unsigned dtypes, enum mm_dtype *dtype,
                             struct mm_error *error) {
    char known[64] = "";
    size_t length = 0;
    for (unsigned index = 0; index < MM_DTYPE_COUNT; index++) {
        if ((dtypes & MM_DTYPE_BIT(index)) == 0)
            continue;
        if (strcmp(table[index].name, name) == 0) {
            *dtype = (enum mm_dtype)index;
            return MM_OK;
        }
        length += (size_t)snprintf(known + length, sizeof known - length, "%s%s", length > 0 ? ", " : "",
                                   table[index].name);
    }
    assert(length < sizeof known);
    return mm_fail_field(error, MM_UNSUPPORTED, "dtype", "dtype is '%.64s', but must be one of: %s", name,
                         known);
}

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
