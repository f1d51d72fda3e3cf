/* Tests the check of a product on the host. Compares its results with a plain computation. Also checks wrong
 * products, and products that cannot be checked. */
#include "gpu/device/backend.h"
#include "gpu/check/verify.h"
#include "tests/unit/unit.h"

enum { EDGE_MAX = 70, LD_MAX = EDGE_MAX + 5, NUMBERS = LD_MAX * EDGE_MAX };

/* A product whose matrices have padding behind their rows. */
struct sample {
    struct mm_product product;
    float a[NUMBERS];
    float b[NUMBERS];
    float c[NUMBERS];
};

static struct sample sample;

static float element_of(const struct mm_matrix *x, bool transpose, size_t row, size_t col) {
    const float *data = x->data;
    return transpose ? data[col * x->ld + row] : data[row * x->ld + col];
}

static float *element_of_c(size_t row, size_t col) {
    return sample.c + row * sample.product.c.ld + col;
}

static long double exact_element(size_t row, size_t col) {
    const struct mm_product *product = &sample.product;
    long double sum = 0.0L;
    for (size_t depth = 0; depth < product->k; depth++)
        sum += (long double)element_of(&product->a, product->transpose_a, row, depth) *
               element_of(&product->b, product->transpose_b, depth, col);
    return sum;
}

/* Computes C by adding in order in float32. */
static void multiply(void) {
    const struct mm_product *product = &sample.product;
    for (size_t row = 0; row < product->m; row++) {
        for (size_t col = 0; col < product->n; col++) {
            float sum = 0.0F;
            for (size_t depth = 0; depth < product->k; depth++)
                sum += element_of(&product->a, product->transpose_a, row, depth) *
                       element_of(&product->b, product->transpose_b, depth, col);
            *element_of_c(row, col) = sum;
        }
    }
}

/* Fills the matrix with random numbers, and the padding with NaN. */
static void fill(struct mm_matrix *x, float *numbers, uint64_t seed, size_t extra) {
    x->data = numbers;
    x->ld = x->cols + extra;
    for (size_t index = 0; index < NUMBERS; index++)
        numbers[index] = NAN;
    for (size_t row = 0; row < x->rows; row++)
        for (size_t col = 0; col < x->cols; col++)
            numbers[row * x->ld + col] = mm_random_element(seed, row * x->cols + col);
}

/* Bits of `layout`: A is transposed, B is transposed, and A, B and C have padding. */
static void make(size_t m, size_t k, size_t n, unsigned layout) {
    struct mm_product *product = &sample.product;
    const bool transpose_a = (layout & 1) != 0;
    const bool transpose_b = (layout & 2) != 0;
    *product = (struct mm_product){.transpose_a = transpose_a, .transpose_b = transpose_b};
    product->a = mm_matrix_dense(MM_FLOAT32, transpose_a ? k : m, transpose_a ? m : k, NULL);
    product->b = mm_matrix_dense(MM_FLOAT32, transpose_b ? n : k, transpose_b ? k : n, NULL);
    product->c = mm_matrix_dense(MM_FLOAT32, m, n, NULL);
    fill(&product->a, sample.a, 1, (layout & 4) != 0 ? 3 : 0);
    fill(&product->b, sample.b, 2, (layout & 8) != 0 ? 5 : 0);
    fill(&product->c, sample.c, 3, (layout & 16) != 0 ? 1 : 0);
    assert_int_equal(mm_product_conform(MM_MATMUL, product, NULL), MM_OK);
    multiply();
}

static bool is_near(double a, double b) {
    return a == b || fabs(a - b) <= 1e-9 * fabs(a) || (isnan(a) && isnan(b));
}

