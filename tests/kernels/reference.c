/* Computes the expected elements of C, in float64 or modulo 2^64, and the allowed error. The error of float32
 * sums is at most 2(k+8)·u·|A|·|B| + k·2^-149 in any order, with u = 2^-24. The sums for float64 use twice
 * the precision (T. Ogita, S. Rump, S. Oishi: Accurate sum and dot product, 2005). Inf is allowed only if the
 * sum of the positive or of the negative products may overflow. */
#include "tests/kernels/harness.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Larger products are sampled, because computing all elements takes too long. */
enum { WHOLE_COST_MAX = 1 << 25, SAMPLES_INSIDE = 4096, SAMPLES_EACH_EDGE = 128 };

/* Sums for adjacent elements in a row of C. There is one array for each number in struct expected. */
struct sums {
    double *sum;
    double *low;
    double *magnitude;
    uint64_t *whole;
};

/* Adds in twice the precision: `low` sums the rounding errors of `sum`. */
static void add_precisely(const struct sums *sums, double a, const union number *b, size_t count) {
    for (size_t col = 0; col < count; col++) {
        const double product = a * b[col].real;
        const double sum = sums->sum[col] + product;
        const double added = sum - sums->sum[col];
        const double off_sum = (sums->sum[col] - (sum - added)) + (product - added);
        sums->low[col] += off_sum + fma(a, b[col].real, -product);
        sums->sum[col] = sum;
        sums->magnitude[col] += fabs(product);
    }
}

static void add_products(const struct sums *sums, enum mm_dtype dtype, union number a, const union number *b,
                         size_t count) {
    if (dtype == MM_FLOAT64) {
        add_precisely(sums, a.real, b, count);
    } else if (mm_dtype_is_float(dtype)) {
        for (size_t col = 0; col < count; col++) {
            const double product = a.real * b[col].real; /* exact in float64 */
            sums->sum[col] += product;
            sums->magnitude[col] += fabs(product);
        }
    } else {
        for (size_t col = 0; col < count; col++)
            sums->whole[col] += a.whole * b[col].whole;
    }
}

/* Computes one expected element after multiplying A by `scale`. */
static struct expected make_scaled(const struct operands *operands, size_t row, size_t col, double scale) {
    const struct shape *shape = &operands->shape;
    struct expected expected = {.row = row, .col = col, .scale = scale, .growth = 1.0};
    const struct sums sums = {&expected.sum, &expected.low, &expected.magnitude, &expected.whole};
    for (size_t depth = 0; depth < shape->k; depth++) {
        union number a = operands->a.numbers[row * shape->k + depth];
        if (scale != 1.0)
            a.real *= scale;
        add_products(&sums, operands->dtype, a, &operands->b.numbers[depth * shape->n + col], 1);
    }
    return expected;
}

/* If the sum of the element overflows float64, computes the element again with scaled numbers. */
static struct expected settle(const struct operands *operands, const struct expected *expected) {
    if (operands->dtype == MM_FLOAT64 && expected->scale == 1.0 && !isfinite(expected->magnitude))
        return make_scaled(operands, expected->row, expected->col, 0x1p-100);
    struct expected settled = *expected;
    const enum mm_dtype c_dtype = mm_dtype_result(operands->dtype);
    if (!mm_dtype_is_float(c_dtype))
        settled.sum = mm_dtype_get(c_dtype, &settled.whole, 0);
    return settled;
}

