/* Figures about a matrix in host memory. */
#include "gpu/check/reduce.h"

MM_DEFINE_NAMES(mm_figure_name, mm_figure, MM_FIGURE_COUNT, MM_FIGURE_TABLE)

/* The function that adds an element of each type. */
#define ADD_float mm_reduce_real
#define ADD_double mm_reduce_real
#define ADD_uint32_t mm_reduce_whole
#define ADD_uint64_t mm_reduce_whole

/* A row whose element on the diagonal is at `diagonal`. */
static void add_row(struct mm_reduction *seen, enum mm_dtype dtype, const void *row, size_t cols,
                    size_t diagonal) {
    switch (dtype) {
#define X(constant, name, type, word, sum, value, ...)                                                       \
    case constant:                                                                                           \
        for (size_t col = 0; col < cols; col++)                                                              \
            ADD_##sum(seen, value(((const type *)row)[col]), col == diagonal);                               \
        break;
        MM_DTYPE_TABLE(X)
#undef X
    case MM_DTYPE_COUNT:
        break;
    }
}

void mm_reduce_rows(struct mm_reduction *seen, const struct mm_matrix *matrix, size_t first, size_t count) {
    const size_t row_bytes = matrix->ld * mm_dtype_bytes(matrix->dtype);
    for (size_t row = first; row < first + count && matrix->cols > 0; row++) {
        struct mm_reduction one = mm_reduction_none();
        add_row(&one, matrix->dtype, (const char *)matrix->data + row * row_bytes, matrix->cols, row);
        mm_reduce_merge(seen, &one);
    }
}

static struct mm_figure_value real(double value) {
    return (struct mm_figure_value){.kind = MM_FIGURE_REAL, .real = value};
}

static struct mm_figure_value whole(struct mm_wide value) {
    return (struct mm_figure_value){.kind = MM_FIGURE_WHOLE, .whole = value};
}

static struct mm_figure_value extreme_of(enum mm_figure figure, bool is_whole,
                                         const struct mm_reduction *seen) {
    if (seen->count == 0)
        return (struct mm_figure_value){.kind = MM_FIGURE_NONE};
    if (figure == MM_FIGURE_MIN)
        return is_whole ? whole(mm_wide_of(seen->whole_min)) : real(seen->min);
    return is_whole ? whole(mm_wide_of(seen->whole_max)) : real(seen->max);
}

/* One of the two extremes has it; both are NaN if one is. */
static struct mm_figure_value max_abs_of(bool is_whole, const struct mm_reduction *seen) {
    if (seen->count == 0)
        return is_whole ? whole(mm_wide_of(0)) : real(0.0);
    const uint64_t of_least = seen->whole_min < 0 ? -(uint64_t)seen->whole_min : 0;
    const uint64_t of_most = seen->whole_max > 0 ? (uint64_t)seen->whole_max : 0;
    if (is_whole)
        return whole((struct mm_wide){.low = of_least > of_most ? of_least : of_most});
    return real(mm_reduce_extreme(fabs(seen->min), fabs(seen->max), true));
}

/* hypot neither over- nor underflows, but of infinity and NaN it makes infinity. */
static double norm_of(const struct mm_reduction *seen) {
    const double small = sqrt(seen->squares_small) / MM_SCALE_SMALL;
    const double large = sqrt(seen->squares_large) / MM_SCALE_LARGE;
    return isnan(seen->squares) ? seen->squares : hypot(hypot(small, sqrt(seen->squares)), large);
}

struct mm_figure_value mm_figure_of(enum mm_figure figure, enum mm_dtype dtype,
                                    const struct mm_reduction *seen) {
    const bool is_whole = !mm_dtype_is_float(dtype);
    switch (figure) {
    case MM_FIGURE_SUM:
        return is_whole ? whole(seen->whole_sum) : real(seen->sum);
    case MM_FIGURE_TRACE:
        return is_whole ? whole(seen->whole_trace) : real(seen->trace);
    case MM_FIGURE_MIN:
    case MM_FIGURE_MAX:
        return extreme_of(figure, is_whole, seen);
    case MM_FIGURE_MAX_ABS:
        return max_abs_of(is_whole, seen);
    case MM_FIGURE_NORM:
        return real(norm_of(seen));
    case MM_FIGURE_FINITE:
    case MM_FIGURE_COUNT:
        break;
    }
    return (struct mm_figure_value){.kind = MM_FIGURE_TRUTH, .whole.low = seen->not_finite == 0};
}
