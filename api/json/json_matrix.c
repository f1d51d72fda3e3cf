/* Matrices as JSON text: an array of rows, each an array of numbers. */
#include "api/json/json_matrix.h"

#include "api/number/rows_text.h"

static const struct mm_row_marks marks = {.between = ",", .begin = "[", .end = "]", .has_quotes = true};

bool mm_json_matrix_text_bytes(const struct mm_matrix *matrix, size_t *bytes) {
    return mm_rows_text_bytes(matrix, &marks, bytes) && mm_size_add(*bytes, sizeof "[]" - 1, bytes);
}

size_t mm_json_matrix_write(const struct mm_matrix *matrix, struct mm_helpers *helpers, char *text) {
    char *end = text;
    *end++ = '[';
    end = mm_rows_text_write(matrix, &marks, helpers, end);
    *end++ = ']';
    return (size_t)(end - text);
}