static void add(struct reference *reference, const struct operands *operands, size_t row, size_t col) {
    const struct expected expected = make_scaled(operands, row, col, 1.0);
    reference->expected[reference->count++] = settle(operands, &expected);
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

/* The threads that compute all elements share this. Each thread repeatedly computes the next row. */
struct whole {
    const struct operands *operands;
    struct expected *expected;
    atomic_size_t next_row;
};

/* Computes whole rows of C, so it reads rows of B, which are contiguous in memory. */
static void *make_rows(void *data) {
    struct whole *whole = data;
    const struct operands *operands = whole->operands;
    const struct shape shape = operands->shape;
    const size_t bytes = shape.n * sizeof(double);
    double *memory = harness_allocate(4 * bytes);
    const struct sums sums = {memory, memory + shape.n, memory + 2 * shape.n,
                              (uint64_t *)(void *)(memory + 3 * shape.n)};
    size_t row;
    while ((row = atomic_fetch_add_explicit(&whole->next_row, 1, memory_order_relaxed)) < shape.m) {
        memset(memory, 0, 4 * bytes);
        for (size_t depth = 0; depth < shape.k; depth++)
            add_products(&sums, operands->dtype, operands->a.numbers[row * shape.k + depth],
                         operands->b.numbers + depth * shape.n, shape.n);
        for (size_t col = 0; col < shape.n; col++) {
            const struct expected expected = {
                row, col, sums.sum[col], sums.low[col], sums.magnitude[col], 1.0, sums.whole[col], 1.0, 0.0};
            whole->expected[row * shape.n + col] = settle(operands, &expected);
        }
    }
    free(memory);
    return NULL;
}

void reference_make_whole(struct reference *reference, const struct operands *operands, unsigned threads) {
    const struct shape shape = operands->shape;
    *reference = (struct reference){.shape = shape, .dtype = operands->dtype, .count = shape.m * shape.n};
    reference->expected = harness_allocate(reference->count * sizeof *reference->expected);
    struct whole whole = {.operands = operands, .expected = reference->expected};
    pthread_t others[SHARE_THREADS_MAX];
    unsigned started = 0;
    /* If a thread cannot be started, other threads compute its rows. */
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
    *reference = (struct reference){.shape = shape, .dtype = operands->dtype};
    reference->expected = harness_allocate(samples * sizeof *reference->expected);
    sample(reference, operands, seed);
}

void reference_free(struct reference *reference) {
    free(reference->expected);
    *reference = (struct reference){0};
}

/* Returns the factor of |A|·|B| in the allowed error of a sum. Tensor cores truncate sums instead of rounding
 * them. With float8 they lose more: four times they truncate 33 addends at 2^-13 of the largest addend,
 * before float32 gets the sum. */
static double relative_of(enum mm_dtype dtype, size_t k, double unit, enum mm_arithmetic by) {
    const double v = 0x1p-11; /* relative error of rounding to tf32 */
    const double relative = (by == MM_ROUNDED ? 2.0 : 4.0) * ((double)k + 8.0) * unit;
    if (by == MM_OF_TF32)
        return 2.0 * v + v * v + relative;
    return by == MM_CUT_OFF && mm_dtype_bytes(dtype) == 1 ? fmax(relative, 0x1p-6) : relative;
}

struct arithmetic arithmetic_of(enum mm_dtype dtype, enum mm_dtype c_dtype, size_t k, enum mm_arithmetic by) {
    const enum mm_dtype sum_dtype = mm_dtype_sum(dtype);
    const struct mm_precision sum = mm_dtype_precision(sum_dtype);
    const struct mm_precision c = mm_dtype_precision(c_dtype);
    struct arithmetic arithmetic = {
        .sum_unit = sum.unit,
        .sum_normal = 0.5 * (sum.least / sum.unit),
        .relative = relative_of(dtype, k, sum.unit, by),
        .absolute = (double)k * sum.least,
        .sum_largest = sum.largest,
        .past = INFINITY,
    };
    if (c_dtype != sum_dtype) {
        arithmetic.unit = c.unit;
        arithmetic.step = 0.5 * c.least;
        /* This number is half a rounding step above the largest number, so it rounds to infinity. */
        arithmetic.past = c.largest * ((1.0 - 0.5 * c.unit) / (1.0 - c.unit));
    }
    return arithmetic;
}

/* Returns whether the sum of the positive products may overflow. With −R as `sum`, checks negative
 * products. */
static bool may_overflow(const struct expected *expected, const struct arithmetic *arithmetic, double sum) {
    const double reach = 0.5 * expected->magnitude + 0.5 * sum;
    return reach * (1.0 + arithmetic->relative) > arithmetic->sum_largest * expected->scale;
}

bool reference_check(const struct expected *expected, const struct arithmetic *arithmetic, double value,
                     double *fraction) {
    const double sum = expected->sum;
    const double of_sum = arithmetic->relative * expected->magnitude + arithmetic->absolute * expected->scale;
    const double e = expected->growth * of_sum + expected->extra;
    *fraction = 0.0;
    if (isnan(sum))
        return isnan(value);
    if (isinf(sum))
        return value == sum;
    if (isnan(value))
        return may_overflow(expected, arithmetic, sum) && may_overflow(expected, arithmetic, -sum);
    if (isinf(value)) {
        const double towards = value > 0.0 ? sum : -sum;
        return may_overflow(expected, arithmetic, towards) ||
               towards + e >= arithmetic->past * expected->scale;
    }
    const double error = fabs((value * expected->scale - sum) - expected->low);
    const double bound = e + arithmetic->unit * (fabs(sum) + e) + arithmetic->step * expected->scale;
    if (error > 0.0)
        *fraction = bound > 0.0 ? error / bound : INFINITY;
    return *fraction <= 1.0;
}

/* Returns whether the error can be measured in units of roundoff. Near underflow and overflow it cannot. */
static bool has_units(const struct expected *expected, const struct arithmetic *arithmetic, size_t k,
                      double value) {
    return expected->scale == 1.0 && expected->magnitude >= (double)k * arithmetic->sum_normal &&
           expected->magnitude <= arithmetic->sum_largest && isfinite(value);
}

static void compare_real(const struct expected *expected, const struct arithmetic *arithmetic, size_t k,
                         double value, double *fraction, bool *is_right, struct exactness *exactness) {
    const double difference = (value * expected->scale - expected->sum) - expected->low;
    const double unit = fabs(difference) / expected->magnitude / arithmetic->sum_unit;
    *is_right = reference_check(expected, arithmetic, value, fraction);
    if (unit > exactness->unit_max && has_units(expected, arithmetic, k, value))
        exactness->unit_max = unit;
    exactness->difference_squares += difference * difference;
    exactness->sum_squares += expected->sum * expected->sum;
}

/* --- epilogues */

static long double activate(enum mm_activation activation, long double x) {
    const bool is_lowest = isinf(x) && x < 0;
    switch (activation) {
    case MM_ACTIVATION_RELU:
        return x <= 0 ? 0 : x;
    case MM_ACTIVATION_GELU:
        return is_lowest ? 0 : 0.5L * x * erfcl(-x * sqrtl(0.5L));
    case MM_ACTIVATION_GELU_TANH:
        return is_lowest ? 0 : x / (1 + expl(-2 * sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x)));
    case MM_ACTIVATION_SILU:
        return is_lowest ? 0 : x / (1 + expl(-x));
    case MM_ACTIVATION_SIGMOID:
        return 1 / (1 + expl(-x));
    case MM_ACTIVATION_TANH:
        return tanhl(x);
    default:
        return x;
    }
}

