/* Reduces a matrix to figures such as its sum or norm, which a client may want instead of the matrix. For
 * host and device code.
 *
 * Floats are added in float64. Integers are added exactly, because 128 bits can hold the sum of 2⁶⁴ elements.
 * A NaN in the matrix makes all figures NaN except `finite` and `trace`. `trace` is NaN only if the NaN is on
 * the diagonal. On the host any thread may call these functions on its own memory. */
#pragma once

#include "gpu/check/squares.h"
#include "gpu/names.h"
#include "gpu/matrix/window.h"

#include <math.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* One row for each figure: constant, name in the API. */
#define MM_FIGURE_TABLE(X)                                                                                   \
    X(MM_FIGURE_SUM, "sum")                                                                                  \
    X(MM_FIGURE_TRACE, "trace")                                                                              \
    X(MM_FIGURE_MIN, "min")                                                                                  \
    X(MM_FIGURE_MAX, "max")                                                                                  \
    X(MM_FIGURE_MAX_ABS, "max_abs")                                                                          \
    X(MM_FIGURE_NORM, "norm")                                                                                \
    X(MM_FIGURE_FINITE, "finite")

enum mm_figure { MM_FIGURE_TABLE(MM_CONSTANT) MM_FIGURE_COUNT };

const char *mm_figure_name(enum mm_figure figure);

/* A 128-bit integer in two's complement. __int128 would need an alignment of 16 bytes. */
struct mm_int128 {
    uint64_t low;
    uint64_t high;
};

MM_HOST_AND_DEVICE struct mm_int128 mm_int128_of(int64_t value) {
    const struct mm_int128 wide = {(uint64_t)value, value < 0 ? UINT64_MAX : 0};
    return wide;
}

MM_HOST_AND_DEVICE void mm_int128_add(struct mm_int128 *into, struct mm_int128 other) {
    into->low += other.low;
    into->high += other.high + (into->low < other.low);
}

/* A partial float64 sum can overflow although the final sum is within range. A second sum adds all numbers
 * times this factor. The second sum cannot overflow, because a matrix has fewer than 2⁶⁴ elements. */
#define MM_SCALE_SUM 0x1p-64

/* Sums of the elements that were added. Start with mm_reduction_none. Members with `whole_` are for integers;
 * `squares` and `count` are for all types; other members are for floats. */
struct mm_reduction {
    struct mm_int128 whole_sum;
    struct mm_int128 whole_trace;
    int64_t whole_min; /* INT64_MAX before the first element */
    int64_t whole_max; /* INT64_MIN before the first element */
    double sum;
    double trace;
    double sum_scaled;   /* sum times MM_SCALE_SUM; used if `sum` is not finite */
    double trace_scaled; /* trace times MM_SCALE_SUM; used if `trace` is not finite */
    double min;          /* infinity before the first element */
    double max;          /* -infinity before the first element */
    struct mm_squares squares;
    uint64_t count;      /* elements that were added */
    uint64_t not_finite; /* elements that are infinite or NaN */
};

MM_HOST_AND_DEVICE struct mm_reduction mm_reduction_none(void) {
    struct mm_reduction none = {};
    none.whole_min = INT64_MAX;
    none.whole_max = INT64_MIN;
    none.min = (double)INFINITY;
    none.max = -(double)INFINITY;
    return none;
}

/* Returns the larger of two numbers if `largest` is set, else the smaller. NaN if either number is NaN. */
MM_HOST_AND_DEVICE double mm_reduce_extreme(double current, double other, bool largest) {
    if (current != current)
        return current;
    return other != other || (largest ? other > current : other < current) ? other : current;
}

/* Adds a float. `diagonal` says whether the element is on the diagonal. */
MM_HOST_AND_DEVICE void mm_reduce_real(struct mm_reduction *sums, double element, bool diagonal) {
    sums->count++;
    sums->sum += element;
    sums->trace += diagonal ? element : 0.0;
    sums->sum_scaled += element * MM_SCALE_SUM;
    sums->trace_scaled += diagonal ? element * MM_SCALE_SUM : 0.0;
    sums->min = mm_reduce_extreme(sums->min, element, false);
    sums->max = mm_reduce_extreme(sums->max, element, true);
    mm_squares_add(&sums->squares, element);
    sums->not_finite += element - element != 0.0; /* true for infinity and for NaN */
}

/* Adds an integer. `diagonal` says whether the element is on the diagonal. */
MM_HOST_AND_DEVICE void mm_reduce_whole(struct mm_reduction *sums, int64_t element, bool diagonal) {
    sums->count++;
    mm_int128_add(&sums->whole_sum, mm_int128_of(element));
    mm_int128_add(&sums->whole_trace, mm_int128_of(diagonal ? element : 0));
    sums->whole_min = element < sums->whole_min ? element : sums->whole_min;
    sums->whole_max = element > sums->whole_max ? element : sums->whole_max;
    sums->squares.middle += (double)element * (double)element;
}

MM_HOST_AND_DEVICE void mm_reduce_merge(struct mm_reduction *into, const struct mm_reduction *other) {
    into->count += other->count;
    mm_int128_add(&into->whole_sum, other->whole_sum);
    mm_int128_add(&into->whole_trace, other->whole_trace);
    into->whole_min = other->whole_min < into->whole_min ? other->whole_min : into->whole_min;
    into->whole_max = other->whole_max > into->whole_max ? other->whole_max : into->whole_max;
    into->sum += other->sum;
    into->trace += other->trace;
    into->sum_scaled += other->sum_scaled;
    into->trace_scaled += other->trace_scaled;
    into->min = mm_reduce_extreme(into->min, other->min, false);
    into->max = mm_reduce_extreme(into->max, other->max, true);
    mm_squares_merge(&into->squares, &other->squares);
    into->not_finite += other->not_finite;
}

/* The progress of a reduction. Begin with zeros. */
struct mm_reduction_progress {
    size_t elements;         /* elements that were added */
    struct mm_reduction row; /* sums of the current row */
};

/* Elements that one call can add within a few milliseconds. */
enum { MM_REDUCE_SLICE = 1 << 19 };

/* Adds the next `count` elements of a part of a dense stack, or all remaining elements if there are fewer.
 * Returns whether elements remain after that. Each row is summed separately. Rounding errors therefore grow
 * only with rows plus columns, and do not depend on `count`. */
bool mm_reduce_part(struct mm_reduction *sums, struct mm_reduction_progress *done,
                    const struct mm_window *part, enum mm_dtype dtype, const void *stack, size_t count);

/* For an empty matrix, sum, trace, norm and max_abs are 0, finite is true, and min and max have no value
 * (MM_FIGURE_NONE). */
enum mm_figure_kind { MM_FIGURE_REAL, MM_FIGURE_WHOLE, MM_FIGURE_TRUTH, MM_FIGURE_NONE };

struct mm_figure_value {
    enum mm_figure_kind kind;
    double real;            /* for MM_FIGURE_REAL */
    struct mm_int128 whole; /* for MM_FIGURE_WHOLE, and 0 or 1 for MM_FIGURE_TRUTH */
};

struct mm_figure_value mm_figure_of(enum mm_figure figure, enum mm_dtype dtype,
                                    const struct mm_reduction *sums);

__END_DECLS
