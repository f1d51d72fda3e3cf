/* Reads and writes CSV. Reads a file twice: first to count rows and columns, then to read the numbers into
 * memory of exactly the right size. */
#include "api/csv/csv.h"

#include "api/codec.h"
#include "api/element.h"
#include "api/number/rows_text.h"
#include "api/slice.h"
#include "gpu/product/shape.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Reads a word: NaN or an infinity as JSON or NumPy writes it, or true or false for type bool. Ignores letter
 * case. Returns false if the type lacks the value, or if the text is another word. */
static bool read_word(enum mm_dtype dtype, struct mm_slice word, void *element) {
    static const struct {
        const char *word;
        float value;
    } words[] = {{"NaN", NAN},
                 {"Infinity", INFINITY},
                 {"-Infinity", -INFINITY},
                 {"inf", INFINITY},
                 {"-inf", -INFINITY}};
    const struct mm_element *type = mm_element(dtype);
    const bool is_true = mm_slice_is_any_case(word, "true");
    if (dtype == MM_BOOL && (is_true || mm_slice_is_any_case(word, "false"))) {
        mm_dtype_put(MM_BOOL, element, 0, is_true);
        return true;
    }
    for (size_t index = 0; type->put_special != NULL && index < sizeof words / sizeof words[0]; index++)
        if (mm_slice_is_any_case(word, words[index].word))
            return type->put_special(words[index].value, element);
    return false;
}

/* Whether a line is probably a header. A header begins with a letter, or with # as np.savetxt writes it. A
 * line that begins with a word such as NaN or true is not a header. */
static bool is_title(struct mm_slice line, char separator) {
    const char *const end = line.start + line.length;
    const char *at = line.start;
    uint64_t unused;
    while (at < end && (mm_is_blank(*at) || *at == separator))
        at++;
    const char *stop = memchr(at, separator, (size_t)(end - at));
    const struct mm_slice word = mm_slice_trim(at, stop == NULL ? end : stop);
    const unsigned char first = word.length == 0 ? '\0' : (unsigned char)*word.start;
    if (first == '#' || first == '_' || first >= 0x80)
        return true;
    return isalpha(first) && !read_word(MM_FLOAT64, word, &unused) && !read_word(MM_BOOL, word, &unused);
}

/* Returns advice for the most probable mistake in a wrong field, or "". */
static const char *hint(struct mm_slice text, bool is_of_title) {
    const char *const end = text.start + text.length;
    double unused;
    bool fits = true;
    const char *rest = mm_number_float64(text.start, end, &unused, &fits);
    if (rest != NULL && rest < end && *rest == ',')
        return "; write a decimal point, not a comma";
    if (rest != NULL && rest < end && mm_is_blank(*rest))
        return "; separate numbers by commas or semicolons, as np.savetxt(..., delimiter=',') does";
    if (text.length > 0 && *text.start == '"')
        return "; write it without quotes";
    if (rest == NULL && is_of_title)
        return "; if the line is a header, remove it, as tail -n +2 or np.loadtxt(..., skiprows=1) does";
    return "";
}

static enum mm_status fail_element(const struct mm_csv *csv, size_t row, size_t col, struct mm_slice line,
                                   struct mm_slice text, struct mm_error *error) {
    enum { SHOWN_MAX = 40 };
    const char *takes = mm_element(csv->dtype)->takes;
    const size_t column =
        (size_t)(text.start - line.start) + 1; /* in characters, because all text before the field is ASCII */
    char got[SHOWN_MAX + 8] = "empty";
    if (text.length > 0)
        snprintf(got, sizeof got, "'%.*s'", text.length < SHOWN_MAX ? (int)text.length : SHOWN_MAX,
                 text.start);
    mm_fail_field(error, MM_BAD_REQUEST, csv->field,
                  "%s[%zu][%zu], at line %zu, column %zu of the CSV file, is %s, but %s takes %s%s",
                  csv->field, row, col, row + 1, column, got, mm_dtype_name(csv->dtype), takes,
                  hint(text, row == 0 && col == 0 && is_title(line, csv->separator)));
    mm_fail_expected(error, "%s", takes);
    mm_fail_got(error, "%s", got);
    if (error != NULL) {
        error->line = row + 1;
        error->column = column;
    }
    return MM_BAD_REQUEST;
}

