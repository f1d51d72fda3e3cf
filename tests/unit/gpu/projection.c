/* Projections of products, right and wrong in one place or another, of shapes thick and thin. */
#include "gpu/projection.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEED = 12345 };

/* A product, computed with care, and its projection, prepared. */
struct fixture {
    struct mm_random_product product;
    struct mm_projection projection;
    void *memory;
    double norm; /* of C */
    float *c;
};

/* Which operands are stored transposed. */
enum { A_TRANSPOSED = 1, B_TRANSPOSED = 2, LAYOUT_COUNT = 4 };

/* Computes C of the streams, read in this layout. */
static void multiply(struct fixture *fixture, unsigned layout) {
    const struct mm_random_product *product = &fixture->product;
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
            fixture->c[row * n + col] = (float)sum;
            squares += sum * sum;
        }
    fixture->norm = sqrt(squares);
}

static void make(struct fixture *fixture, size_t m, size_t k, size_t n, unsigned layout) {
    size_t bytes = 0;
    fixture->product = (struct mm_random_product){.a_seed = SEED,
                                                  .b_seed = mm_random_skip(SEED, m * k),
                                                  .transpose_a = (layout & A_TRANSPOSED) != 0,
                                                  .transpose_b = (layout & B_TRANSPOSED) != 0,
                                                  .m = m,
                                                  .k = k,
                                                  .n = n};
    assert_true(mm_projection_bytes(m, k, n, &bytes));
    fixture->memory = malloc(bytes); /* exactly these, for the sanitizer to see */
    fixture->c = malloc(m * n * sizeof *fixture->c);
    multiply(fixture, layout);
    memset(fixture->memory, 0xff, bytes);
    mm_projection_init(&fixture->projection, &fixture->product, fixture->memory);
    while (mm_projection_prepare(&fixture->projection))
        continue;
}

static void drop(struct fixture *fixture) {
    free(fixture->c);
    free(fixture->memory);
}

/* What is said of C as it is now, read in pieces of so many elements. */
static double error_in_pieces(struct fixture *fixture, size_t piece) {
    const size_t count = fixture->product.m * fixture->product.n;
    mm_projection_begin(&fixture->projection);
    for (size_t done = 0; done < count; done += piece)
        mm_projection_take(&fixture->projection, fixture->c + done,
                           count - done < piece ? count - done : piece);
    return mm_projection_error(&fixture->projection);
}

static double error_of(struct fixture *fixture) {
    return error_in_pieces(fixture, fixture->product.m * fixture->product.n);
}

static const size_t shapes[][3] = {{1, 1, 1},    {1, 1, 1000},  {1000, 1, 1},  {1, 1000, 1},  {100, 1, 100},
                                   {2, 50, 3},   {1, 40, 1000}, {7, 3, 97},    {97, 2, 31},   {31, 1, 17},
                                   {15, 15, 17}, {16, 16, 16},  {64, 100, 64}, {200, 30, 150}};
enum { SHAPE_COUNT = sizeof shapes / sizeof shapes[0] };

/* Every shape in every layout. */
enum { CASE_COUNT = SHAPE_COUNT * LAYOUT_COUNT };

static void make_case(struct fixture *fixture, size_t which) {
    const size_t *shape = shapes[which / LAYOUT_COUNT];
    make(fixture, shape[0], shape[1], shape[2], (unsigned)(which % LAYOUT_COUNT));
}

/* Rounded once, an element is off by u of itself at most; and there is no shape for which that looks like
 * more by chance. */
static void right_products_are_right(void **state) {
    (void)state;
    for (size_t which = 0; which < CASE_COUNT; which++) {
        struct fixture fixture;
        make_case(&fixture, which);
        const double error = error_of(&fixture);
        if (!(error < 2.0 * 0x1p-24))
            fail_msg("case %zu: %g", which, error);
        for (size_t piece = 1; piece < 20; piece += 6) /* but for the order in which it is added */
            assert_true(fabs(error_in_pieces(&fixture, piece) - error) < 1e-3 * error + 1e-15);
        drop(&fixture);
    }
}

/* Each element in turn is off by as much as an element is on average: the weight that it has lies between 1/2
 * and 1, and that of the norm, which is a sum, does about the same. */
