/* Tests the random projection that checks products: right and wrong products of many shapes. */
#include "gpu/check/projection.h"
#include "tests/unit/unit.h"

#include <math.h>

enum { SEED = 12345 };

/* A product computed in float64, with its projection. */
struct fixture {
    struct mm_random_product product;
    struct mm_projection projection;
    void *memory;
    double norm; /* Frobenius norm of C */
    float *c;
};

static struct fixture fixture;

/* bits of a layout: which operands are stored transposed */
enum { A_TRANSPOSED = 1, B_TRANSPOSED = 2, LAYOUT_COUNT = 4 };

/* Computes C from the random numbers, for this layout. */
static void multiply(unsigned layout) {
    const struct mm_random_product *product = &fixture.product;
    const size_t m = product->m, k = product->k, n = product->n;
    double squares = 0.0;
    for (size_t row = 0; row < m; row++)
        for (size_t col = 0; col < n; col++) {
            double sum = 0.0;
            for (size_t depth = 0; depth < k; depth++) {
                const size_t in_a = layout & A_TRANSPOSED ? depth * m + row : row * k + depth;
                const size_t in_b = layout & B_TRANSPOSED ? col * k + depth : depth * n + col;
                sum += (double)mm_random_element(product->a_seed, in_a) *
                       (double)mm_random_element(product->b_seed, in_b);
            }
            fixture.c[row * n + col] = (float)sum;
            squares += sum * sum;
        }
    fixture.norm = sqrt(squares);
}

/* The projection gets memory of exactly the requested size, so a sanitizer reports accesses outside. */
static struct mm_random_product product_of(enum mm_dtype dtype, const size_t *shape, unsigned layout,
                                           void **memory) {
    const size_t bytes = mm_projection_bytes(dtype, shape[0], shape[1], shape[2]);
    *memory = malloc(bytes);
    assert_non_null(*memory);
    memset(*memory, 0xff, bytes);
    return (struct mm_random_product){.dtype = dtype,
                                      .a_seed = SEED,
                                      .b_seed = mm_random_skip(SEED, shape[0] * shape[1]),
                                      .transpose_a = (layout & A_TRANSPOSED) != 0,
                                      .transpose_b = (layout & B_TRANSPOSED) != 0,
                                      .m = shape[0],
                                      .k = shape[1],
                                      .n = shape[2]};
}

static int drop(void **state) {
    free(fixture.c);
    free(fixture.memory);
    fixture = (struct fixture){.c = NULL};
    return 0;
}

static void make(const size_t *shape, unsigned layout) {
    drop(NULL);
    fixture.product = product_of(MM_FLOAT32, shape, layout, &fixture.memory);
    fixture.c = malloc(shape[0] * shape[2] * sizeof *fixture.c);
    multiply(layout);
    mm_projection_init(&fixture.projection, &fixture.product, fixture.memory);
    while (mm_projection_prepare(&fixture.projection))
        continue;
}

static size_t element_count(void) {
    return fixture.product.m * fixture.product.n;
}

/* Returns the error of C, which the projection reads in parts of `piece` elements. */
static double error_in_pieces(size_t piece) {
    const size_t count = element_count();
    mm_projection_begin(&fixture.projection);
    for (size_t done = 0; done < count; done += piece)
        mm_projection_add(&fixture.projection, MM_FLOAT32, fixture.c + done,
                          count - done < piece ? count - done : piece);
    return mm_projection_error(&fixture.projection);
}

static double error_of(void) {
    return error_in_pieces(element_count());
}

static const size_t shapes[][3] = {{1, 1, 1},    {1, 1, 1000},  {1000, 1, 1},  {1, 1000, 1},  {100, 1, 100},
                                   {2, 50, 3},   {1, 40, 1000}, {7, 3, 97},    {97, 2, 31},   {31, 1, 17},
                                   {15, 15, 17}, {16, 16, 16},  {64, 100, 64}, {200, 30, 150}};
enum { SHAPE_COUNT = COUNT(shapes) };

enum { CASE_COUNT = SHAPE_COUNT * LAYOUT_COUNT };

static void make_case(size_t which) {
    make(shapes[which / LAYOUT_COUNT], (unsigned)(which % LAYOUT_COUNT));
}

/* The reported error of a right product is at most one rounding. */
static void right_products_are_right(void **state) {
    for (size_t which = 0; which < CASE_COUNT; which++) {
        make_case(which);
        const double error = error_of();
        if (!(error < 2.0 * 0x1p-24))
            fail_msg("case %zu: %g", which, error);
        for (size_t piece = 1; piece < 20; piece += 6) /* only the order of addition differs */
            assert_true(fabs(error_in_pieces(piece) - error) < 1e-3 * error + 1e-15);
    }
}

/* An error in a single element is reported with about its relative size. */
static void errors_of_single_elements_are_found(void **state) {
    for (size_t which = 0; which < CASE_COUNT; which++) {
        make_case(which);
        const size_t count = element_count();
        const float off = (float)(fixture.norm / sqrt((double)count));
        const double expected = 1.0 / sqrt((double)count);
        for (size_t at = 0; at < count; at += count / 50 + 1) {
            const float kept = fixture.c[at];
            fixture.c[at] += off;
            const double error = error_of();
            fixture.c[at] = kept;
            if (!(error > 0.3 * expected && error < 3.0 * expected))
                fail_msg("case %zu, element %zu: %g, but %g was expected", which, at, error, expected);
        }
    }
}

