/* What the client wants of a result or of a stored matrix: all elements, a part of them, or figures. Any
 * thread may call these functions. */
#pragma once

#include "api/parameter_value.h"
#include "api/slice.h"
#include "gpu/check/reduce.h"
#include "gpu/matrix/window.h"

/* The parameters reply, rows, cols and reduce. Begins as zeros. */
struct mm_selection {
    enum mm_reply reply;
    struct mm_range rows, cols;
    uint64_t figures; /* bits of enum mm_figure */
};

/* "A:B", each of which may be missing; false if it is malformed. */
bool mm_result_read_range(struct mm_slice text, struct mm_range *range);

/* "sum,norm" as bits of enum mm_figure; false if a name is unknown. */
bool mm_result_read_figures(struct mm_slice text, uint64_t *figures);

/* Whether the elements are returned. If the client does not say so, they are unless there are figures. */
static inline bool mm_selection_has_matrix(const struct mm_selection *selection) {
    return selection->reply == MM_REPLY_MATRIX ||
           (selection->reply == MM_REPLY_DEFAULT && selection->figures == 0);
}

/* Whether the client wants only a part, or figures. */
static inline bool mm_selection_is_part(const struct mm_selection *selection) {
    return selection->rows.is_given || selection->cols.is_given || selection->figures != 0;
}

/* The part of a result of this shape that the client wants; *shape becomes the part's. MM_BAD_REQUEST if rows
 * or cols do not lie in it, MM_BAD_SHAPE if a trace is wanted of what is not square. */
enum mm_status mm_selection_cut(const struct mm_selection *selection, struct mm_shape *shape,
                                struct mm_window *part, struct mm_error *error);

/* Writes {"sum": 3, "norm": 2.5} without a NUL, in the order of the table, and returns its length. */
enum { MM_FIGURES_TEXT_MAX = MM_FIGURE_COUNT * 64 };
size_t mm_result_figures(uint64_t figures, enum mm_dtype dtype, const struct mm_reduction *seen,
                         char text[MM_FIGURES_TEXT_MAX]);
