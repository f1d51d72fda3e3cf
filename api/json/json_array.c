/* Writes arrays as JSON text: rows of numbers, nested in one pair of brackets for each dimension. */
#include "api/json/json_array.h"

#include "api/number/rows_text.h"

#include <string.h>

/* How an array is written. rows_text.c writes the matrix `rows` with brackets from `marks`. This file then
 * writes `around` more pairs of brackets around the text. */
struct layout {
    struct mm_row_marks marks;
    struct mm_matrix rows;
    unsigned around;
};

/* After the first dimension of 0, no more dimensions are written: both 2×0 and 2×0×3 become [[],[]]. */
static struct layout layout_of(const struct mm_shape *shape, enum mm_dtype dtype) {
    struct layout layout = {.marks = {.between = ",", .begin = "", .end = "", .has_quotes = true}};
    struct mm_shape written = {0};
    size_t rows = 1;
    while (written.rank < shape->rank && (written.rank == 0 || written.dims[written.rank - 1] > 0)) {
        written.dims[written.rank] = shape->dims[written.rank];
        written.rank++;
    }
    layout.rows = mm_shape_view(&written, false, dtype);
    if (written.rank == 0)
        return layout;
    layout.marks.begin = "[";
    layout.marks.end = "]";
    layout.around = written.rank - 1;
    for (unsigned dim = written.rank - 1; dim > 1; dim--) {
        rows *= written.dims[dim - 1];
        layout.marks.group_rows[layout.marks.group_count++] = rows;
    }
    return layout;
}

bool mm_json_array_text_bytes(const struct mm_shape *shape, enum mm_dtype dtype, size_t *bytes) {
    const struct layout layout = layout_of(shape, dtype);
    return mm_rows_text_bytes(&layout.rows, &layout.marks, bytes) &&
           mm_size_add(*bytes, 2 * (size_t)layout.around, bytes);
}

size_t mm_json_array_write(const struct mm_shape *shape, enum mm_dtype dtype, void *elements,
                           struct mm_helpers *helpers, char *text) {
    struct layout layout = layout_of(shape, dtype);
    layout.rows.data = elements;
    char *end = memset(text, '[', layout.around);
    end = mm_rows_text_write(&layout.rows, &layout.marks, helpers, end + layout.around);
    memset(end, ']', layout.around);
    return (size_t)(end - text) + layout.around;
}