/* The verdict must not depend on the steps, or on how C is divided. */
static void expect_in_steps(const struct mm_product *product, void *memory,
                            const struct mm_verification *whole) {
    enum { PIECE = 3 };
    struct mm_verification steps = {.is_done = true, .seed = whole->seed};
    size_t done = 0;
    memset(memory, 0xff, mm_verify_bytes(product));
    while (mm_verify_prepare(product, NULL, whole->seed, memory, &done))
        continue;
    for (size_t row = 0; row < product->m; row += PIECE) {
        struct mm_matrix c = product->c;
        c.rows = mm_size_min(PIECE, product->m - row);
        c.data = (char *)c.data + row * c.ld * mm_dtype_bytes(c.dtype);
        mm_verify_rows(product, MM_ROUNDED, &c, row, memory, &steps);
    }
    assert_true(steps.residual == whole->residual && steps.bound == whole->bound && steps.row == whole->row);
    assert_true(steps.rows_checked == whole->rows_checked && steps.rows_unjudged == whole->rows_unjudged);
    assert_true(is_near(mm_squares_root(&steps.error, 1.0), mm_squares_root(&whole->error, 1.0)));
    assert_true(is_near(mm_squares_root(&steps.norm, 1.0), mm_squares_root(&whole->norm, 1.0)));
}

/* The check gets memory of exactly the requested size, so a sanitizer reports accesses outside. */
static struct mm_verification check_product(const struct mm_product *product, uint64_t seed) {
    struct mm_verification verification;
    const size_t bytes = mm_verify_bytes(product);
    void *memory = malloc(bytes);
    assert_non_null(memory);
    memset(memory, 0xff, bytes); /* fills with NaN */
    mm_verify(product, MM_ROUNDED, seed, memory, &verification);
    if (product->k > 0 || product->epilogue.is_set)
        expect_in_steps(product, memory, &verification);
    free(memory);
    assert_true(verification.is_done);
    assert_true(verification.seed == seed);
    assert_int_equal(verification.rows_checked + verification.rows_unjudged, product->m);
    return verification;
}

static struct mm_verification check(uint64_t seed) {
    return check_product(&sample.product, seed);
}

static double sign(uint64_t seed, unsigned vector, size_t col) {
    return (mm_random_bits(seed, col) >> vector & 1) != 0 ? -1.0 : 1.0;
}

static long double plain_residual(size_t row, uint64_t seed, unsigned vector) {
    long double residual = 0.0L;
    for (size_t col = 0; col < sample.product.n; col++)
        residual += (*element_of_c(row, col) - exact_element(row, col)) * sign(seed, vector, col);
    return fabsl(residual);
}

/* Returns the sum of |a|·‖b‖ over a row of A, where b is the row of B that the element a multiplies. */
static double plain_magnitude(size_t row) {
    const struct mm_product *product = &sample.product;
    long double magnitude = 0.0L;
    for (size_t depth = 0; depth < product->k; depth++) {
        long double squares = 0.0L;
        for (size_t col = 0; col < product->n; col++) {
            const long double element = element_of(&product->b, product->transpose_b, depth, col);
            squares += element * element;
        }
        magnitude += fabsl(element_of(&product->a, product->transpose_a, row, depth)) * sqrtl(squares);
    }
    return (double)magnitude;
}

/* Returns the expected bound of a row's residual, without the rounding of float64. */
static double plain_bound(size_t row) {
    const double k = (double)sample.product.k;
    const double root = sqrt((double)sample.product.n);
    const double norm = 2.0 * (k + 8.0) * 0x1p-24 * plain_magnitude(row) + root * k * 0x1p-149;
    return norm * (root < 9.0 ? root : 9.0);
}

/* The residual is the difference of two float64 sums, which are about √n times as large as the magnitude. */
static void expect_plain(const struct mm_verification *verification) {
    const struct mm_product *product = &sample.product;
    const double k = (double)product->k;
    const double n = (double)product->n;
    long double largest = 0.0L;
    for (unsigned vector = 0; vector < MM_VERIFY_VECTORS; vector++) {
        const long double residual = plain_residual(verification->row, verification->seed, vector);
        largest = residual > largest ? residual : largest;
    }
    const double off = fabs(verification->residual - (double)largest);
    assert_true(off <= 4.0 * (n + k + 16.0) * 0x1p-53 * sqrt(n) * plain_magnitude(verification->row));
    const double bound = plain_bound(verification->row);
    assert_true(verification->bound >= bound * (1.0 - 0x1p-40));
    assert_true(verification->bound <= bound * (1.0 + 0x1p-20));
}

/* No other row has a larger residual in relation to its bound. */
static void expect_worst(const struct mm_verification *verification) {
    for (size_t row = 0; row < sample.product.m; row++)
        for (unsigned vector = 0; vector < MM_VERIFY_VECTORS; vector++)
            assert_true((double)plain_residual(row, verification->seed, vector) / plain_bound(row) <=
                        verification->residual / verification->bound + 1e-6);
}

