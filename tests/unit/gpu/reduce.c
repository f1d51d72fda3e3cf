/* Tests reductions of every type, in parts and in any order. Also tests parts of a result that are packed. */
#include "gpu/check/reduce.h"
#include "gpu/matrix/random.h"
#include "gpu/matrix/source.h"
#include "gpu/matrix/window.h"
#include "tests/unit/unit.h"

#include <float.h>
#include <math.h>

/* Reduces a part in steps of `count` elements. */
static struct mm_reduction reduce_part(const struct mm_window *part, enum mm_dtype dtype, const void *stack,
                                       size_t count) {
    struct mm_reduction seen = mm_reduction_none();
    struct mm_reduction_progress done = {0};
    while (mm_reduce_part(&seen, &done, part, dtype, stack, count))
        continue;
    assert_true(done.elements == mm_window_elements(part));
    return seen;
}

static struct mm_reduction reduce_matrix(enum mm_dtype dtype, size_t rows, size_t cols,
                                         const void *elements) {
    const struct mm_window all = {1, rows, cols, 0, rows, 0, cols};
    return reduce_part(&all, dtype, elements, SIZE_MAX);
}

/* Converts the values to the type, and reduces them. */
static struct mm_reduction reduce(enum mm_dtype dtype, const double *values, size_t rows, size_t cols) {
    uint64_t memory[32];
    for (size_t index = 0; index < rows * cols; index++)
        mm_dtype_put(dtype, memory, index, values[index]);
    return reduce_matrix(dtype, rows, cols, memory);
}

/* Returns the result as a float64, which is exact here. */
static double number(enum mm_figure figure, enum mm_dtype dtype, const struct mm_reduction *seen) {
    const struct mm_figure_value value = mm_figure_of(figure, dtype, seen);
    if (value.kind == MM_FIGURE_REAL)
        return value.real;
    assert_int_equal(value.kind, MM_FIGURE_WHOLE);
    return (double)(int64_t)value.whole.low;
}

static void each_figure_of_each_type(void **state) {
    static const double with_sign[] = {3, -4, 1, 0, 2, -5}, without[] = {3, 4, 1, 0, 2, 5},
                        bits[] = {1, 0, 1, 0, 1, 1};
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
        const double *values = dtype == MM_BOOL ? bits : dtype == MM_UINT8 ? without : with_sign;
        const struct mm_reduction seen = reduce(dtype, values, 2, 3);
        double sum = 0, squares = 0, least = INFINITY, most = -INFINITY;
        for (size_t index = 0; index < 6; index++) {
            sum += values[index];
            squares += values[index] * values[index];
            least = fmin(least, values[index]);
            most = fmax(most, values[index]);
        }
        assert_true(number(MM_FIGURE_SUM, dtype, &seen) == sum);
        assert_true(number(MM_FIGURE_TRACE, dtype, &seen) == values[0] + values[4]);
        assert_true(number(MM_FIGURE_MIN, dtype, &seen) == least);
        assert_true(number(MM_FIGURE_MAX, dtype, &seen) == most);
        assert_true(number(MM_FIGURE_MAX_ABS, dtype, &seen) == fmax(most, -least));
        assert_true(number(MM_FIGURE_NORM, dtype, &seen) == sqrt(squares));
        assert_int_equal(mm_figure_of(MM_FIGURE_FINITE, dtype, &seen).kind, MM_FIGURE_TRUTH);
        assert_int_equal(mm_figure_of(MM_FIGURE_FINITE, dtype, &seen).whole.low, 1);
    }
}

