/* Tests random numbers that are computed from their index, and the check of sampled elements of a product. */
#include "gpu/check/sample.h"
#include "tests/unit/unit.h"

#include <math.h>

enum { SEED = 12345 };

static void bits_are_those_of_splitmix64(void **state) {
    /* Output of the program by the generator's authors, with state 0. */
    static const uint64_t expected[] = {UINT64_C(0xe220a8397b1dcdaf), UINT64_C(0x6e789e6aa1b965f4),
                                        UINT64_C(0x06c45d188009454f), UINT64_C(0xf88bb8a8724c81ec)};
    for (size_t index = 0; index < 4; index++) {
        assert_true(mm_random_bits(0, index) == expected[index]);
        assert_true(mm_random_bits(mm_random_skip(0, index), 0) == expected[index]);
    }
    assert_true(mm_random_element(mm_random_skip(SEED, 1000), 23) == mm_random_element(SEED, 1023));
}

static void elements_are_uniform_and_never_0(void **state) {
    enum { COUNT = 100000 };
    double sum = 0.0;
    double squares = 0.0;
    for (size_t index = 0; index < COUNT; index++) {
        const double element = (double)mm_random_element(SEED, index);
        assert_true(element > -1.0 && element < 1.0 && element != 0.0);
        assert_true(element * 0x1p24 == floor(element * 0x1p24));
        sum += element;
        squares += element * element;
    }
    /* The limits are six standard deviations: 1/√(3·COUNT) for the mean, √(4/45/COUNT) for the mean
     * square. */
    assert_true(fabs(sum / COUNT) < 6.0 / sqrt(3.0 * COUNT));
    assert_true(fabs(squares / COUNT - 1.0 / 3.0) < 6.0 * sqrt(4.0 / 45.0 / COUNT));
}

static void small_results_are_sampled_completely(void **state) {
    static const size_t shapes[][3] = {{1, 1, 1}, {16, 16, 16}, {7, 37, 5}, {128, 3, 64}, {5, 33, 4096}};
    struct mm_sample sample;
    for (size_t which = 0; which < COUNT(shapes); which++) {
        const size_t rows = shapes[which][0];
        const size_t cols = shapes[which][1];
        bool seen[512] = {false};
        mm_sample_place(&sample, rows, cols, shapes[which][2]);
        for (unsigned span = 0; span < sample.span_count; span++)
            for (unsigned index = 0; index < sample.width; index++) {
                assert_true(sample.spans[span].row < rows && sample.spans[span].col + index < cols);
                seen[sample.spans[span].row * cols + sample.spans[span].col + index] = true;
            }
        for (size_t element = 0; element < rows * cols; element++)
            assert_true(seen[element]);
    }
}

static bool has_element(const struct mm_sample *sample, size_t row, size_t col) {
    for (unsigned span = 0; span < sample->span_count; span++)
        if (sample->spans[span].row == row && col >= sample->spans[span].col &&
            col < sample->spans[span].col + sample->width)
            return true;
    return false;
}

static void large_results_are_sampled_within_bounds(void **state) {
    static const size_t shapes[][3] = {{1024, 1024, 1024},    {4095, 4097, 4099}, {1, 1 << 20, 3},
                                       {1 << 20, 1, 3},       {129, 1, 1},        {64, 64, 1 << 20},
                                       {2, 2, 1 << 23},       {3, 3, 1 << 24},    {1000, 1000, 131072},
                                       {INT32_MAX, 100, 100}, {17, 16, 60000}};
    struct mm_sample sample;
    for (size_t which = 0; which < COUNT(shapes); which++) {
        const size_t rows = shapes[which][0];
        const size_t cols = shapes[which][1];
        const size_t depth = shapes[which][2];
        mm_sample_place(&sample, rows, cols, depth);
        assert_in_range(sample.span_count, 1, MM_SAMPLE_SPANS_MAX);
        assert_in_range(sample.width, 1, MM_SAMPLE_WIDTH_MAX);
        const size_t numbers = sample.span_count * (sample.width + 1) * depth;
        assert_true(numbers <= MM_SAMPLE_NUMBERS_MAX || (sample.span_count == 1 && sample.width == 1));
        for (unsigned span = 0; span < sample.span_count; span++)
            assert_true(sample.spans[span].row < rows && sample.spans[span].col + sample.width <= cols);
        assert_true(has_element(&sample, rows - 1, cols - 1));
        if (sample.span_count >= 4) {
            assert_true(has_element(&sample, 0, 0));
            assert_true(has_element(&sample, 0, cols - 1));
            assert_true(has_element(&sample, rows - 1, 0));
        }
    }
}

/* First the middle element gets an error that underflow can cause. Then the last element gets an error of
 * three times its bound. */
static void errors_are_relative_to_the_bound(void **state) {
    enum { K = 41 };
    static const float not_finite[] = {NAN, INFINITY, -INFINITY};
    const struct mm_product product = {.k = K}; /* of float32 */
    const struct mm_bounds bounds = mm_bounds_of(&product, MM_ROUNDED);
    const struct mm_sample sample = {
        .width = 3, .span_count = 2, .sums[1] = {1.0, 0.0, -3.0}, .magnitudes[1] = {2.0, 0.0, 8.0}};
    float elements[] = {1.0F, 0.0F, -3.0F};
    assert_true(mm_sample_error(&sample, 1, &bounds, MM_FLOAT32, elements) == 0.0);
    elements[1] = K * 0x1p-149F;
    assert_true(mm_sample_error(&sample, 1, &bounds, MM_FLOAT32, elements) == 1.0);
    elements[2] += 3.0F * 2.0F * (K + 8) * 0x1p-24F * 8.0F;
    const double wrong = mm_sample_error(&sample, 1, &bounds, MM_FLOAT32, elements);
    assert_true(wrong > 2.9 && wrong < 3.1);
    for (int which = 0; which < 3; which++) {
        elements[2] = not_finite[which];
        assert_true(isinf(mm_sample_error(&sample, 1, &bounds, MM_FLOAT32, elements)));
    }
}

