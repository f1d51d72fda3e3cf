/* Element types, views, and the checked arithmetic for sizes from outside. */
#include "gpu/matrix.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(size_t) == 8, "sizes are 64 bits wide");

static const struct {
    const char *name;
    size_t bytes;
} table[MM_DTYPE_COUNT] = {
#define X(constant, name, bytes) [constant] = {name, bytes},
    MM_DTYPE_TABLE(X)
#undef X
};

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

static enum mm_status fail_limit(struct mm_error *error, const char *field, const char *what, const char *got,
                                 size_t limit, const char *option) {
    mm_fail_field(error, MM_TOO_LARGE, field, "%s of %s is %s, but the limit is %zu (%s)", what, field, got,
                  limit, option);
    if (error != NULL) {
        error->limit = limit;
        error->has_limit = true;
        snprintf(error->got, sizeof error->got, "%s", got);
    }
    return MM_TOO_LARGE;
}

static enum mm_status check_dimension(const char *field, const char *what, size_t value,
                                      const struct mm_limits *limits, struct mm_error *error) {
    if (value <= limits->dimension_max)
        return MM_OK;
    char got[24];
    snprintf(got, sizeof got, "%zu", value);
    return fail_limit(error, field, what, got, limits->dimension_max, "--max-dimension");
}

enum mm_status mm_matrix_size(const char *field, enum mm_dtype dtype, size_t rows, size_t cols, size_t ld,
                              const struct mm_limits *limits, size_t *bytes, struct mm_error *error) {
    assert(ld >= cols);
    enum mm_status status = check_dimension(field, "the number of rows", rows, limits, error);
    if (status == MM_OK)
        status = check_dimension(field, "the number of columns", cols, limits, error);
    if (status == MM_OK)
        status = check_dimension(field, "the leading dimension", ld, limits, error);
    if (status != MM_OK)
        return status;
    size_t elements;
    size_t total;
    if (__builtin_mul_overflow(rows, ld, &elements) ||
        __builtin_mul_overflow(elements, mm_dtype_bytes(dtype), &total))
        return fail_limit(error, field, "the size in bytes", "more than 2^64", limits->memory_bytes_max,
                          "--memory-budget");
    if (total > limits->memory_bytes_max) {
        char got[24];
        snprintf(got, sizeof got, "%zu", total);
        return fail_limit(error, field, "the size in bytes", got, limits->memory_bytes_max,
                          "--memory-budget");
    }
    *bytes = total;
    return MM_OK;
}

bool mm_size_add(size_t a, size_t b, size_t *sum) {
    size_t total;
    if (__builtin_add_overflow(a, b, &total))
        return false;
    *sum = total;
    return true;
}
