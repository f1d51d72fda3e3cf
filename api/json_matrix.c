/* Matrices in JSON: their shape, their rows by the reader or the writer of their element type, and the
 * length of their text. How a number is rounded is json_float.c's and json_whole.c's. */
#include "api/json_matrix.h"

#include "api/codec.h"
#include "api/float_text.h"
#include "api/json_row.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WHOLE_TEXT_MAX = sizeof "-9223372036854775808" - 1 };

static size_t whole_text(int64_t value, char *text) {
    uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
    char digits[WHOLE_TEXT_MAX];
    char *first = digits + sizeof digits;
    do
        *--first = (char)('0' + magnitude % 10);
    while ((magnitude /= 10) > 0);
    if (value < 0)
        *--first = '-';
    const size_t length = (size_t)(digits + sizeof digits - first);
    memcpy(text, first, length);
    return length;
}

/* Writes `count` elements, with commas between them, and returns the end. */
typedef char *write_row(const void *elements, size_t count, char *end);

#define ROW_WRITER(NAME, TYPE, TEXT)                                                                         \
    static char *write_##NAME(const void *elements, size_t count, char *end) {                               \
        const TYPE *values = elements;                                                                       \
        for (size_t index = 0; index < count; index++) {                                                     \
            if (index > 0)                                                                                   \
                *end++ = ',';                                                                                \
            end += TEXT(values[index], end);                                                                 \
        }                                                                                                    \
        return end;                                                                                          \
    }

ROW_WRITER(float32, float, mm_float_text)
ROW_WRITER(float64, double, mm_double_text)
ROW_WRITER(int32, int32_t, whole_text)
ROW_WRITER(int64, int64_t, whole_text)

static const struct {
    mm_json_row_reader *read;
    enum mm_json_bound second;
    write_row *write;
    size_t text_max; /* bytes of an element */
} types[] = {
    [MM_FLOAT32] = {mm_json_read_float32, MM_JSON_UPPER, write_float32, MM_FLOAT_TEXT_MAX},
    [MM_FLOAT64] = {mm_json_read_float64, MM_JSON_NEAREST, write_float64, MM_DOUBLE_TEXT_MAX},
    [MM_INT32] = {mm_json_read_int32, MM_JSON_WHOLE, write_int32, WHOLE_TEXT_MAX},
    [MM_INT64] = {mm_json_read_int64, MM_JSON_WHOLE, write_int64, WHOLE_TEXT_MAX},
};

_Static_assert(sizeof types / sizeof types[0] == MM_DTYPE_COUNT, "every element type has its row");

static enum mm_status fail_matrix(const char *field, struct mm_error *error, const char *got) {
    mm_fail_field(error, MM_BAD_REQUEST, field,
                  "%s must be an array of rows, which are arrays of numbers, like [[1, 2], [3, 4]], but %s",
                  field, got);
    if (error != NULL)
        snprintf(error->expected, sizeof error->expected, "an array of arrays of numbers");
    return MM_BAD_REQUEST;
}

static enum mm_status fail_ragged(const char *field, size_t row, size_t cols, size_t expected,
                                  struct mm_error *error) {
    mm_fail_field(error, MM_BAD_REQUEST, field, "row %zu of %s has %zu element%s, expected %zu like row 0",
                  row, field, cols, cols == 1 ? "" : "s", expected);
    if (error != NULL) {
        snprintf(error->expected, sizeof error->expected, "%zu", expected);
        snprintf(error->got, sizeof error->got, "%zu", cols);
    }
    return MM_BAD_REQUEST;
}

const char *mm_json_type_name(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    case JSON_NULL:
        return "null";
    }
    return "";
}

void mm_json_describe(const json_t *value, char *text, size_t text_bytes) {
    if (json_is_string(value))
        snprintf(text, text_bytes, "the string \"%.32s\"", json_string_value(value));
    else
        snprintf(text, text_bytes, "%s", mm_json_type_name(value));
}

enum mm_status mm_json_matrix_shape(const json_t *rows, const char *field, enum mm_dtype dtype,
                                    struct mm_matrix *view, struct mm_error *error) {
    char got[64];
    if (rows == NULL)
        return fail_matrix(field, error, "it is missing");
    if (!json_is_array(rows)) {
        snprintf(got, sizeof got, "it is %s", mm_json_type_name(rows));
        return fail_matrix(field, error, got);
    }
    size_t cols = json_array_size(json_array_get(rows, 0));
    for (size_t row = 0; row < json_array_size(rows); row++) {
        const json_t *elements = json_array_get(rows, row);
        if (!json_is_array(elements)) {
            snprintf(got, sizeof got, "row %zu is %s", row, mm_json_type_name(elements));
            return fail_matrix(field, error, got);
        }
        if (json_array_size(elements) != cols)
            return fail_ragged(field, row, json_array_size(elements), cols, error);
    }
    *view = mm_matrix_dense(dtype, json_array_size(rows), cols, NULL);
    return MM_OK;
}