static struct mm_verification expect(uint64_t seed, enum mm_verdict verdict) {
    const struct mm_verification verification = check(seed);
    assert_int_equal(mm_verification_verdict(&verification), verdict);
    return verification;
}

static void clear_c(void) {
    memset(sample.c, 0, sizeof sample.c);
}

static void residual_matches_a_plain_computation(void **state) {
    static const size_t shapes[][3] = {{1, 1, 1},   {1, 70, 1},  {70, 1, 70},  {2, 3, 4},
                                       {33, 17, 5}, {8, 64, 61}, {70, 70, 70}, {1, 2, 70}};
    for (size_t index = 0; index < 32 * COUNT(shapes); index++) {
        const size_t *shape = shapes[index / 32];
        make(shape[0], shape[1], shape[2], (unsigned)index % 32);
        const struct mm_verification verification = expect(index, MM_VERDICT_PASSED);
        expect_plain(&verification);
        expect_worst(&verification);
        assert_int_equal(verification.rows_unjudged, 0);
    }
}

/* Each element in turn gets an error slightly above the bound of its row. */
static void a_single_wrong_element_is_found(void **state) {
    for (unsigned layout = 0; layout < 4; layout++) {
        make(7, 20, 9, layout);
        const double bound = check(5).bound;
        for (size_t at = 0; at < 7 * 9; at++) {
            float *element = element_of_c(at / 9, at % 9);
            const float right = *element;
            *element = right + (at % 9 % 2 == 0 ? 8.0F : -8.0F) * (float)bound;
            const struct mm_verification verification = expect(at, MM_VERDICT_FAILED);
            assert_int_equal(verification.row, at / 9);
            assert_true(verification.residual > 6.0 * bound);
            expect_plain(&verification);
            *element = right;
        }
    }
}

/* A wide row passes if all elements have the largest allowed error. It fails if a single element has three
 * quarters of the sum of these errors. */
static void a_wide_row_is_checked_by_its_sum(void **state) {
    enum { K = 10, WIDE = 512 };
    double sum = 0.0;
    make(1, K, WIDE, 0);
    for (size_t col = 0; col < WIDE; col++) {
        double magnitude = 0.0;
        for (size_t depth = 0; depth < K; depth++)
            magnitude += fabs((double)sample.a[depth] * (double)sample.b[depth * WIDE + col]);
        const double most = 2.0 * (K + 8) * 0x1p-24 * magnitude;
        *element_of_c(0, col) = (float)((double)exact_element(0, col) + 0.999 * most);
        sum += most;
    }
    for (uint64_t seed = 0; seed < 200; seed++)
        expect(seed, MM_VERDICT_PASSED);
    multiply();
    *element_of_c(0, 100) += (float)(0.75 * sum);
    const struct mm_verification verification = expect(7, MM_VERDICT_FAILED);
    assert_true(verification.residual > 0.74 * sum && verification.bound < 0.65 * sum);
}

/* The two errors cancel for half of all random vectors. So four vectors miss them in 1 of 16 checks, about 63
 * of 1000, with a standard deviation of 7.7. */
static void swapped_columns_are_mostly_found(void **state) {
    unsigned missed = 0;
    make(20, 20, 20, 0);
    for (size_t row = 0; row < 20; row++) {
        const float held = *element_of_c(row, 3);
        *element_of_c(row, 3) = *element_of_c(row, 11);
        *element_of_c(row, 11) = held;
    }
    for (uint64_t seed = 0; seed < 1000; seed++) {
        const struct mm_verification verification = check(seed);
        missed += mm_verification_verdict(&verification) == MM_VERDICT_PASSED;
    }
    assert_in_range(missed, 25, 101);
}

static void without_k_c_must_be_zero(void **state) {
    make(3, 0, 4, 0);
    sample.product.a.data = sample.product.b.data = NULL; /* empty matrices need no storage */
    const struct mm_verification verification = expect(7, MM_VERDICT_PASSED);
    assert_true(verification.residual == 0.0 && verification.bound == 0.0);
    assert_int_equal(verification.rows_checked, 3);
    *element_of_c(1, 2) = -0.0F;
    expect(7, MM_VERDICT_PASSED);
    *element_of_c(1, 2) = 0x1p-149F;
    assert_int_equal(expect(7, MM_VERDICT_FAILED).row, 1);
}