/* Reads one line of csv->cols fields. If `elements` is NULL, the fields are only checked. */
static enum mm_status read_row(const struct mm_csv *csv, size_t row, struct mm_slice line, char *elements,
                               struct mm_error *error) {
    mm_number_reader *const read = mm_element(csv->dtype)->read;
    const size_t element_bytes = mm_dtype_bytes(csv->dtype);
    const char *const end = line.start + line.length;
    const char *at = line.start;
    uint64_t unwanted;
    for (size_t col = 0; col < csv->cols; col++) {
        void *element = elements == NULL ? (char *)&unwanted : elements + col * element_bytes;
        bool fits = true;
        at = mm_skip_blanks(at, end);
        const char *stop = read(at, end, element, &fits);
        if (stop != NULL)
            stop = mm_skip_blanks(stop, end);
        if (stop == NULL || !fits || (stop < end && *stop != csv->separator)) {
            stop = memchr(at, csv->separator, (size_t)(end - at));
            stop = stop == NULL ? end : stop;
            const struct mm_slice text = mm_slice_trim(at, stop);
            if (!read_word(csv->dtype, text, element))
                return fail_element(csv, row, col, line, text, error);
        }
        at = stop + (stop < end);
    }
    return MM_OK;
}

/* Returns the line at *at, without its line break. Moves *at to the next line. */
static struct mm_slice read_line(const struct mm_csv *csv, const char **at) {
    const char *start = *at;
    const char *end = memchr(start, '\n', (size_t)(csv->end - start));
    end = end == NULL ? csv->end : end;
    *at = end + (end < csv->end);
    return (struct mm_slice){start, (size_t)(end - start) - (end > start && end[-1] == '\r')};
}

static size_t count_fields(struct mm_slice line, char separator) {
    size_t count = 1;
    for (size_t index = 0; index < line.length; index++)
        count += line.start[index] == separator;
    return count;
}

/* Fails because lines have different numbers of fields. If the first line is not all numbers, it is probably
 * a header. The error is then about the first line. */
static enum mm_status fail_ragged(const struct mm_csv *csv, size_t row, size_t cols, struct mm_error *error) {
    const char *at = csv->text;
    if (read_row(csv, 0, read_line(csv, &at), NULL, error) != MM_OK)
        return MM_BAD_REQUEST;
    mm_fail_field(error, MM_BAD_REQUEST, csv->field,
                  "row %zu of %s, line %zu of the CSV file, has %zu field%s, but row 0 has %zu, separated by "
                  "'%c'; make all rows equally long",
                  row, csv->field, row + 1, cols, cols == 1 ? "" : "s", csv->cols, csv->separator);
    mm_fail_expected(error, "%zu", csv->cols);
    mm_fail_got(error, "%zu", cols);
    if (error != NULL) {
        error->line = row + 1;
        error->column = 1;
    }
    return MM_BAD_REQUEST;
}

enum mm_status mm_csv_open(const char *field, const char *text, size_t bytes, enum mm_dtype dtype,
                           struct mm_csv *csv, struct mm_error *error) {
    *csv = (struct mm_csv){
        .field = field, .text = mm_skip_mark(text, text + bytes), .end = text + bytes, .dtype = dtype};
    while (csv->end > csv->text && csv->end[-1] != '\0' && strchr(" \t\r\n", csv->end[-1]) != NULL)
        csv->end--;
    for (const char *at = csv->text; at < csv->end; csv->rows++) {
        const struct mm_slice line = read_line(csv, &at);
        if (csv->rows == 0)
            csv->separator = memchr(line.start, ';', line.length) == NULL ? ',' : ';';
        const size_t cols = count_fields(line, csv->separator);
        if (csv->rows == 0)
            csv->cols = cols;
        else if (cols != csv->cols)
            return fail_ragged(csv, csv->rows, cols, error);
    }
    return MM_OK;
}

enum mm_status mm_csv_read(const struct mm_csv *csv, void *elements, struct mm_error *error) {
    const size_t row_bytes = csv->cols * mm_dtype_bytes(csv->dtype);
    const char *at = csv->text;
    enum mm_status status = MM_OK;
    for (size_t row = 0; row < csv->rows && status == MM_OK; row++)
        status = read_row(csv, row, read_line(csv, &at), (char *)elements + row * row_bytes, error);
    return status;
}

static const struct mm_row_marks marks = {.between = "", .begin = "", .end = "\n"};

/* A vector becomes one line. A scalar becomes a line with one number. */
static bool reply_bytes_max(const struct mm_shape *shape, enum mm_dtype dtype, size_t *bytes) {
    const struct mm_matrix rows = mm_shape_view(shape, false, dtype);
    return mm_rows_text_bytes(&rows, &marks, bytes);
}

static void encode(const struct mm_answer *answer, struct mm_reply_body *body) {
    char *text = body->buffer.data;
    struct mm_matrix rows = mm_shape_view(answer->shape, false, answer->matrix.dtype);
    rows.data = answer->matrix.data;
    const char *end = mm_rows_text_write(&rows, &marks, answer->helpers, text);
    body->bytes = (size_t)(end - text);
}

/* The codec has no media_type, because clients send CSV files only in forms or as matrices to store. */
const struct mm_codec mm_csv_codec = {
    .reply_type = MM_CSV_TYPE,
    .file_extension = ".csv",
    .reader = &mm_file_reader,
    .reply_rank_max = 2,
    .reply_bytes_max = reply_bytes_max,
    .encode = encode,
};