static struct mm_bounds bounds_of(enum mm_dtype dtype, enum mm_dtype c_dtype, enum mm_arithmetic arithmetic) {
    const struct mm_product product = {.k = 92, .a.dtype = dtype, .b.dtype = dtype, .c.dtype = c_dtype};
    return mm_bounds_of(&product, arithmetic);
}

/* With k = 92 the bound is 2·(92 + 8) = 200 units of roundoff. */
static void bounds_are_those_of_the_types(void **state) {
    assert_true(bounds_of(MM_FLOAT32, MM_FLOAT32, MM_CUT_OFF).relative == 200.0 * 0x1p-24);
    assert_true(bounds_of(MM_FLOAT64, MM_FLOAT64, MM_CUT_OFF).relative == 200.0 * 0x1p-53);
    assert_true(bounds_of(MM_FLOAT64, MM_FLOAT64, MM_CUT_OFF).absolute == 92.0 * 0x1p-1074);
    assert_true(bounds_of(MM_FLOAT16, MM_FLOAT32, MM_ROUNDED).relative == 200.0 * 0x1p-24);
    assert_true(bounds_of(MM_FLOAT16, MM_FLOAT32, MM_CUT_OFF).relative == 400.0 * 0x1p-24);
    assert_true(bounds_of(MM_FLOAT8_E5M2, MM_FLOAT32, MM_ROUNDED).relative == 200.0 * 0x1p-24);
    assert_true(bounds_of(MM_FLOAT8_E5M2, MM_FLOAT32, MM_CUT_OFF).relative == 0x1p-6);
    assert_true(bounds_of(MM_FLOAT32, MM_FLOAT32, MM_ROUNDED).unit == 0.0);
    assert_true(bounds_of(MM_FLOAT32, MM_FLOAT32, MM_OF_TF32).relative ==
                0x1p-10 + 0x1p-22 + 400.0 * 0x1p-24);
    assert_true(bounds_of(MM_FLOAT16, MM_FLOAT32, MM_OF_TF32).relative == 400.0 * 0x1p-24);
    const struct mm_bounds narrow = bounds_of(MM_BFLOAT16, MM_BFLOAT16, MM_ROUNDED);
    assert_true(narrow.unit == 0x1p-8 && narrow.step == 0x1p-134 && narrow.absolute == 92.0 * 0x1p-149);
    assert_true(bounds_of(MM_FLOAT16, MM_FLOAT16, MM_ROUNDED).largest == 65504.0);
    assert_true(bounds_of(MM_FLOAT64, MM_FLOAT32, MM_ROUNDED).unit == 0x1p-24);
    assert_true(bounds_of(MM_INT8, MM_INT32, MM_CUT_OFF).relative == 0.0);
}

static void whole_numbers_are_exact(void **state) {
    const struct mm_product product = {.k = 41, .a.dtype = MM_INT64, .c.dtype = MM_INT64};
    const struct mm_bounds bounds = mm_bounds_of(&product, MM_CUT_OFF);
    const struct mm_sample sample = {.width = 2, .span_count = 1, .sums[0] = {1.0, -3.0}};
    int64_t elements[] = {1, -3};
    assert_true(mm_sample_error(&sample, 0, &bounds, MM_INT64, elements) == 0.0);
    elements[1]++;
    assert_true(isinf(mm_sample_error(&sample, 0, &bounds, MM_INT64, elements)));
    assert_true(isinf(mm_sample_zeros_error(&sample, &bounds)));
}

static void elements_of_every_type_are_random(void **state) {
    enum { COUNT = 10000 };
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
        double sum = 0.0, least = 0.0, largest = 0.0;
        for (size_t index = 0; index < COUNT; index++) {
            const double number = mm_random_number(dtype, SEED, index);
            uint64_t nearest;
            mm_dtype_put(dtype, &nearest, 0, (double)mm_random_element(SEED, index));
            if (mm_dtype_is_float(dtype))
                assert_true(number == mm_dtype_get(dtype, &nearest, 0));
            sum += number;
            least = fmin(least, number);
            largest = fmax(largest, number);
        }
        if (mm_dtype_is_float(dtype))
            assert_true(fabs(sum) < 6.0 * sqrt(COUNT / 3.0));
        else if (dtype == MM_BOOL)
            assert_true(least == 0.0 && largest == 1.0 && fabs(sum - 0.5 * COUNT) < 6.0 * 0.5 * sqrt(COUNT));
        else if (dtype == MM_UINT8) /* the result wraps around */
            assert_true(least == 0.0 && largest == 255.0);
        else
            assert_true(least == -8.0 && largest == 7.0 && fabs(sum + 0.5 * COUNT) < 6.0 * 4.7 * sqrt(COUNT));
    }
}

RUN_TESTS(bits_are_those_of_splitmix64, elements_are_uniform_and_never_0,
          small_results_are_sampled_completely, large_results_are_sampled_within_bounds,
          errors_are_relative_to_the_bound, bounds_are_those_of_the_types, whole_numbers_are_exact,
          elements_of_every_type_are_random)
