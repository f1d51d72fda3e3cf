/* Which part of a result or of a stored matrix the client wants: all elements, some of them, or figures. Any
 * thread may call these functions. */
#pragma once

#include "api/parameter_value.h"
#include "api/slice.h"
#include "gpu/check/reduce.h"
#include "gpu/matrix/window.h"

/* The parameters reply, rows, cols and reduce. Zeros mean the whole matrix. */
struct mm_selection {
    enum mm_reply reply;
    struct mm_range rows, cols;
    uint64_t figures; /* bits of enum mm_figure */
};

/* Reads "A:B", "A:", ":B" or ":". False if the text is malformed. */
bool mm_result_read_range(struct mm_slice text, struct mm_range *range);

/* Reads a list such as "sum,norm" into bits of enum mm_figure. False if a name is unknown. */
bool mm_result_read_figures(struct mm_slice text, uint64_t *figures);

/* Whether the reply has the elements. Without the parameter `reply`, figures replace the elements. */
static inline bool mm_selection_has_matrix(const struct mm_selection *selection) {
    return selection->reply == MM_REPLY_MATRIX ||
           (selection->reply == MM_REPLY_DEFAULT && selection->figures == 0);
}

static inline bool mm_selection_is_part(const struct mm_selection *selection) {
    return selection->rows.is_given || selection->cols.is_given || selection->figures != 0;
}

/* *shape is the result's shape. Sets *part to the selected part of the result, and *shape to the part's
 * shape. Fails with MM_BAD_REQUEST if rows or cols exceed the result. Fails with MM_BAD_SHAPE if the client
 * wants the trace of a part that is not square. */
enum mm_status mm_selection_cut(const struct mm_selection *selection, struct mm_shape *shape,
                                struct mm_window *part, struct mm_error *error);

/* Writes figures as {"sum": 3, "norm": 2.5}, without a NUL. Returns the length. */
enum { MM_FIGURES_TEXT_MAX = MM_FIGURE_COUNT * 64 };
size_t mm_result_figures(uint64_t figures, enum mm_dtype dtype, const struct mm_reduction *seen,
                         char text[MM_FIGURES_TEXT_MAX]);