/* Adds factor · element to *x. Each operation rounds once, in the type of the sums. */
static void add_term(double factor, const struct operand *operand, size_t index, long double *x,
                     double *magnitude) {
    if (operand->numbers == NULL || factor == 0.0)
        return;
    const long double term = (long double)factor * operand->numbers[index].real;
    *x += term;
    *magnitude += fabs((double)term);
}

/* Turns the expected sum of an element into the expected element of D. The error is at most growth·e + extra
 * (docs/accuracy.md). Activations have slopes up to 1.129. */
static void finish_real(const struct one_case *one, struct expected *expected) {
    const struct mm_epilogue *epilogue = &one->epilogue;
    const enum mm_dtype sum_dtype = mm_dtype_sum(one->dtype);
    const struct mm_precision sum = mm_dtype_precision(sum_dtype);
    const double alpha = mm_scale_real(sum_dtype, &epilogue->alpha);
    long double x = 0.0L;
    double magnitude = 0.0;
    if (alpha != 0.0) {
        /* Epilogues are tested with data that do not overflow, so only an infinite sum has a scale other
         * than 1. */
        x = (long double)alpha * expected->sum;
        if (isfinite(expected->sum))
            x += (long double)alpha * expected->low;
        magnitude = fabs(alpha) * expected->magnitude;
    } else {
        expected->magnitude = 0.0;
    }
    expected->scale = 1.0;
    add_term(mm_scale_real(sum_dtype, &epilogue->beta), &one->addend,
             expected->row * one->shape.n + expected->col, &x, &magnitude);
    add_term(1.0, &one->bias, expected->col, &x, &magnitude);
    expected->growth = fabs(alpha);
    expected->extra = 4.0 * sum.unit * magnitude + sum.least;
    if (epilogue->activation != MM_ACTIVATION_NONE) {
        const bool is_within_one = epilogue->activation >= MM_ACTIVATION_SIGMOID;
        expected->growth *= 1.13;
        expected->extra = 1.13 * expected->extra + 8.0 * sum.unit * (is_within_one ? 1.0 : fabs((double)x));
        x = activate(epilogue->activation, x);
    }
    expected->sum = (double)x;
    expected->low = isfinite(expected->sum) ? (double)(x - expected->sum) : 0.0;
}