/* The operands are finite, but one element of C is not. */
static void infinite_elements_of_c_fail_the_check(void **state) {
    static const float wrong[] = {NAN, INFINITY, -INFINITY};
    for (size_t index = 0; index < 3; index++) {
        make(5, 6, 4, 0);
        *element_of_c(2, 1) = wrong[index];
        const struct mm_verification verification = expect(7, MM_VERDICT_FAILED);
        assert_true(isinf(verification.residual) && isfinite(verification.bound));
        assert_true(verification.row == 2 && verification.rows_unjudged == 0);
    }
}

static void rows_of_a_that_are_not_finite_are_skipped(void **state) {
    make(5, 6, 4, 0);
    sample.a[2 * 6 + 3] = NAN;
    sample.a[4 * 6] = -INFINITY;
    multiply();
    const struct mm_verification verification = expect(7, MM_VERDICT_PASSED);
    assert_true(verification.rows_checked == 3 && verification.rows_unjudged == 2);
    *element_of_c(1, 1) += 1.0F; /* the other rows are still checked */
    assert_int_equal(expect(7, MM_VERDICT_FAILED).row, 1);
}

/* 3e38·10 overflows, so the row is skipped if C is not finite. A finite C is wrong if nothing cancels. */
static void rows_that_may_overflow_float32_are_skipped(void **state) {
    make(2, 2, 1, 0);
    sample.a[0] = 3e38F;
    sample.a[1] = -3e38F;
    sample.b[0] = sample.b[1] = 10.0F;
    multiply();
    assert_true(isnan(*element_of_c(0, 0)));
    assert_int_equal(expect(7, MM_VERDICT_PASSED).rows_unjudged, 1);
    *element_of_c(0, 0) = 0.0F;
    assert_int_equal(expect(7, MM_VERDICT_PASSED).rows_unjudged, 0);
    sample.a[1] = 0.0F;
    *element_of_c(0, 0) = FLT_MAX;
    expect(7, MM_VERDICT_FAILED);
}

/* Products of the smallest numbers underflow. Each product may lose half of the smallest number. */
static void underflowing_products_pass(void **state) {
    make(4, 5, 6, 0);
    for (size_t index = 0; index < NUMBERS; index++) {
        sample.a[index] *= 0x1p-74F;
        sample.b[index] *= 0x1p-75F;
    }
    multiply();
    expect(7, MM_VERDICT_PASSED);
    clear_c();
    expect(7, MM_VERDICT_PASSED);
}

/* Returns ‖C − A·B‖ / ‖A·B‖, computed element by element. */
static double plain_error(void) {
    const struct mm_product *product = &sample.product;
    long double errors = 0.0L;
    long double norm = 0.0L;
    for (size_t row = 0; row < product->m; row++) {
        for (size_t col = 0; col < product->n; col++) {
            const long double exact = exact_element(row, col);
            const long double error = *element_of_c(row, col) - exact;
            errors += error * error;
            norm += exact * exact;
        }
    }
    return (double)sqrtl(errors / norm);
}

static double relative_error(uint64_t seed) {
    const struct mm_verification verification = check(seed);
    return mm_verification_relative_error(&verification);
}

static void scale(float factor) {
    for (size_t row = 0; row < sample.product.m; row++)
        for (size_t col = 0; col < sample.product.n; col++)
            *element_of_c(row, col) *= factor;
}

/* The sum of 160 squares has a standard deviation of a ninth of its mean, so the limits are wide. */
static void relative_error_is_estimated(void **state) {
    for (unsigned layout = 0; layout < 32; layout++) {
        make(40, 30, 50, layout);
        const double exact = plain_error();
        assert_true(exact > 1e-8 && exact < 3e-7);
        assert_true(relative_error(layout) > 0.7 * exact && relative_error(layout) < 1.42 * exact);
        scale(1.001F);
        assert_true(fabs(relative_error(layout) - 1e-3) < 1e-6);
        scale(0.0F);
        assert_true(relative_error(layout) == 1.0);
    }
    make(5, 7, 9, 0);
    *element_of_c(3, 3) = NAN;
    assert_true(isinf(relative_error(7)));
    sample.a[3 * sample.product.a.ld] = NAN; /* so this row is not checked */
    assert_true(relative_error(7) < 3e-7);
    make(3, 0, 5, 0);
    assert_true(relative_error(7) == 0.0);
    *element_of_c(1, 1) = 1.0F;
    assert_true(isinf(relative_error(7)));
}

