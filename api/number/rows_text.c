/* Writes the rows of a matrix as text, alone or with helpers. */
#include "api/number/rows_text.h"

#include "api/codec.h"
#include "api/element.h"
#include "api/number/digits.h"
#include "api/number/float_text.h"

#include <string.h>

/* A part is the rows that one thread writes. 32768 elements take half a millisecond, much longer than
 * starting a thread's work. Each part has space for the longest text of its rows, plus MM_FLOAT_TEXT_BUFFER
 * bytes that the writer of the last number may overwrite. */
enum { PARTS_MAX = 256, PART_ELEMENTS = 32 << 10 };

static unsigned count_parts(const struct mm_matrix *matrix) {
    const size_t cols = matrix->cols == 0 ? 1 : matrix->cols;
    const size_t rows_of_part = cols < PART_ELEMENTS ? mm_size_divide_up(PART_ELEMENTS, cols) : 1;
    const size_t count = matrix->rows / rows_of_part;
    return count < 2 ? 1 : count < PARTS_MAX ? (unsigned)count : PARTS_MAX;
}

/* Sets *bytes to the greatest length of a row's text with its marks. Returns false if it exceeds SIZE_MAX. */
static bool row_text_bytes(const struct mm_matrix *matrix, const struct mm_row_marks *marks, size_t *bytes) {
    const size_t element_bytes = mm_element(matrix->dtype)->text_max + 1;
    const size_t around_bytes = strlen(marks->begin) + strlen(marks->end);
    const size_t marks_bytes = strlen(marks->between) + around_bytes * (1 + marks->group_count);
    return !__builtin_mul_overflow(matrix->cols, element_bytes, bytes) &&
           mm_size_add(*bytes, marks_bytes, bytes);
}

bool mm_rows_text_bytes(const struct mm_matrix *matrix, const struct mm_row_marks *marks, size_t *bytes) {
    const size_t margins_bytes = count_parts(matrix) * (size_t)MM_FLOAT_TEXT_BUFFER;
    size_t row, all;
    return row_text_bytes(matrix, marks, &row) && !__builtin_mul_overflow(matrix->rows, row, &all) &&
           mm_size_add(all, margins_bytes, bytes);
}

static char *remove_quotes(char *row, char *end) {
    char *kept = memchr(row, '"', (size_t)(end - row));
    if (kept == NULL)
        return end;
    for (const char *at = kept; at < end; at++)
        if (*at != '"')
            *kept++ = *at;
    return kept;
}

static char *write_marks_between(const struct mm_row_marks *marks, size_t row, char *end) {
    unsigned groups = 0;
    while (groups < marks->group_count && row % marks->group_rows[groups] == 0)
        groups++;
    for (unsigned group = 0; group < groups; group++)
        end = mm_put_text(end, marks->end);
    end = mm_put_text(end, marks->between);
    for (unsigned group = 0; group < groups; group++)
        end = mm_put_text(end, marks->begin);
    return end;
}

static char *write_rows(const struct mm_matrix *matrix, const struct mm_row_marks *marks, size_t row,
                        size_t rows_end, char *end) {
    const struct mm_element *element = mm_element(matrix->dtype);
    const size_t row_bytes = matrix->ld * mm_dtype_bytes(matrix->dtype);
    for (; row < rows_end; row++) {
        if (row > 0)
            end = write_marks_between(marks, row, end);
        end = mm_put_text(end, marks->begin);
        char *const begin = end;
        if (matrix->cols > 0)
            end = element->write((const char *)matrix->data + row * row_bytes, matrix->cols, end);
        if (!marks->has_quotes)
            end = remove_quotes(begin, end);
        end = mm_put_text(end, marks->end);
    }
    return end;
}

/* Rows that helpers write in parts. The text of part i begins at texts[i] and has bytes[i] bytes. */
struct parts {
    const struct mm_matrix *matrix;
    const struct mm_row_marks *marks;
    unsigned count;
    char *texts[PARTS_MAX];
    size_t bytes[PARTS_MAX];
};

/* The multiplication cannot overflow, because the text of all rows fits in memory. */
static size_t first_row(const struct parts *parts, unsigned part) {
    return parts->matrix->rows * part / parts->count;
}

static void write_part(void *data, unsigned part) {
    struct parts *parts = data;
    char *text = parts->texts[part];
    const char *end =
        write_rows(parts->matrix, parts->marks, first_row(parts, part), first_row(parts, part + 1), text);
    parts->bytes[part] = (size_t)(end - text);
}

/* Writes all parts in parallel, each into its own space. Then moves the texts together. */
static char *write_in_parts(const struct mm_matrix *matrix, const struct mm_row_marks *marks, unsigned count,
                            struct mm_helpers *helpers, char *text) {
    struct parts parts; /* not cleared, because it has several kilobytes */
    char *end = text;
    size_t row_bytes = 0;
    parts.matrix = matrix;
    parts.marks = marks;
    parts.count = count;
    (void)row_text_bytes(matrix, marks, &row_bytes);
    for (unsigned part = 0; part < count; part++)
        parts.texts[part] = text + first_row(&parts, part) * row_bytes + part * (size_t)MM_FLOAT_TEXT_BUFFER;
    helpers->run(helpers, count, write_part, &parts);
    for (unsigned part = 0; part < count; part++) {
        memmove(end, parts.texts[part], parts.bytes[part]);
        end += parts.bytes[part];
    }
    return end;
}

char *mm_rows_text_write(const struct mm_matrix *matrix, const struct mm_row_marks *marks,
                         struct mm_helpers *helpers, char *text) {
    const unsigned count = helpers == NULL ? 1 : count_parts(matrix);
    return count > 1 ? write_in_parts(matrix, marks, count, helpers, text)
                     : write_rows(matrix, marks, 0, matrix->rows, text);
}