enum mm_json_bound mm_json_second_bound(enum mm_dtype dtype) {
    return types[dtype].second;
}

enum mm_status mm_json_matrix_read(const json_t *rows, const char *field, enum mm_json_bound bound,
                                   const struct mm_matrix *view, bool *undecided, struct mm_error *error) {
    const size_t row_bytes = view->ld * mm_dtype_bytes(view->dtype);
    for (size_t row = 0; row < view->rows && view->cols > 0; row++) {
        const struct mm_json_row place = {.elements = json_array_get(rows, row),
                                          .field = field,
                                          .index = row,
                                          .cols = view->cols,
                                          .bound = bound,
                                          .out = view->data == NULL ? NULL
                                                                    : (char *)view->data + row * row_bytes,
                                          .undecided = undecided};
        enum mm_status status = types[view->dtype].read(&place, error);
        if (status != MM_OK)
            return status;
    }
    return MM_OK;
}

/* A part is worth another thread's while: 32768 elements take it half a millisecond. It has rows of its own,
 * and room for the longest text of each, and a margin, since the writer of a number may write a little behind
 * it. */
enum { PARTS_MAX = 256, PART_ELEMENTS = 32 << 10 };

static unsigned count_parts(const struct mm_matrix *matrix) {
    const size_t cols = matrix->cols == 0 ? 1 : matrix->cols;
    const size_t rows_of_part = cols < PART_ELEMENTS ? (PART_ELEMENTS + cols - 1) / cols : 1;
    const size_t count = matrix->rows / rows_of_part;
    return count < 2 ? 1 : count < PARTS_MAX ? (unsigned)count : PARTS_MAX;
}

/* Of a row with the comma before it, at most; false where that passes SIZE_MAX. */
static bool row_text_bytes(const struct mm_matrix *matrix, size_t *bytes) {
    const size_t element_bytes = types[matrix->dtype].text_max + 1;
    return !__builtin_mul_overflow(matrix->cols, element_bytes, bytes) &&
           mm_size_add(*bytes, sizeof ",[]" - 1, bytes);
}

bool mm_json_matrix_text_bytes(const struct mm_matrix *matrix, size_t *bytes) {
    const size_t other_bytes = sizeof "[]" - 1 + count_parts(matrix) * (size_t)MM_FLOAT_TEXT_ROOM;
    size_t row, all;
    return row_text_bytes(matrix, &row) && !__builtin_mul_overflow(matrix->rows, row, &all) &&
           mm_size_add(all, other_bytes, bytes);
}

static char *write_rows(const struct mm_matrix *matrix, size_t row, size_t rows_end, char *end) {
    const size_t row_bytes = matrix->ld * mm_dtype_bytes(matrix->dtype);
    for (; row < rows_end; row++) {
        if (row > 0)
            *end++ = ',';
        *end++ = '[';
        if (matrix->cols > 0)
            end = types[matrix->dtype].write((const char *)matrix->data + row * row_bytes, matrix->cols, end);
        *end++ = ']';
    }
    return end;
}

/* The rows in parts: each part's place in the text, where it has room, and its length. */
struct parts {
    const struct mm_matrix *matrix;
    unsigned count;
    char *texts[PARTS_MAX];
    size_t bytes[PARTS_MAX];
};

/* No overflow: rows are at most 2³¹. */
static size_t first_row(const struct parts *parts, unsigned part) {
    return parts->matrix->rows * part / parts->count;
}

static void write_part(void *data, unsigned part) {
    struct parts *parts = data;
    char *text = parts->texts[part];
    parts->bytes[part] =
        (size_t)(write_rows(parts->matrix, first_row(parts, part), first_row(parts, part + 1), text) - text);
}

/* Each part into its room, and then behind the one before it. */
static char *write_in_parts(const struct mm_matrix *matrix, unsigned count, struct mm_helpers *helpers,
                            char *text) {
    struct parts parts; /* kilobytes, which need not be cleared */
    char *end = text;
    size_t row_bytes = 0;
    parts.matrix = matrix;
    parts.count = count;
    (void)row_text_bytes(matrix, &row_bytes);
    for (unsigned part = 0; part < count; part++)
        parts.texts[part] = text + first_row(&parts, part) * row_bytes + part * (size_t)MM_FLOAT_TEXT_ROOM;
    helpers->run(helpers, count, write_part, &parts);
    for (unsigned part = 0; part < count; part++) {
        memmove(end, parts.texts[part], parts.bytes[part]);
        end += parts.bytes[part];
    }
    return end;
}

size_t mm_json_matrix_write(const struct mm_matrix *matrix, struct mm_helpers *helpers, char *text) {
    const unsigned count = helpers == NULL ? 1 : count_parts(matrix);
    char *end = text;
    *end++ = '[';
    end = count > 1 ? write_in_parts(matrix, count, helpers, end) : write_rows(matrix, 0, matrix->rows, end);
    *end++ = ']';
    return (size_t)(end - text);
}