enum { SMALL_MAX = 40, ELEMENTS = SMALL_MAX * (SMALL_MAX + 3) };

static struct {
    struct mm_product product;
    uint64_t a[ELEMENTS], b[ELEMENTS], c[ELEMENTS], addend[ELEMENTS], bias[ELEMENTS];
} typed;

static double number_of(enum mm_dtype dtype, uint64_t seed, size_t index) {
    if (mm_dtype_is_float(dtype)) /* with all bits of a float64 */
        return (double)(int64_t)mm_random_bits(seed, index) * 0x1p-63;
    const int number = (int)(mm_random_bits(seed, index) >> 57);
    return dtype == MM_BOOL ? number & 1 : number;
}

static void fill_typed(struct mm_matrix *x, void *elements, uint64_t seed) {
    x->data = elements;
    x->ld = x->cols + 3;
    memset(elements, 0xff, sizeof typed.a);
    for (size_t row = 0; row < x->rows; row++)
        for (size_t col = 0; col < x->cols; col++)
            mm_dtype_put(x->dtype, elements, row * x->ld + col,
                         number_of(x->dtype, seed, row * x->cols + col));
}

static void compute_typed(void) {
    assert_int_equal(mm_cpu_backend.variants[0].launch[typed.product.a.dtype](&typed.product, NULL, NULL),
                     MM_OK);
}

/* D is -3·A·B + 5·addend + bias. */
static void add_terms(bool transpose) {
    struct mm_product *product = &typed.product;
    const enum mm_dtype sum = mm_dtype_sum(product->a.dtype), dtype = product->c.dtype;
    const size_t m = product->m, n = product->n;
    product->epilogue =
        (struct mm_epilogue){.is_set = true, .alpha = mm_scale_of(sum, -3), .beta = mm_scale_of(sum, 5)};
    product->addend = mm_matrix_dense(dtype, transpose ? n : m, transpose ? m : n, NULL);
    product->transpose_addend = transpose;
    product->bias = mm_matrix_dense(dtype, 1, n, NULL);
    fill_typed(&product->addend, typed.addend, 4);
    fill_typed(&product->bias, typed.bias, 5);
}

/* Bits of `layout`: A is transposed, B is transposed, and the product has an epilogue. */
static void make_typed(enum mm_dtype dtype, enum mm_dtype c_dtype, const size_t *shape, unsigned layout) {
    struct mm_product *product = &typed.product;
    const size_t m = shape[0], k = shape[1], n = shape[2];
    *product = (struct mm_product){.transpose_a = (layout & 1) != 0, .transpose_b = (layout & 2) != 0};
    product->a = mm_matrix_dense(dtype, product->transpose_a ? k : m, product->transpose_a ? m : k, NULL);
    product->b = mm_matrix_dense(dtype, product->transpose_b ? n : k, product->transpose_b ? k : n, NULL);
    product->c = mm_matrix_dense(c_dtype, m, n, NULL);
    fill_typed(&product->a, typed.a, 1);
    fill_typed(&product->b, typed.b, 2);
    fill_typed(&product->c, typed.c, 3);
    assert_int_equal(mm_product_conform(MM_MATMUL, product, NULL), MM_OK);
    if ((layout & 4) != 0)
        add_terms((layout & 1) != 0);
    compute_typed();
}

static struct mm_verification expect_typed(uint64_t seed, enum mm_verdict verdict) {
    const struct mm_verification verification = check_product(&typed.product, seed);
    assert_int_equal(mm_verification_verdict(&verification), verdict);
    return verification;
}

/* Changes an element of C by slightly more than the bound, or one bit of an integer. */
static void spoil_typed(size_t at, double bound) {
    const enum mm_dtype dtype = typed.product.c.dtype;
    const size_t bytes = mm_dtype_bytes(dtype);
    const double value = mm_dtype_get(dtype, typed.c, at);
    if (mm_dtype_is_float(dtype)) /* rows of narrow results have different bounds */
        mm_dtype_put(dtype, typed.c, at, value + copysign(4.0 * bound + 0.1 * fabs(value), value));
    else if (at % 2 == 0)
        ((unsigned char *)typed.c)[at * bytes] ^= 1;
    else
        ((unsigned char *)typed.c)[at * bytes + bytes - 1] ^= 0x80;
}

