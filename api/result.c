/* Finds the selected part of a result, and writes figures as text. */
#include "api/result.h"

#include "api/number/digits.h"
#include "api/number/float_text.h"

/* Reads one end of a range. Without digits, *end becomes `missing`. */
static bool read_end(struct mm_slice digits, size_t missing, size_t *end) {
    uint64_t number = 0;
    const bool is_read = digits.length == 0 || mm_slice_whole(digits, &number, NULL);
    /* SIZE_MAX - 1 exceeds every matrix; SIZE_MAX would mean a missing end */
    *end = digits.length == 0 ? missing : number < SIZE_MAX ? number : SIZE_MAX - 1;
    return is_read;
}

bool mm_result_read_range(struct mm_slice text, struct mm_range *range) {
    struct mm_slice from;
    range->is_given = mm_slice_next(&text, ':', &from) && text.start != NULL;
    return range->is_given && read_end(from, 0, &range->from) && read_end(text, SIZE_MAX, &range->to);
}

static bool read_figure(struct mm_slice name, uint64_t *figures) {
    for (unsigned figure = 0; figure < MM_FIGURE_COUNT; figure++)
        if (mm_slice_is(name, mm_figure_name((enum mm_figure)figure))) {
            *figures |= UINT64_C(1) << figure;
            return true;
        }
    return false;
}

bool mm_result_read_figures(struct mm_slice text, uint64_t *figures) {
    struct mm_slice name;
    *figures = 0;
    while (mm_slice_next(&text, ',', &name))
        if (!read_figure(name, figures))
            return false;
    return true;
}

/* Reduces a dimension of the shape to a range. `behind` is how many dimensions follow it in the shape. */
static enum mm_status cut(const char *name, const struct mm_range *range, unsigned behind,
                          struct mm_shape *shape, size_t *first, size_t *count, struct mm_error *error) {
    char text[MM_SHAPE_TEXT_MAX];
    if (!range->is_given)
        return MM_OK;
    mm_shape_text(shape, text);
    if (shape->rank <= behind)
        return mm_fail_field(error, MM_BAD_REQUEST, name, "%s is given, but the result is a %s; leave it out",
                             name, shape->rank == 0 ? "number" : "vector, whose elements are columns");
    const size_t most = *count, to = range->to == SIZE_MAX ? most : range->to;
    if (range->from > to || to > most)
        return mm_fail_field(error, MM_BAD_REQUEST, name,
                             "%s is %zu:%zu, but must be A:B with A at most B, and B at most %zu: the result "
                             "is %s",
                             name, range->from, to, most, text);
    *first = range->from;
    *count = shape->dims[shape->rank - 1 - behind] = to - range->from;
    return MM_OK;
}

enum mm_status mm_selection_cut(const struct mm_selection *selection, struct mm_shape *shape,
                                struct mm_window *part, struct mm_error *error) {
    *part = (struct mm_window){.count = mm_shape_matrices(shape),
                               .all_rows = mm_shape_rows(shape, false),
                               .all_cols = mm_shape_cols(shape, false)};
    part->rows = part->all_rows;
    part->cols = part->all_cols;
    enum mm_status status = cut("rows", &selection->rows, 1, shape, &part->row, &part->rows, error);
    if (status == MM_OK)
        status = cut("cols", &selection->cols, 0, shape, &part->col, &part->cols, error);
    const bool is_traced = (selection->figures >> MM_FIGURE_TRACE & 1) != 0;
    if (status != MM_OK || !is_traced || (shape->rank >= 2 && part->rows == part->cols))
        return status;
    return mm_fail_field(error, MM_BAD_SHAPE, "reduce",
                         "reduce asks for the trace, which only square matrices have, but the result has "
                         "rank %u, %zu rows and %zu columns",
                         shape->rank, part->rows, part->cols);
}

__extension__ typedef unsigned __int128 wide;

static char *put_whole(char *end, struct mm_int128 value) {
    const bool is_negative = value.high >> 63 != 0;
    const wide bits = (wide)value.high << 64 | value.low;
    wide rest = is_negative ? -bits : bits;
    char digits[40];
    unsigned count = 0;
    do {
        digits[count++] = (char)('0' + (unsigned)(rest % 10));
        rest /= 10;
    } while (rest > 0);
    if (is_negative)
        *end++ = '-';
    while (count > 0)
        *end++ = digits[--count];
    return end;
}

static char *put_value(char *end, const struct mm_figure_value *value) {
    switch (value->kind) {
    case MM_FIGURE_REAL:
        return end + mm_double_text(value->real, end);
    case MM_FIGURE_WHOLE:
        return put_whole(end, value->whole);
    case MM_FIGURE_TRUTH:
        return mm_put_text(end, value->whole.low != 0 ? "true" : "false");
    case MM_FIGURE_NONE:
        break;
    }
    return mm_put_text(end, "null");
}

size_t mm_result_figures(uint64_t figures, enum mm_dtype dtype, const struct mm_reduction *seen,
                         char text[MM_FIGURES_TEXT_MAX]) {
    char *end = mm_put_text(text, "{");
    for (unsigned figure = 0; figure < MM_FIGURE_COUNT; figure++) {
        if ((figures >> figure & 1) == 0)
            continue;
        const struct mm_figure_value value = mm_figure_of((enum mm_figure)figure, dtype, seen);
        end = mm_put_text(end, end == text + 1 ? "\"" : ", \"");
        end = mm_put_text(end, mm_figure_name((enum mm_figure)figure));
        end = put_value(mm_put_text(end, "\": "), &value);
    }
    return (size_t)(mm_put_text(end, "}") - text);
}