static void nan_and_infinity_are_reported(void **state) {
    static const struct {
        double values[3];
        double figures[5]; /* sum, min, max, max_abs, norm */
        bool finite;
    } cases[] = {
        {{1, NAN, 2}, {NAN, NAN, NAN, NAN, NAN}, false},
        {{NAN, 1, -INFINITY}, {NAN, NAN, NAN, NAN, NAN}, false},
        {{1, INFINITY, 2}, {INFINITY, 1, INFINITY, INFINITY, INFINITY}, false},
        {{-INFINITY, INFINITY, 2}, {NAN, -INFINITY, INFINITY, INFINITY, INFINITY}, false},
        {{-1, -2, -2}, {-5, -2, -1, 2, 3}, true},
        /* Partial sums overflow. The whole sum may still be finite. */
        {{DBL_MAX, DBL_MAX, -DBL_MAX}, {DBL_MAX, -DBL_MAX, DBL_MAX, DBL_MAX, INFINITY}, true},
        {{-DBL_MAX, 0, -DBL_MAX}, {-INFINITY, -DBL_MAX, 0, DBL_MAX, INFINITY}, true},
        {{INFINITY, -DBL_MAX, -DBL_MAX}, {INFINITY, -DBL_MAX, INFINITY, INFINITY, INFINITY}, false},
        {{DBL_TRUE_MIN, 0, -DBL_MIN},
         {DBL_TRUE_MIN - DBL_MIN, -DBL_MIN, DBL_TRUE_MIN, DBL_MIN, DBL_MIN},
         true},
    };
    for (size_t index = 0; index < COUNT(cases); index++)
        for (int part = 0; part < 2; part++) { /* in one part, then in two parts that are merged */
            struct mm_reduction seen = reduce(MM_FLOAT64, cases[index].values, 1, part == 0 ? 3 : 1);
            const struct mm_reduction rest = reduce(MM_FLOAT64, cases[index].values + 1, 2, 1);
            if (part == 1)
                mm_reduce_merge(&seen, &rest);
            const double got[] = {
                number(MM_FIGURE_SUM, MM_FLOAT64, &seen), number(MM_FIGURE_MIN, MM_FLOAT64, &seen),
                number(MM_FIGURE_MAX, MM_FLOAT64, &seen), number(MM_FIGURE_MAX_ABS, MM_FLOAT64, &seen),
                number(MM_FIGURE_NORM, MM_FLOAT64, &seen)};
            const double *expected = cases[index].figures;
            for (size_t figure = 0; figure < COUNT(got); figure++)
                if (got[figure] != expected[figure] && !(isnan(got[figure]) && isnan(expected[figure])))
                    fail_msg("case %zu, figure %zu: %g", index, figure, got[figure]);
            const double *values = cases[index].values;
            const double square[] = {values[0], 1, 1, 1, values[1], 1, 1, 1, values[2]};
            const struct mm_reduction of_square = reduce(MM_FLOAT64, square, 3, 3);
            const double trace = number(MM_FIGURE_TRACE, MM_FLOAT64, &of_square);
            if (trace != expected[0] && !(isnan(trace) && isnan(expected[0])))
                fail_msg("case %zu, trace: %g", index, trace);
            assert_int_equal(mm_figure_of(MM_FIGURE_FINITE, MM_FLOAT64, &seen).whole.low,
                             cases[index].finite);
        }
}

/* NaN and Inf outside the diagonal do not change the trace. */
static void trace_reads_only_the_diagonal(void **state) {
    const struct mm_reduction seen = reduce(MM_FLOAT64, (const double[]){1, NAN, INFINITY, 2}, 2, 2);
    assert_true(number(MM_FIGURE_TRACE, MM_FLOAT64, &seen) == 3);
}

/* Squares of these numbers overflow or underflow. The norm itself may overflow too. */
static void the_norm_of_large_and_small_numbers(void **state) {
    static const struct {
        double values[3], norm;
    } cases[] = {
        {{3e200, -4e200, 0}, 5e200},
        {{3e-200, 4e-200, 0}, 5e-200},
        {{DBL_MAX, 0, 1}, DBL_MAX},
        {{DBL_MAX, DBL_MAX, 0}, INFINITY},
        {{3 * DBL_TRUE_MIN, 4 * DBL_TRUE_MIN, 0}, 5 * DBL_TRUE_MIN},
        {{0x3p-512, 0x1p-510, 0}, 0x5p-512},
        {{0x3p485, 0x1p487, 0}, 0x5p485},
        {{1e200, 1, 1e-200}, 1e200},
        {{1e200, NAN, 1e-200}, NAN},
        {{INFINITY, 1e200, NAN}, NAN},
    };
    for (size_t index = 0; index < COUNT(cases); index++)
        for (size_t part = 0; part < 2; part++) {
            struct mm_reduction seen = reduce(MM_FLOAT64, cases[index].values, 1, 3 - part);
            const struct mm_reduction rest = reduce(MM_FLOAT64, cases[index].values + 3 - part, 1, part);
            mm_reduce_merge(&seen, &rest);
            const double norm = number(MM_FIGURE_NORM, MM_FLOAT64, &seen), expected = cases[index].norm;
            if (!(fabs(norm - expected) <= 4 * DBL_EPSILON * expected) && norm != expected &&
                !(isnan(norm) && isnan(expected)))
                fail_msg("case %zu: %g for %g", index, norm, expected);
        }
}

