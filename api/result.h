/* What the client wants of a result: all elements, a part of them, or figures (the parameters reply, rows,
 * cols and reduce). Threads as in api/call.h. */
#pragma once

#include "api/call.h"
#include "api/slice.h"
#include "gpu/check/reduce.h"
#include "gpu/matrix/window.h"

/* "A:B", each of which may be missing; false if it is malformed. */
bool mm_result_read_range(struct mm_slice text, struct mm_range *range);

/* "sum,norm" as bits of enum mm_figure; false if a name is unknown. */
bool mm_result_read_figures(struct mm_slice text, uint64_t *figures);

/* Whether the result's elements are returned: unless the call says so, if there are no figures. */
static inline bool mm_result_returns_matrix(const struct mm_call *call) {
    return mm_call_has(call, MM_PARAMETER_REPLY) ? call->numbers[MM_PARAMETER_REPLY] == 0
                                                 : call->numbers[MM_PARAMETER_REDUCE] == 0;
}

/* Whether the client wants only a part, or figures. */
static inline bool mm_result_has_part(const struct mm_call *call) {
    return mm_call_has(call, MM_PARAMETER_ROWS) || mm_call_has(call, MM_PARAMETER_COLS) ||
           mm_call_has(call, MM_PARAMETER_REDUCE);
}

/* The part of a result of this shape that the client wants; *shape becomes the part's. MM_BAD_REQUEST if rows
 * or cols do not lie in it, MM_BAD_SHAPE if a trace is wanted of what is not square. */
enum mm_status mm_result_cut(const struct mm_call *call, struct mm_shape *shape, struct mm_window *part,
                             struct mm_error *error);

/* Writes {"sum": 3, "norm": 2.5} without a NUL, in the order of the table, and returns its length. */
enum { MM_FIGURES_TEXT_MAX = MM_FIGURE_COUNT * 64 };
size_t mm_result_figures(uint64_t figures, enum mm_dtype dtype, const struct mm_reduction *seen,
                         char text[MM_FIGURES_TEXT_MAX]);