static void products_of_every_type_are_checked(void **state) {
    static const size_t shapes[][3] = {{1, 1, 1}, {7, 20, 9}, {40, 33, 1}, {1, 40, 40}, {30, 3, 40}};
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
        for (enum mm_dtype c_dtype = 0; c_dtype < MM_DTYPE_COUNT; c_dtype++) {
            if ((mm_dtype_results(dtype) & MM_DTYPE_BIT(c_dtype)) == 0)
                continue;
            for (unsigned index = 0; index < 8 * COUNT(shapes); index++) {
                const size_t *shape = shapes[index / 8];
                const size_t row = shape[0] / 2, col = shape[2] / 3;
                make_typed(dtype, c_dtype, shape, index % 8);
                const double bound = expect_typed(index, MM_VERDICT_PASSED).bound;
                assert_int_equal(mm_dtype_is_float(dtype), bound > 0.0);
                spoil_typed(row * typed.product.c.ld + col, bound);
                const struct mm_verification verification = expect_typed(index, MM_VERDICT_FAILED);
                assert_int_equal(verification.row, row);
                assert_true(verification.rows_unjudged == 0);
                assert_true(mm_verification_relative_error(&verification) > 0.0);
            }
        }
    }
}

static double *doubles(void *elements) {
    return elements;
}

/* The check finds an error slightly above the bound. A check in plain float64 would be too inaccurate to find
 * it. */
static void float64s_are_checked_in_twice_the_precision(void **state) {
    static const size_t shape[] = {20, 40, 40};
    make_typed(MM_FLOAT64, MM_FLOAT64, shape, 0);
    for (size_t row = 0; row < 20; row++) { /* C is correctly rounded */
        for (size_t col = 0; col < 40; col++) {
            long double sum = 0.0L;
            for (size_t depth = 0; depth < 40; depth++)
                sum += (long double)doubles(typed.a)[row * 43 + depth] * doubles(typed.b)[depth * 43 + col];
            doubles(typed.c)[row * 43 + col] = (double)sum;
        }
    }
    const struct mm_verification exact = expect_typed(3, MM_VERDICT_PASSED);
    assert_true(exact.bound < 9.0 * 2.0 * 48.0 * 0x1p-53 * 40.0 * 6.4);
    const double error = mm_verification_relative_error(&exact);
    assert_true(error > 0x1p-56 && error < 0x1p-53); /* the error of rounding alone */
    doubles(typed.c)[5 * 43 + 7] += 4.0 * exact.bound;
    assert_int_equal(expect_typed(3, MM_VERDICT_FAILED).row, 5);
}

/* The squares of these numbers underflow or overflow. */
static void float64s_of_extreme_sizes_are_checked(void **state) {
    static const size_t shape[] = {6, 10, 8};
    static const double sizes[][2] = {
        {0x1p900, 0x1p-900}, {0x1p-900, 0x1p900}, {0x1p510, 0x1p510}, {0x1p-500, 0x1p-500}};
    for (size_t which = 0; which < COUNT(sizes); which++) {
        make_typed(MM_FLOAT64, MM_FLOAT64, shape, 0);
        for (size_t index = 0; index < ELEMENTS; index++) {
            doubles(typed.a)[index] *= sizes[which][0];
            doubles(typed.b)[index] *= sizes[which][1];
        }
        compute_typed();
        const struct mm_verification verification = expect_typed(which, MM_VERDICT_PASSED);
        const double error = mm_verification_relative_error(&verification);
        assert_true(verification.rows_checked == 6 && verification.bound > 0.0);
        assert_true(error > 0x1p-58 && error < 0x1p-50);
        doubles(typed.c)[2 * 11 + 1] *= 1.0 + 0x1p-30;
        doubles(typed.c)[2 * 11 + 1] += verification.bound * 4.0;
        assert_int_equal(expect_typed(which, MM_VERDICT_FAILED).row, 2);
    }
    for (size_t index = 0; index < ELEMENTS; index++) {
        doubles(typed.a)[index] *= 0x1p-22;
        doubles(typed.b)[index] *= 0x1p-22; /* products are below the smallest number */
    }
    for (size_t index = 0; index < ELEMENTS; index++)
        doubles(typed.a)[index] *= 0x1p-60;
    compute_typed();
    assert_int_equal(expect_typed(7, MM_VERDICT_PASSED).rows_checked, 6);
}