/* The number of empty matrices may be large. */
static void reductions_of_empty_matrices(void **state) {
    static const struct mm_window parts[] = {{(size_t)1 << 60, 0, 1, 0, 0, 0, 1},
                                             {(size_t)1 << 60, 1, 0, 0, 1, 0, 0}};
    const struct mm_reduction none = mm_reduction_none();
    for (size_t index = 0; index < COUNT(parts); index++) {
        const struct mm_reduction seen = reduce_part(&parts[index], MM_UINT8, NULL, 1);
        assert_memory_equal(&seen, &none, sizeof seen);
    }
    for (int is_whole = 0; is_whole < 2; is_whole++) {
        const enum mm_dtype dtype = is_whole ? MM_INT64 : MM_FLOAT32;
        assert_true(number(MM_FIGURE_SUM, dtype, &none) == 0);
        assert_true(number(MM_FIGURE_TRACE, dtype, &none) == 0);
        assert_true(number(MM_FIGURE_MAX_ABS, dtype, &none) == 0);
        assert_true(number(MM_FIGURE_NORM, dtype, &none) == 0);
        assert_int_equal(mm_figure_of(MM_FIGURE_MIN, dtype, &none).kind, MM_FIGURE_NONE);
        assert_int_equal(mm_figure_of(MM_FIGURE_MAX, dtype, &none).kind, MM_FIGURE_NONE);
        assert_int_equal(mm_figure_of(MM_FIGURE_FINITE, dtype, &none).whole.low, 1);
    }
}

/* Sums exceed 2^63 and become small again. The absolute value of INT64_MIN is no int64. */
static void whole_sums_are_exact(void **state) {
    int64_t values[5] = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MIN, INT64_MIN};
    const struct mm_reduction seen = reduce_matrix(MM_INT64, 1, 3, values),
                              all = reduce_matrix(MM_INT64, 1, 5, values);
    assert_true(seen.whole_sum.low == (uint64_t)INT64_MAX * 3 && seen.whole_sum.high == 1);
    assert_true(all.whole_sum.low == (uint64_t)INT64_MAX - 2 && all.whole_sum.high == 0);
    const struct mm_figure_value max_abs = mm_figure_of(MM_FIGURE_MAX_ABS, MM_INT64, &all);
    assert_true(max_abs.whole.low == UINT64_C(1) << 63 && max_abs.whole.high == 0);
}

/* Packing the part must not change its reductions. The part has 2 rows and 3 columns of each 4×5 matrix. */
static void part_is_packed_in_place(void **state) {
    enum { MATRICES = 3, ROWS = 4, COLS = 5 };
    const struct mm_window part = {MATRICES, ROWS, COLS, 1, 2, 2, 3};
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
        uint64_t memory[MATRICES * ROWS * COLS], copy[MATRICES * 2 * 3];
        const struct mm_source source = {MM_SOURCE_UNIFORM, 9, ROWS};
        const struct mm_matrix all = mm_matrix_dense(dtype, MATRICES * ROWS, COLS, memory);
        (void)mm_source_generate(&source, &all, 0, MATRICES * ROWS * COLS, NULL);
        const struct mm_reduction strided = reduce_part(&part, dtype, memory, SIZE_MAX);
        mm_window_pack(&part, dtype, memory, copy);
        mm_window_pack(&part, dtype, memory, memory);
        assert_memory_equal(copy, memory, mm_window_elements(&part) * mm_dtype_bytes(dtype));
        for (size_t index = 0; index < mm_window_elements(&part); index++) {
            const size_t matrix = index / 6, row = index / 3 % 2 + 1, col = index % 3 + 2;
            assert_true(mm_dtype_get(dtype, memory, index) ==
                        mm_random_number(dtype, 9, (matrix * ROWS + row) * COLS + col));
        }
        for (size_t count = 1; count <= mm_window_elements(&part); count++) {
            const struct mm_window dense = {MATRICES, 2, 3, 0, 2, 0, 3};
            const struct mm_reduction packed = reduce_part(&dense, dtype, memory, count);
            assert_memory_equal(&strided, &packed, sizeof packed);
        }
    }
}

RUN_TESTS(each_figure_of_each_type, nan_and_infinity_are_reported, trace_reads_only_the_diagonal,
          the_norm_of_large_and_small_numbers, reductions_of_empty_matrices, whole_sums_are_exact,
          part_is_packed_in_place)
