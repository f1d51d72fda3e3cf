/* Streams of random numbers by number, and samples: where they are taken, and what passes for right. */
#include "gpu/check/sample.h"
#include "tests/unit/unit.h"

#include <math.h>

enum { SEED = 12345 };

static void bits_are_those_of_splitmix64(void **state) {
    /* The first outputs of the generator from state 0, as its authors' program prints them. */
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
    /* Six standard deviations: of the mean 1/√(3·COUNT), of the mean square √(4/45/COUNT). */
    assert_true(fabs(sum / COUNT) < 6.0 / sqrt(3.0 * COUNT));
    assert_true(fabs(squares / COUNT - 1.0 / 3.0) < 6.0 * sqrt(4.0 / 45.0 / COUNT));
}

static void small_results_are_taken_whole(void **state) {
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

/* The whole product in float32, by the plain loop. An element of a stored matrix lies so many numbers from
 * the next in its row, and from the next in its column. */
static void multiply(const struct mm_random_product *product, float *c) {
    const size_t a_step[2] = {product->transpose_a ? product->m : 1, product->transpose_a ? 1 : product->k};
    const size_t b_step[2] = {product->transpose_b ? product->k : 1, product->transpose_b ? 1 : product->n};
    for (size_t row = 0; row < product->m; row++)
        for (size_t col = 0; col < product->n; col++) {
            float sum = 0.0F;
            for (size_t depth = 0; depth < product->k; depth++)
                sum += mm_random_element(product->a_seed, row * a_step[1] + depth * a_step[0]) *
                       mm_random_element(product->b_seed, depth * b_step[1] + col * b_step[0]);
            c[row * product->n + col] = sum;
        }
}

/* The largest error of the sample. */
static double error_of(const struct mm_sample *sample, const struct mm_random_product *product,
                       const float *c) {
    double largest = 0.0;
    for (unsigned span = 0; span < sample->span_count; span++) {
        const struct mm_sample_span *at = &sample->spans[span];
        largest =
            fmax(largest, mm_sample_error(sample, span, product->k, &c[at->row * product->n + at->col]));
    }
    return largest;
}

static void products_are_judged_by_the_bound(void **state) {
    enum { M = 23, N = 37, K = 41 };
    const struct mm_random_product product = {
        .a_seed = SEED, .b_seed = mm_random_skip(SEED, 4096), .m = M, .k = K, .n = N};
    struct mm_sample sample;
    float c[M * N];
    mm_sample_place(&sample, M, N, K);
    for (unsigned span = 0; span < sample.span_count; span++)
        mm_sample_expect(&sample, span, &product);
    multiply(&product, c);
    const double error = error_of(&sample, &product, c);
    assert_true(error > 0.0 && error < 0.5);

    /* Three bounds beside the truth, at the last element of the last span. */
    const struct mm_sample_span *at = &sample.spans[sample.span_count - 1];
    const unsigned last = sample.width - 1;
    float *element = &c[at->row * N + at->col + last];
    const double magnitude = sample.magnitudes[sample.span_count - 1][last];
    assert_true(magnitude >= fabs((double)*element));
    *element = (float)(sample.sums[sample.span_count - 1][last] + 3.0 * 2.0 * (K + 8) * 0x1p-24 * magnitude);
    const double wrong = error_of(&sample, &product, c);
    assert_true(wrong > 2.9 && wrong < 3.1);
    static const float not_finite[] = {NAN, INFINITY, -INFINITY};
    for (int which = 0; which < 3; which++) {
        *element = not_finite[which];
        assert_true(isinf(error_of(&sample, &product, c)));
    }
}

/* By hand: op(A) is 2×3 and op(B) 3×2, of the numbers a0 … a5 and b0 … b5 in the order in which they lie;
 * each element of C is told by the three of either whose products it sums up. */
static void stored_transposes_are_indexed_as_they_lie(void **state) {
    static const struct {
        bool transpose_a;
        bool transpose_b;
        unsigned a[2][3]; /* of the rows of op(A) */
        unsigned b[2][3]; /* of the columns of op(B) */
    } cases[] = {
        {false, false, {{0, 1, 2}, {3, 4, 5}}, {{0, 2, 4}, {1, 3, 5}}},
        {true, false, {{0, 2, 4}, {1, 3, 5}}, {{0, 2, 4}, {1, 3, 5}}},
        {false, true, {{0, 1, 2}, {3, 4, 5}}, {{0, 1, 2}, {3, 4, 5}}},
        {true, true, {{0, 2, 4}, {1, 3, 5}}, {{0, 1, 2}, {3, 4, 5}}},
    };
    struct mm_sample sample;
    mm_sample_place(&sample, 2, 2, 3);
    assert_int_equal(sample.span_count * sample.width, 4);
    for (size_t which = 0; which < COUNT(cases); which++) {
        const struct mm_random_product product = {.a_seed = SEED,
                                                  .b_seed = SEED + 1,
                                                  .transpose_a = cases[which].transpose_a,
                                                  .transpose_b = cases[which].transpose_b,
                                                  .m = 2,
                                                  .k = 3,
                                                  .n = 2};
        for (unsigned span = 0; span < sample.span_count; span++) {
            const struct mm_sample_span *at = &sample.spans[span];
            mm_sample_expect(&sample, span, &product);
            for (unsigned index = 0; index < sample.width; index++) {
                double sum = 0.0;
                for (unsigned depth = 0; depth < 3; depth++)
                    sum += (double)mm_random_element(SEED, cases[which].a[at->row][depth]) *
                           (double)mm_random_element(SEED + 1, cases[which].b[at->col + index][depth]);
                assert_true(sample.sums[span][index] == sum);
            }
        }
    }
}

RUN_TESTS(bits_are_those_of_splitmix64, elements_are_uniform_and_never_0, small_results_are_taken_whole,
          large_results_are_sampled_within_bounds, products_are_judged_by_the_bound,
          stored_transposes_are_indexed_as_they_lie)