/* 300·300 is finite in float32 but exceeds float16, so this element of C must be infinite. */
static void a_narrow_result_may_overflow(void **state) {
    static const size_t shape[] = {3, 1, 2};
    make_typed(MM_FLOAT16, MM_FLOAT16, shape, 0);
    mm_dtype_put(MM_FLOAT16, typed.a, typed.product.a.ld, 300.0);
    mm_dtype_put(MM_FLOAT16, typed.b, 0, 300.0);
    compute_typed();
    assert_true(isinf(mm_dtype_get(MM_FLOAT16, typed.c, typed.product.c.ld)));
    assert_int_equal(expect_typed(1, MM_VERDICT_PASSED).rows_unjudged, 1);
    mm_dtype_put(MM_FLOAT16, typed.c, typed.product.c.ld, 65504.0);
    assert_int_equal(expect_typed(1, MM_VERDICT_FAILED).row, 1);
    compute_typed();
    mm_dtype_put(MM_FLOAT16, typed.c, 2 * typed.product.c.ld + 1, (double)INFINITY);
    assert_int_equal(expect_typed(1, MM_VERDICT_FAILED).row, 2);
}

/* An error of one rounding to bfloat16 is allowed. An error of a tenth is not. */
static void rounding_to_the_result_type_is_allowed(void **state) {
    static const size_t shape[] = {5, 30, 1};
    make_typed(MM_BFLOAT16, MM_BFLOAT16, shape, 0);
    for (size_t row = 0; row < 5; row++) {
        const size_t at = row * typed.product.c.ld;
        const double value = mm_dtype_get(MM_BFLOAT16, typed.c, at);
        const struct mm_verification verification = expect_typed(row, MM_VERDICT_PASSED);
        assert_true(verification.bound < 0.02 && verification.bound > 0x1p-10 * 1e-3);
        mm_dtype_put(MM_BFLOAT16, typed.c, at, value + copysign(0.1 + 0.1 * fabs(value), value));
        assert_int_equal(expect_typed(row, MM_VERDICT_FAILED).row, row);
        mm_dtype_put(MM_BFLOAT16, typed.c, at, value);
    }
}

/* For integers the residual counts wrong rows. All vectors miss an error of 2^31 in one of 2^32 checks. */
static void wrong_rows_of_whole_numbers_are_counted(void **state) {
    static const enum mm_dtype dtypes[] = {MM_INT8, MM_UINT8, MM_BOOL, MM_INT32, MM_INT64};
    static const size_t shape[] = {20, 30, 10};
    for (size_t which = 0; which < COUNT(dtypes); which++) {
        make_typed(dtypes[which], mm_dtype_result(dtypes[which]), shape, 0);
        if (mm_dtype_bytes(dtypes[which]) >= 4) { /* random words, whose sums wrap around */
            for (size_t index = 0; index < ELEMENTS; index++) {
                typed.a[index] = mm_random_bits(5, index);
                typed.b[index] = mm_random_bits(6, index);
            }
            compute_typed();
        }
        assert_true(expect_typed(which, MM_VERDICT_PASSED).residual == 0.0);
        const size_t wrong[] = {19, 4, 11, 4};
        for (size_t index = 0; index < COUNT(wrong); index++)
            spoil_typed(wrong[index] * typed.product.c.ld + index, 0.0);
        const struct mm_verification verification = expect_typed(which, MM_VERDICT_FAILED);
        assert_true(verification.residual == 3.0 && verification.bound == 0.0 && verification.row == 4);
        assert_true(verification.rows_checked == 20 && isinf(mm_verification_relative_error(&verification)));
    }
}

/* A row of one element has the bound |alpha|·(2·(k+8)·u·|A||B| + k·t) + 4·u·(|alpha|·|A||B| + |beta·C| +
 * |bias|)
 * + t, plus the rounding of the check in float64. */