/* The reported error of random noise is its size relative to the norm. */
static void noise_is_reported_with_its_size(void **state) {
    for (size_t which = 0; which < CASE_COUNT; which++) {
        make_case(which);
        double squares = 0.0;
        for (size_t at = 0; at < element_count(); at++) {
            const float noise = 0x1p-10F * mm_random_element(99, at);
            fixture.c[at] += noise;
            squares += (double)noise * (double)noise;
        }
        const double expected = sqrt(squares) / fixture.norm;
        const double error = error_of();
        if (!(error > 0.5 * expected && error < 2.0 * expected))
            fail_msg("case %zu: %g, but %g was expected", which, error, expected);
    }
}

static void elements_that_are_not_finite_have_infinite_error(void **state) {
    static const float not_finite[] = {NAN, INFINITY, -INFINITY};
    make((const size_t[]){30, 20, 40}, 0);
    for (size_t which = 0; which < 3; which++) {
        const float kept = fixture.c[617];
        fixture.c[617] = not_finite[which];
        assert_true(error_of() == (double)INFINITY);
        fixture.c[617] = kept;
        assert_true(error_of() < 1e-6);
    }
    fixture.c[0] = INFINITY; /* two errors that could cancel */
    fixture.c[1] = -INFINITY;
    assert_true(error_of() == (double)INFINITY);
}

/* The k·n + m·k elements of B and A are prepared in steps of 2^17, even if a row is longer. */
static void preparation_is_done_in_steps(void **state) {
    static const struct {
        size_t shape[3];
        unsigned steps;
    } cases[] = {{{1024, 512, 1024}, 8},
                 {{16, 16, 1 << 19}, 65},
                 {{16, 1 << 19, 16}, 128},
                 {{1 << 19, 16, 16}, 65},
                 {{4, 4, 4}, 1}};
    for (size_t which = 0; which < LAYOUT_COUNT * COUNT(cases); which++) {
        void *memory = NULL;
        const struct mm_random_product product = product_of(MM_FLOAT32, cases[which / LAYOUT_COUNT].shape,
                                                            (unsigned)(which % LAYOUT_COUNT), &memory);
        struct mm_projection projection;
        unsigned steps = 0;
        mm_projection_init(&projection, &product, memory);
        while (mm_projection_prepare(&projection))
            steps++;
        assert_int_equal(steps, cases[which / LAYOUT_COUNT].steps);
        assert_false(mm_projection_prepare(&projection));
        free(memory);
    }
}

/* Returns ‖C·x − A·B·x‖ / ‖A·B·x‖. If is_wrong, one element of C is changed. */
static double error_of_type(enum mm_dtype dtype, enum mm_dtype c_dtype, bool is_wrong) {
    enum { M = 20, K = 300, N = 30 };
    static uint64_t c[M * N]; /* large enough for any type */
    void *memory;
    const struct mm_random_product product =
        product_of(dtype, (const size_t[]){M, K, N}, A_TRANSPOSED, &memory);
    struct mm_projection projection;
    mm_projection_init(&projection, &product, memory);
    while (mm_projection_prepare(&projection))
        continue;
    for (size_t index = 0; index < M * N; index++) {
        long double sum = 0.0L;
        for (size_t depth = 0; depth < K; depth++)
            sum += (long double)mm_random_number(dtype, product.a_seed, depth * M + index / N) *
                   mm_random_number(dtype, product.b_seed, depth * N + index % N);
        mm_dtype_put(c_dtype, c, index, (double)(is_wrong && index == 333 ? sum + 1.0L : sum));
    }
    mm_projection_begin(&projection);
    for (size_t done = 0; done < M * N; done += 25)
        mm_projection_add(&projection, c_dtype, (const char *)c + done * mm_dtype_bytes(c_dtype), 25);
    free(memory);
    return mm_projection_error(&projection);
}

/* The error of one rounding is about half a unit roundoff. Sums of float8 and float64 may be exact here. */
static void products_of_every_type_are_projected(void **state) {
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        for (enum mm_dtype c_dtype = 0; c_dtype < MM_DTYPE_COUNT; c_dtype++) {
            if ((mm_dtype_results(dtype) & MM_DTYPE_BIT(c_dtype)) == 0)
                continue;
            const double unit = mm_dtype_precision(c_dtype).unit;
            const double error = error_of_type(dtype, c_dtype, false);
            const bool may_be_exact = dtype == MM_FLOAT64 || mm_dtype_bytes(dtype) == 1;
            if (!mm_dtype_is_float(dtype))
                assert_true(error <= 1e-14);
            else if (c_dtype == MM_FLOAT64)
                assert_true(error <= 1e-3 * unit);
            else
                assert_true(error < 0.7 * unit && (may_be_exact || error > 0.1 * unit));
            assert_true(error_of_type(dtype, c_dtype, true) > 2.0 * error + 1e-9);
        }
}

/* A bool product can consist of zeros only, so its norm can be 0. */
static void product_of_zeros_is_checked(void **state) {
    const size_t shape[] = {1, 1, 1};
    const int32_t results[] = {0, 1};
    struct mm_projection projection;
    void *memory;
    struct mm_random_product product = product_of(MM_BOOL, shape, 0, &memory);
    while (mm_random_MM_BOOL(product.a_seed, 0) != 0)
        product.a_seed++;
    mm_projection_init(&projection, &product, memory);
    while (mm_projection_prepare(&projection)) {
    }
    for (size_t index = 0; index < COUNT(results); index++) {
        mm_projection_begin(&projection);
        mm_projection_add(&projection, MM_INT32, &results[index], 1);
        const double error = mm_projection_error(&projection);
        assert_true(index == 0 ? error == 0.0 : isinf(error));
    }
    free(memory);
}

RUN_TESTS_BETWEEN(NULL, drop, right_products_are_right, errors_of_single_elements_are_found,
                  noise_is_reported_with_its_size, elements_that_are_not_finite_have_infinite_error,
                  preparation_is_done_in_steps, products_of_every_type_are_projected,
                  product_of_zeros_is_checked)