static void single_elements_show(void **state) {
    (void)state;
    for (size_t which = 0; which < CASE_COUNT; which++) {
        struct fixture fixture;
        make_case(&fixture, which);
        const size_t count = fixture.product.m * fixture.product.n;
        const float off = (float)(fixture.norm / sqrt((double)count));
        const double expected = 1.0 / sqrt((double)count);
        for (size_t at = 0; at < count; at += count / 50 + 1) {
            const float kept = fixture.c[at];
            fixture.c[at] += off;
            const double error = error_of(&fixture);
            fixture.c[at] = kept;
            if (!(error > 0.3 * expected && error < 3.0 * expected))
                fail_msg("case %zu, element %zu: %g, but %g was expected", which, at, error, expected);
        }
        drop(&fixture);
    }
}

/* Noise all over shows as what it is, relative to the norm. */
static void noise_is_told_by_its_size(void **state) {
    (void)state;
    for (size_t which = 0; which < CASE_COUNT; which++) {
        struct fixture fixture;
        make_case(&fixture, which);
        double squares = 0.0;
        for (size_t at = 0; at < fixture.product.m * fixture.product.n; at++) {
            const float noise = 0x1p-10F * mm_random_element(99, at);
            fixture.c[at] += noise;
            squares += (double)noise * (double)noise;
        }
        const double expected = sqrt(squares) / fixture.norm;
        const double error = error_of(&fixture);
        if (!(error > 0.5 * expected && error < 2.0 * expected))
            fail_msg("case %zu: %g, but %g was expected", which, error, expected);
        drop(&fixture);
    }
}

/* The same streams, read as another layout, are another product; but for those that make no difference, of an
 * operand of one row or column. */
static void other_layouts_show(void **state) {
    (void)state;
    for (size_t which = 0; which < CASE_COUNT; which++) {
        const unsigned expected = (unsigned)(which % LAYOUT_COUNT);
        const size_t *shape = shapes[which / LAYOUT_COUNT];
        const bool a_differs = shape[0] > 1 && shape[1] > 1;
        const bool b_differs = shape[1] > 1 && shape[2] > 1;
        struct fixture fixture;
        make_case(&fixture, which);
        for (unsigned computed = 0; computed < LAYOUT_COUNT; computed++) {
            const unsigned differs = computed ^ expected;
            const bool is_other =
                ((differs & A_TRANSPOSED) && a_differs) || ((differs & B_TRANSPOSED) && b_differs);
            multiply(&fixture, computed);
            const double error = error_of(&fixture);
            if (is_other ? !(error > 0.1) : !(error < 2.0 * 0x1p-24))
                fail_msg("shape %zu, layout %u for %u: %g", which / LAYOUT_COUNT, computed, expected, error);
        }
        drop(&fixture);
    }
}

static void swapped_columns_show(void **state) {
    enum { M = 20, K = 24, N = 18 };
    struct fixture fixture;
    (void)state;
    make(&fixture, M, K, N, 0);
    for (size_t left = 0; left < N; left++)
        for (size_t right = left + 1; right < N; right++)
            for (int there_and_back = 0; there_and_back < 2; there_and_back++) {
                for (size_t row = 0; row < M; row++) {
                    const float kept = fixture.c[row * N + left];
                    fixture.c[row * N + left] = fixture.c[row * N + right];
                    fixture.c[row * N + right] = kept;
                }
                const double error = error_of(&fixture);
                if ((error > 1e-4) != (there_and_back == 0))
                    fail_msg("columns %zu and %zu: %g", left, right, error);
            }
    drop(&fixture);
}

static void what_is_not_finite_is_infinitely_wrong(void **state) {
    static const float not_finite[] = {NAN, INFINITY, -INFINITY};
    struct fixture fixture;
    (void)state;
    make(&fixture, 30, 20, 40, 0);
    for (size_t which = 0; which < 3; which++) {
        const float kept = fixture.c[617];
        fixture.c[617] = not_finite[which];
        assert_true(error_of(&fixture) == (double)INFINITY);
        fixture.c[617] = kept;
        assert_true(error_of(&fixture) < 1e-6);
    }
    fixture.c[0] = INFINITY; /* two that would cancel each other */
    fixture.c[1] = -INFINITY;
    assert_true(error_of(&fixture) == (double)INFINITY);
    drop(&fixture);
}

