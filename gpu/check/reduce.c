/* Computes the figures of a matrix in host memory. */
#include "gpu/check/reduce.h"

MM_DEFINE_NAMES(mm_figure_name, mm_figure, MM_FIGURE_COUNT, MM_FIGURE_TABLE)

/* Chooses mm_reduce_real or mm_reduce_whole by the type of the sums. */
#define ADD_float mm_reduce_real
#define ADD_double mm_reduce_real
#define ADD_uint32_t mm_reduce_whole
#define ADD_uint64_t mm_reduce_whole

/* Adds a row or a part of a row. `diagonal` is the index in `row` of the element on the diagonal. */
static void add_row(struct mm_reduction *sums, enum mm_dtype dtype, const void *row, size_t cols,
                    size_t diagonal) {
#define X(constant, name, type, word, sum, value, ...)                                                       \
    case constant:                                                                                           \
        for (size_t col = 0; col < cols; col++)                                                              \
            ADD_##sum(sums, value(((const type *)row)[col]), col == diagonal);                               \
        break;
    MM_DTYPE_SWITCH(dtype, X)
#undef X
}

bool mm_reduce_part(struct mm_reduction *sums, struct mm_reduction_progress *done,
                    const struct mm_window *part, enum mm_dtype dtype, const void *stack, size_t count) {
    const size_t all = mm_window_elements(part);
    const size_t end = done->elements + mm_size_min(count, all - done->elements);
    while (done->elements < end) {
        const size_t line = done->elements / part->cols, col = done->elements % part->cols;
        const size_t index = line / part->rows, row = line % part->rows;
        const size_t cols = mm_size_min(part->cols - col, end - done->elements);
        const size_t first = (index * part->all_rows + part->row + row) * part->all_cols + part->col + col;
        struct mm_reduction one = col == 0 ? mm_reduction_none() : done->row;
        add_row(&one, dtype, (const char *)stack + first * mm_dtype_bytes(dtype), cols,
                row + part->diagonal - col);
        if (col + cols == part->cols)
            mm_reduce_merge(sums, &one);
        else
            done->row = one;
        done->elements += cols;
    }
    return end < all;
}

static struct mm_figure_value real(double value) {
    return (struct mm_figure_value){.kind = MM_FIGURE_REAL, .real = value};
}

static struct mm_figure_value whole(struct mm_int128 value) {
    return (struct mm_figure_value){.kind = MM_FIGURE_WHOLE, .whole = value};
}

static struct mm_figure_value extreme_of(enum mm_figure figure, bool is_whole,
                                         const struct mm_reduction *sums) {
    if (sums->count == 0)
        return (struct mm_figure_value){.kind = MM_FIGURE_NONE};
    if (figure == MM_FIGURE_MIN)
        return is_whole ? whole(mm_int128_of(sums->whole_min)) : real(sums->min);
    return is_whole ? whole(mm_int128_of(sums->whole_max)) : real(sums->max);
}

static struct mm_figure_value max_abs_of(bool is_whole, const struct mm_reduction *sums) {
    if (sums->count == 0)
        return is_whole ? whole(mm_int128_of(0)) : real(0.0);
    const uint64_t of_least = sums->whole_min < 0 ? -(uint64_t)sums->whole_min : 0;
    const uint64_t of_most = sums->whole_max > 0 ? (uint64_t)sums->whole_max : 0;
    if (is_whole)
        return whole((struct mm_int128){.low = of_least > of_most ? of_least : of_most});
    return real(mm_reduce_extreme(fabs(sums->min), fabs(sums->max), true));
}

static double sum_of(double sum, double scaled) {
    return isfinite(sum) ? sum : scaled / MM_SCALE_SUM;
}

struct mm_figure_value mm_figure_of(enum mm_figure figure, enum mm_dtype dtype,
                                    const struct mm_reduction *sums) {
    const bool is_whole = !mm_dtype_is_float(dtype);
    switch (figure) {
    case MM_FIGURE_SUM:
        return is_whole ? whole(sums->whole_sum) : real(sum_of(sums->sum, sums->sum_scaled));
    case MM_FIGURE_TRACE:
        return is_whole ? whole(sums->whole_trace) : real(sum_of(sums->trace, sums->trace_scaled));
    case MM_FIGURE_MIN:
    case MM_FIGURE_MAX:
        return extreme_of(figure, is_whole, sums);
    case MM_FIGURE_MAX_ABS:
        return max_abs_of(is_whole, sums);
    case MM_FIGURE_NORM:
        return real(mm_squares_root(&sums->squares, 1.0));
    case MM_FIGURE_FINITE:
    case MM_FIGURE_COUNT:
        break;
    }
    return (struct mm_figure_value){.kind = MM_FIGURE_TRUTH, .whole.low = sums->not_finite == 0};
}
