/* What is right: each element in float64, and the bound that float32 arithmetic has to keep.
 *
 * With u = 2^-24, R the exact sum and S = |A|·|B|: |C − R| ≤ 2(k+8)·u·S + k·2^-149, in any order of
 * summation, with or without fused multiply-add, as long as no partial sum overflows. The reference's
 * own error, k·2^-53·S at most, is 2^-30 of that. Of the products P = (S+R)/2 is the sum of the
 * positive and N = (S−R)/2 of the negative ones, and every partial sum lies between −N and P. So +Inf
 * can only come about where P (with rounding errors) passes the largest float, −Inf where N does, NaN
 * where both do; and once a partial sum is infinite, no finite result is left. Hence a finite C is
 * always held to the bound, and the rest is decided by P and N, without knowing the order. */
#include "tests/kernels/harness.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

/* Multiplications that a reference may cost before it is sampled, and the sample's size. */
enum { WHOLE_COST_MAX = 1 << 25, SAMPLES_INSIDE = 4096, SAMPLES_EACH_EDGE = 128 };

struct expected expected_make(size_t row, size_t col, const float *a, const float *b, size_t b_step,
                              size_t k) {
    struct expected expected = {.row = row, .col = col};
    for (size_t depth = 0; depth < k; depth++) {
        double product = (double)a[depth] * (double)b[depth * b_step];
        expected.sum += product;
        expected.magnitude += fabs(product);
    }
    return expected;
}

static void add(struct reference *reference, const struct operands *operands, size_t row, size_t col) {
    const struct shape *shape = &operands->shape;
    reference->expected[reference->count++] =
        expected_make(row, col, operands->a + row * shape->k, operands->b + col, shape->n, shape->k);
}

static void sample(struct reference *reference, const struct operands *operands, uint64_t seed) {
    struct random random = {random_mix(seed, 0xed6e)};
    size_t m = operands->shape.m;
    size_t n = operands->shape.n;
    for (unsigned index = 0; index < SAMPLES_EACH_EDGE; index++) {
        add(reference, operands, 0, random_below(&random, n));
        add(reference, operands, m - 1, random_below(&random, n));
        add(reference, operands, random_below(&random, m), 0);
        add(reference, operands, random_below(&random, m), n - 1);
    }
    add(reference, operands, m - 1, n - 1);
    for (unsigned index = 0; index < SAMPLES_INSIDE; index++) {
        size_t row = random_below(&random, m);
        add(reference, operands, row, random_below(&random, n));
    }
}

/* What threads share that make every element: each takes the next row. */
struct whole {
    const struct operands *operands;
    struct expected *expected;
    atomic_size_t taken;
};

/* A row of C at a time, since B's rows are read as they lie. */
static void *make_rows(void *data) {
    struct whole *whole = data;
    const struct shape shape = whole->operands->shape;
    double *sums = harness_allocate(2 * shape.n * sizeof *sums);
    double *magnitudes = sums + shape.n;
    size_t row;
    while ((row = atomic_fetch_add_explicit(&whole->taken, 1, memory_order_relaxed)) < shape.m) {
        for (size_t col = 0; col < shape.n; col++)
            sums[col] = magnitudes[col] = 0.0;
        for (size_t depth = 0; depth < shape.k; depth++) {
            const double a = (double)whole->operands->a[row * shape.k + depth];
            const float *b = whole->operands->b + depth * shape.n;
            for (size_t col = 0; col < shape.n; col++) {
                const double product = a * (double)b[col];
                sums[col] += product;
                magnitudes[col] += fabs(product);
            }
        }
        for (size_t col = 0; col < shape.n; col++)
            whole->expected[row * shape.n + col] = (struct expected){row, col, sums[col], magnitudes[col]};
    }
    free(sums);
    return NULL;
}

void reference_make_whole(struct reference *reference, const struct operands *operands, unsigned threads) {
    const struct shape shape = operands->shape;
    *reference = (struct reference){.shape = shape, .count = shape.m * shape.n};
    reference->expected = harness_allocate(reference->count * sizeof *reference->expected);
    struct whole whole = {.operands = operands, .expected = reference->expected};
    pthread_t others[SHARE_THREADS_MAX];
    unsigned started = 0;
    /* A thread that does not start leaves its rows to the rest. */
    while (started + 1 < threads && pthread_create(&others[started], NULL, make_rows, &whole) == 0)
        started++;
    make_rows(&whole);
    for (unsigned index = 0; index < started; index++)
        pthread_join(others[index], NULL);
}

void reference_make(struct reference *reference, const struct operands *operands, uint64_t seed) {
    const struct shape shape = operands->shape;
    const size_t elements = shape.m * shape.n;
    const size_t samples = SAMPLES_INSIDE + 4 * SAMPLES_EACH_EDGE + 1;
    if (elements <= samples || elements * shape.k <= WHOLE_COST_MAX) {
        reference_make_whole(reference, operands, 1);
        return;
    }
    *reference = (struct reference){.shape = shape};
    reference->expected = harness_allocate(samples * sizeof *reference->expected);
    sample(reference, operands, seed);
}

void reference_free(struct reference *reference) {
    free(reference->expected);
    *reference = (struct reference){0};
}

bool reference_judge(const struct expected *expected, size_t k, float value, double *fraction) {
    double relative = 2.0 * ((double)k + 8.0) * 0x1p-24;
    double sum = expected->sum;
    *fraction = 0.0;
    if (isnan(sum))
        return isnan(value);
    if (isinf(sum))
        return (double)value == sum;
    if (!isfinite(value)) {
        double reach = 0.5 * (1.0 + relative);
        bool positive = (expected->magnitude + sum) * reach > (double)FLT_MAX;
        bool negative = (expected->magnitude - sum) * reach > (double)FLT_MAX;
        if (isnan(value))
            return positive && negative;
        return value > 0.0F ? positive : negative;
    }
    double error = fabs((double)value - sum);
    double bound = relative * expected->magnitude + (double)k * 0x1p-149;
    if (error > 0.0)
        *fraction = bound > 0.0 ? error / bound : INFINITY;
    return *fraction <= 1.0;
}

/* Below k·2^-126 what underflows may cost as much as u of |A|·|B|, and past float32's range C is not finite.
 */
static bool has_units(const struct expected *expected, size_t k, float value) {
    return expected->magnitude >= (double)k * 0x1p-126 && expected->magnitude <= (double)FLT_MAX &&
           isfinite(value);
}

void reference_compare(const struct reference *reference, const struct image *c,
                       struct exactness *exactness) {
    const size_t k = reference->shape.k;
    const float *values = c->view.data;
    *exactness = (struct exactness){0};
    for (size_t index = 0; index < reference->count; index++) {
        const struct expected *expected = &reference->expected[index];
        const float value = values[expected->row * c->view.ld + expected->col];
        const double difference = (double)value - expected->sum;
        double fraction;
        if (!reference_judge(expected, k, value, &fraction) && exactness->wrong++ == 0)
            exactness->first_wrong = index;
        if (fraction > exactness->fraction_max)
            exactness->fraction_max = fraction;
        const double unit = fabs(difference) / expected->magnitude * 0x1p24;
        if (unit > exactness->unit_max && has_units(expected, k, value))
            exactness->unit_max = unit;
        exactness->difference_squares += difference * difference;
        exactness->sum_squares += expected->sum * expected->sum;
    }
}