static void memory_is_told_of_every_shape(void **state) {
    /* 8·(m·groups + k) + 4·n, where there are 16 groups or more for each row or column that A has. */
    const size_t huge = (size_t)1 << 28;
    size_t bytes = 77;
    (void)state;
    const struct {
        size_t m, k, n, bytes;
    } cases[] = {
        {1024, 1024, 1024, 8 * 2048 + 4 * 1024},
        {16, 16, 100, 8 * 32 + 400},
        {15, 16, 100, 8 * (15 * 2 + 16) + 400},
        {1, 7, 1000, 8 * (17 + 7) + 4000}, /* of 62 columns, which leave 8 */
        {1000, 1, 16, 8 * (16000 + 1) + 64},
        {1000, 1, 31, 8 * (31000 + 1) + 124},
        {huge, 1, 1, 8 * (huge + 1) + 4},
        {1, huge, 1, 8 * (1 + huge) + 4},
        {1, 1, huge, 8 * (16 + 1) + 4 * huge},
        {((size_t)1 << 61) - 3, 1, 1, SIZE_MAX - 8 - 3},
    };
    for (size_t which = 0; which < sizeof cases / sizeof cases[0]; which++) {
        assert_true(mm_projection_bytes(cases[which].m, cases[which].k, cases[which].n, &bytes));
        assert_int_equal(bytes, cases[which].bytes);
    }
    bytes = 77;
    assert_false(mm_projection_bytes((size_t)1 << 61, 1, 1, &bytes));
    assert_false(mm_projection_bytes(1, (size_t)1 << 61, 1, &bytes));
    assert_false(mm_projection_bytes(1, 1, (size_t)1 << 62, &bytes));
    assert_false(mm_projection_bytes((size_t)1 << 60, (size_t)1 << 60, 1, &bytes));
    assert_false(mm_projection_bytes((size_t)1 << 60, 1, 16, &bytes));
    assert_false(mm_projection_bytes(SIZE_MAX, SIZE_MAX, SIZE_MAX, &bytes));
    assert_int_equal(bytes, 77);
}

/* k·n + m·k numbers in steps of 2^17; however long a row is, it is no step of its own. */
static void preparing_is_done_in_steps(void **state) {
    static const struct {
        size_t m, k, n;
        unsigned steps;
    } shapes_of_steps[] = {{1024, 512, 1024, 8},
                           {16, 16, 1 << 19, 65},
                           {16, 1 << 19, 16, 128},
                           {1 << 19, 16, 16, 65},
                           {4, 4, 4, 1}};
    enum { STEP_CASES = LAYOUT_COUNT * sizeof shapes_of_steps / sizeof shapes_of_steps[0] };
    (void)state;
    for (size_t which = 0; which < STEP_CASES; which++) {
        const size_t shape = which / LAYOUT_COUNT;
        const struct mm_random_product product = {.a_seed = SEED,
                                                  .b_seed = SEED + 1,
                                                  .transpose_a = (which & A_TRANSPOSED) != 0,
                                                  .transpose_b = (which & B_TRANSPOSED) != 0,
                                                  .m = shapes_of_steps[shape].m,
                                                  .k = shapes_of_steps[shape].k,
                                                  .n = shapes_of_steps[shape].n};
        struct mm_projection projection;
        size_t bytes = 0;
        unsigned steps = 0;
        assert_true(mm_projection_bytes(product.m, product.k, product.n, &bytes));
        void *memory = malloc(bytes);
        mm_projection_init(&projection, &product, memory);
        while (mm_projection_prepare(&projection))
            steps++;
        assert_int_equal(steps, shapes_of_steps[shape].steps);
        assert_false(mm_projection_prepare(&projection));
        free(memory);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_products_are_right),
        cmocka_unit_test(single_elements_show),
        cmocka_unit_test(noise_is_told_by_its_size),
        cmocka_unit_test(other_layouts_show),
        cmocka_unit_test(swapped_columns_show),
        cmocka_unit_test(what_is_not_finite_is_infinitely_wrong),
        cmocka_unit_test(memory_is_told_of_every_shape),
        cmocka_unit_test(preparing_is_done_in_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