static void finish_whole(const struct one_case *one, struct expected *expected) {
    const struct mm_epilogue *epilogue = &one->epilogue;
    const enum mm_dtype sum = mm_dtype_sum(one->dtype);
    const uint64_t alpha = mm_scale_whole(sum, &epilogue->alpha), beta = mm_scale_whole(sum, &epilogue->beta);
    expected->whole *= alpha;
    if (one->addend.numbers != NULL)
        expected->whole += beta * one->addend.numbers[expected->row * one->shape.n + expected->col].whole;
    if (one->bias.numbers != NULL)
        expected->whole += one->bias.numbers[expected->col].whole;
    const bool is_negative = (expected->whole >> (8 * mm_dtype_bytes(sum) - 1) & 1) != 0;
    if (epilogue->activation == MM_ACTIVATION_RELU && is_negative)
        expected->whole = 0;
    expected->sum = mm_dtype_get(one->c_dtype, &expected->whole, 0);
}

static struct expected finish(const struct one_case *one, size_t index) {
    struct expected expected = one->reference->expected[index];
    if (one->epilogue.is_set && mm_dtype_is_float(one->dtype))
        finish_real(one, &expected);
    else if (one->epilogue.is_set)
        finish_whole(one, &expected);
    return expected;
}

double reference_value(const struct one_case *one, size_t index) {
    const struct expected expected = finish(one, index);
    return expected.sum / expected.scale;
}

/* Returns whether a zero has the right sign: relu gives no -0, and alpha·0 has the sign of alpha. */
static bool is_zero_right(const struct one_case *one, double value) {
    const enum mm_dtype sum = mm_dtype_sum(one->dtype);
    if (value != 0.0 || !one->epilogue.is_set)
        return true;
    if (one->epilogue.activation == MM_ACTIVATION_RELU)
        return !signbit(value);
    if (one->shape.k > 0 || one->epilogue.activation != MM_ACTIVATION_NONE || one->addend.elements != NULL ||
        one->bias.elements != NULL)
        return true;
    return !signbit(value) == !signbit(mm_scale_real(sum, &one->epilogue.alpha));
}

void reference_compare(const struct one_case *one, const struct image *c, enum mm_arithmetic by,
                       struct exactness *exactness) {
    const struct reference *reference = one->reference;
    const size_t k = reference->shape.k;
    const size_t bytes = mm_dtype_bytes(c->view.dtype);
    const bool is_real = mm_dtype_is_float(reference->dtype);
    const struct arithmetic arithmetic = arithmetic_of(reference->dtype, c->view.dtype, k, by);
    *exactness = (struct exactness){0};
    for (size_t index = 0; index < reference->count; index++) {
        const struct expected expected = finish(one, index);
        const size_t at = expected.row * c->view.ld + expected.col;
        bool is_right = memcmp((const char *)c->view.data + at * bytes, &expected.whole, bytes) == 0;
        double fraction = is_right ? 0.0 : INFINITY;
        if (is_real) {
            const double value = mm_dtype_get(c->view.dtype, c->view.data, at);
            compare_real(&expected, &arithmetic, k, value, &fraction, &is_right, exactness);
            is_right = is_right && is_zero_right(one, value);
        }
        if (!is_right && exactness->wrong++ == 0)
            exactness->first_wrong = index;
        if (fraction > exactness->fraction_max)
            exactness->fraction_max = fraction;
    }
}