static void terms_widen_the_bound(void **state) {
    static const size_t shape[] = {1, 3, 1};
    make_typed(MM_FLOAT32, MM_FLOAT32, shape, 4);
    const struct mm_product *product = &typed.product;
    const double u = 0x1p-24, c = mm_dtype_get(MM_FLOAT32, typed.addend, 0);
    const double bias = mm_dtype_get(MM_FLOAT32, typed.bias, 0);
    double s = 0.0;
    for (size_t depth = 0; depth < 3; depth++)
        s += fabs(mm_dtype_get(MM_FLOAT32, typed.a, depth) *
                  mm_dtype_get(MM_FLOAT32, typed.b, depth * product->b.ld));
    const double bound =
        3.0 * (22.0 * u * s + 3.0 * 0x1p-149) + 4.0 * u * (3.0 * s + 5.0 * fabs(c) + fabs(bias)) + 0x1p-149;
    assert_true(fabs(expect_typed(1, MM_VERDICT_PASSED).bound / bound - 1.0) < 1e-6);
}

static void each_term_is_checked(void **state) {
    static const size_t shape[] = {7, 20, 9};
    for (unsigned layout = 4; layout < 8; layout++) {
        struct mm_product *product = &typed.product;
        make_typed(MM_FLOAT32, MM_FLOAT32, shape, layout);
        product->epilogue.alpha.of_float = -3.001F;
        expect_typed(1, MM_VERDICT_FAILED);
        product->epilogue.alpha.of_float = -3.0F;
        product->epilogue.beta.of_float = 5.001F;
        expect_typed(1, MM_VERDICT_FAILED);
        product->epilogue.beta.of_float = 5.0F;
        expect_typed(1, MM_VERDICT_PASSED);
        mm_dtype_put(MM_FLOAT32, typed.bias, 3, 7.0);
        assert_int_equal(expect_typed(1, MM_VERDICT_FAILED).rows_unjudged, 0);
        compute_typed();
        mm_dtype_put(MM_FLOAT32, typed.addend, 3 * product->addend.ld + 3, (double)NAN);
        assert_int_equal(expect_typed(1, MM_VERDICT_PASSED).rows_unjudged, 1);
    }
}

/* If alpha is 0, the check reads neither A nor B. */
static void without_alpha_the_other_terms_are_checked(void **state) {
    static const size_t shape[] = {7, 20, 9};
    static const enum mm_dtype dtypes[] = {MM_FLOAT32, MM_FLOAT64, MM_INT64};
    for (size_t index = 0; index < COUNT(dtypes); index++) {
        make_typed(dtypes[index], dtypes[index], shape, 4);
        typed.product.epilogue.alpha = mm_scale_of(dtypes[index], 0);
        typed.product.a.data = typed.product.b.data = NULL;
        mm_product_drop_unread(&typed.product);
        compute_typed();
        const double bound = expect_typed(1, MM_VERDICT_PASSED).bound;
        spoil_typed(5, bound);
        expect_typed(1, MM_VERDICT_FAILED);
    }
}

static void each_check_has_other_vectors(void **state) {
    const uint64_t seed = mm_verify_seed();
    assert_true(seed != mm_verify_seed());
}

static void an_empty_product_passes(void **state) {
    const struct mm_verification empty = {.is_done = true};
    assert_int_equal(mm_verification_verdict(&empty), MM_VERDICT_PASSED);
}

RUN_TESTS(residual_matches_a_plain_computation, a_single_wrong_element_is_found,
          a_wide_row_is_checked_by_its_sum, swapped_columns_are_mostly_found, without_k_c_must_be_zero,
          infinite_elements_of_c_fail_the_check, rows_of_a_that_are_not_finite_are_skipped,
          rows_that_may_overflow_float32_are_skipped, underflowing_products_pass, relative_error_is_estimated,
          products_of_every_type_are_checked, float64s_are_checked_in_twice_the_precision,
          float64s_of_extreme_sizes_are_checked, a_narrow_result_may_overflow,
          rounding_to_the_result_type_is_allowed, wrong_rows_of_whole_numbers_are_counted,
          terms_widen_the_bound, each_term_is_checked, without_alpha_the_other_terms_are_checked,
          each_check_has_other_vectors, an_empty_product_passes)
