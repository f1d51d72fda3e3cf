/* Generates test data. Each family of data provokes a different kind of numerical error. Numbers are float64
 * or 64-bit integers until the caller rounds them to the element type. From fill_hidden on, many functions
 * add a few very large elements, which expose kernels that scale or split rows. */
#include "gpu/matrix/random.h"
#include "tests/kernels/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t random_next(struct random *random) {
    const uint64_t bits = mm_random_bits(random->state, 0);
    random->state = mm_random_skip(random->state, 1);
    return bits;
}

size_t random_below(struct random *random, size_t bound) {
    return (size_t)(random_next(random) % bound);
}

uint64_t random_mix(uint64_t a, uint64_t b) {
    struct random random = {a ^ (b * UINT64_C(0xd1342543de82ef95))};
    random_next(&random);
    return random_next(&random);
}

/* Returns a number that is uniform in [0, 1). */
static double unit(struct random *random) {
    return (double)(random_next(random) >> 11) * 0x1p-53;
}

static double symmetric(struct random *random) {
    const int64_t odd = (int64_t)(random_next(random) >> 11) | 1;
    return (double)(odd - (INT64_C(1) << 52)) * 0x1p-52;
}

/* Returns a number with a random sign whose absolute value is uniform in [1, 2). */
static double mantissa(struct random *random) {
    const double value = 1.0 + unit(random);
    return random_next(random) & 1 ? value : -value;
}

static int exponent(struct random *random, int limit) {
    return (int)random_below(random, 2 * (size_t)limit + 1) - limit;
}

/* Exponents of a type's smallest normal number and largest number, and its number of binary digits. */
struct range {
    int least_normal;
    int largest;
    int digits;
};

static struct range range_of(enum mm_dtype dtype) {
    const struct mm_precision precision = mm_dtype_precision(dtype);
    const int digits = -ilogb(precision.unit);
    return (struct range){ilogb(precision.least) + digits - 1, ilogb(precision.largest), digits};
}

/* Reduces an exponent that suits float32 if the element type has a smaller range. */
static int fit(const struct lines *lines, int wanted) {
    enum { ENOUGH = 64 };
    const int largest = range_of(lines->dtype).largest;
    return largest >= ENOUGH ? wanted : wanted * largest / ENOUGH;
}

static double *at(const struct lines *lines, size_t line, size_t depth) {
    return &lines->x[line * lines->line_step + depth * lines->depth_step].real;
}

#define FOR_EACH_ELEMENT(lines)                                                                              \
    for (size_t line = 0; line < (lines)->count; line++)                                                     \
        for (size_t depth = 0; depth < (lines)->depth; depth++)

static void fill_symmetric(struct random *random, const struct lines *lines) {
    FOR_EACH_ELEMENT(lines) {
        *at(lines, line, depth) = symmetric(random);
    }
}

/* All numbers are positive, so the errors of truncation do not cancel. */
static void fill_unit(struct random *random, const struct lines *lines) {
    FOR_EACH_ELEMENT(lines) {
        *at(lines, line, depth) = unit(random) + 0x1p-24;
    }
}

/* Uses the Box-Muller method. */
static void fill_normal(struct random *random, const struct lines *lines) {
    FOR_EACH_ELEMENT(lines) {
        double radius = sqrt(-2.0 * log(1.0 - unit(random)));
        *at(lines, line, depth) = radius * cos(6.283185307179586 * unit(random));
    }
}

/* Random signs and mantissas. Exponents are random between −limit and limit. */
static void fill_wide(struct random *random, const struct lines *lines, int limit) {
    limit = fit(lines, limit);
    FOR_EACH_ELEMENT(lines) {
        const double value = mantissa(random);
        *at(lines, line, depth) = ldexp(value, exponent(random, limit));
    }
}

static void fill_wide_elements(struct random *random, const struct lines *lines) {
    fill_wide(random, lines, 15);
}

static void fill_wide_lines(struct random *random, const struct lines *lines) {
    fill_symmetric(random, lines);
    for (size_t line = 0; line < lines->count; line++) {
        const int scale = exponent(random, fit(lines, 40));
        for (size_t depth = 0; depth < lines->depth; depth++)
            *at(lines, line, depth) = ldexp(*at(lines, line, depth), scale);
    }
}

static void fill_huge_element(struct random *random, const struct lines *lines) {
    fill_symmetric(random, lines);
    for (size_t line = 0; line < lines->count && lines->depth > 0; line++)
        *at(lines, line, random_below(random, lines->depth)) *= 0x1p20;
}

/* All elements in A's even rows are subnormal. In A's odd rows, half of the elements are subnormal. Large
 * elements in B's even columns make some products normal. */
static void fill_subnormal(struct random *random, const struct lines *lines) {
    const struct range range = range_of(lines->dtype);
    FOR_EACH_ELEMENT(lines) {
        double value = mantissa(random);
        if (lines->is_a && (line % 2 == 0 || random_next(random) % 2 == 0))
            value =
                ldexp(value, range.least_normal - 1 - (int)random_below(random, (size_t)range.digits / 2));
        if (!lines->is_a && line % 2 == 0)
            value = ldexp(value, (int)random_below(random, (size_t)fit(lines, 30)));
        *at(lines, line, depth) = value;
    }
}

static void fill_signed_zeros(struct random *random, const struct lines *lines) {
    fill_symmetric(random, lines);
    FOR_EACH_ELEMENT(lines) {
        uint64_t dice = random_next(random) % 4;
        if (dice < 2)
            *at(lines, line, depth) = dice == 0 ? 0.0 : -0.0;
    }
}

/* About a third of A's rows and of B's columns gets one NaN or infinite element. Many other elements are
 * zero, because 0·Inf must be NaN. Many elements of C stay finite. */
static void fill_nonfinite(struct random *random, const struct lines *lines) {
    static const double special[] = {NAN, -NAN, INFINITY, -INFINITY, INFINITY};
    fill_symmetric(random, lines);
    FOR_EACH_ELEMENT(lines) {
        if (random_next(random) % 8 == 0)
            *at(lines, line, depth) = random_next(random) % 2 == 0 ? 0.0 : -0.0;
    }
    for (size_t line = 0; line < lines->count && lines->depth > 0; line++)
        if (random_next(random) % 3 == 0)
            *at(lines, line, random_below(random, lines->depth)) = special[random_below(random, 5)];
}

/* Many products are near the largest number. A third of A's rows is positive, so some sums overflow. */
static void fill_overflow(struct random *random, const struct lines *lines) {
    const int half = range_of(lines->dtype).largest / 2;
    FOR_EACH_ELEMENT(lines) {
        const double value = mantissa(random);
        const int scale = line % 3 == 2 ? fit(lines, 20) : half - 1 + (int)random_below(random, 2);
        *at(lines, line, depth) = ldexp(line % 3 == 0 ? fabs(value) : value, scale);
    }
}

/* Each row of A and each column of B has one element that is 2^30 times as large as the others. These large
 * elements do not change C, because the product multiplies each of them by a 0. But a kernel that scales rows
 * by their largest element loses accuracy. */
static void fill_hidden(struct random *random, const struct lines *lines) {
    const size_t own = lines->is_a ? 0 : 4;
    const size_t others = 4 - own;
    fill_symmetric(random, lines);
    for (size_t line = 0; line < lines->count && lines->depth >= 8; line++) {
        const size_t places = (lines->depth + 7 - own) / 8;
        *at(lines, line, own + 8 * random_below(random, places)) *= 0x1p30;
        for (size_t depth = others; depth < lines->depth; depth += 8)
            *at(lines, line, depth) = 0.0;
    }
}

static void fill_wider_elements(struct random *random, const struct lines *lines) {
    fill_wide(random, lines, 30);
}

/* Products almost cancel in pairs. A has x in the first half of a row and −x(1 + 2^-20) in the second half. B
 * has equal elements in both halves. In every fourth row of A nothing cancels. */
static void fill_cancellation(struct random *random, const struct lines *lines) {
    const size_t half = lines->depth / 2;
    const double part = fmax(0x1p-20, 4.0 * mm_dtype_precision(lines->dtype).unit);
    fill_symmetric(random, lines);
    FOR_EACH_ELEMENT(lines) {
        double *value = at(lines, line, depth);
        if (lines->is_a && line % 4 == 0)
            *value *= part;
        else if (depth >= half && depth < 2 * half)
            *value = *at(lines, line, depth - half) * (lines->is_a ? -(1.0 + part) : 1.0);
    }
}

/* Only one element in a hundred is not zero. A's first row and B's first column have no zeros. */
static void fill_sparse(struct random *random, const struct lines *lines) {
    fill_wide(random, lines, 20);
    FOR_EACH_ELEMENT(lines) {
        if (line > 0 && random_below(random, 100) > 0)
            *at(lines, line, depth) = 0.0;
    }
}

/* Only four blocks on the diagonal are not zero. Each block of A is 2^24 times as large as the block before.
 * Each block of B is 2^20 times smaller than the block before. */
static void fill_blocks(struct random *random, const struct lines *lines) {
    FOR_EACH_ELEMENT(lines) {
        const size_t block = 4 * line / lines->count;
        const int scale = (lines->is_a ? 24 : -20) * ((int)block - 2);
        const float value = ldexp(unit(random) + 0x1p-24, scale);
        *at(lines, line, depth) = 4 * depth / lines->depth == block ? value : 0.0;
    }
}

/* Along k, A's elements grow by a factor of 2^60 in all, and B's elements shrink by this factor. So all
products have about the same size. */
static void fill_balanced(struct random *random, const struct lines *lines) {
    fill_symmetric(random, lines);
    FOR_EACH_ELEMENT(lines) {
        const int scale = fit(lines, (int)(60 * depth / lines->depth) - 30);
        double *value = at(lines, line, depth);
        *value = ldexp(*value, lines->is_a ? scale : -scale);
    }
}

/* Sets the largest elements of A or B. A's largest elements meet only zeros of B, and B's largest element
 * meets a 1 of A. So C has no large terms, and a kernel that scales by the largest elements loses the small
 * products. */
static void set_largest(struct random *random, const struct lines *lines, double largest_of_b) {
    for (size_t line = 0; line < lines->count && lines->depth >= 8; line++) {
        for (size_t depth = 0; depth < lines->depth; depth += 4)
            *at(lines, line, depth) = !lines->is_a ? 0.0 : depth % 8 == 0 ? 0x1p37 : 1.0;
        if (!lines->is_a)
            *at(lines, line, 4 + 8 * random_below(random, (lines->depth + 3) / 8)) = largest_of_b;
    }
}

/* The sum of two scaled float16 represents each number exactly. */
static void fill_whole_numbers(struct random *random, const struct lines *lines) {
    FOR_EACH_ELEMENT(lines) {
        *at(lines, line, depth) = (double)(1 + random_below(random, lines->is_a ? 1023 : 4));
    }
    set_largest(random, lines, 0x1p26);
}

/* One scaled float16 represents each number exactly. */
static void fill_powers_of_two(struct random *random, const struct lines *lines) {
    FOR_EACH_ELEMENT(lines) {
        const int power = (lines->is_a ? 10 : -26) + (int)random_below(random, 4);
        *at(lines, line, depth) = ldexp(random_next(random) & 1 ? 1.0 : -1.0, power);
    }
    set_largest(random, lines, 1.0);
}

/* A's largest element meets a 0 of B, and B's largest element meets a small element of A. So a kernel that
 * splits scaled elements into two float16 may lose all other products. */
static void fill_small_fractions(struct random *random, const struct lines *lines) {
    static const double of_a[] = {0x1p37, 1.0, 0x1p10}, of_b[] = {0.0, 1.0, 61.0 * 0x1p-31};
    (void)random;
    FOR_EACH_ELEMENT(lines) {
        *at(lines, line, depth) = (lines->is_a ? of_a : of_b)[depth < 2 ? depth : 2];
    }
}

/* Random bits. NaN and Inf occur only in every fourth row of A and column of B, so much of C stays finite. */
static void fill_encodings(struct random *random, const struct lines *lines) {
    FOR_EACH_ELEMENT(lines) {
        const uint64_t bits = random_next(random);
        const double value = mm_dtype_get(lines->dtype, &bits, 0);
        *at(lines, line, depth) = isfinite(value) || line % 4 == 3 ? value : 1.0;
    }
}

/* Families of integers generate 64-bit words. Narrower types use the lowest bits of a word. */

static uint64_t *word_at(const struct lines *lines, size_t line, size_t depth) {
    return &lines->x[line * lines->line_step + depth * lines->depth_step].whole;
}

/* Random 64-bit words. Their sums overflow and must wrap around. */
static void fill_words(struct random *random, const struct lines *lines) {
    FOR_EACH_ELEMENT(lines) {
        *word_at(lines, line, depth) = random_next(random);
    }
}

static void fill_small_words(struct random *random, const struct lines *lines) {
    FOR_EACH_ELEMENT(lines) {
        *word_at(lines, line, depth) = random_below(random, 16) - (uint64_t)8;
    }
}

static void fill_extreme_words(struct random *random, const struct lines *lines) {
    const uint64_t highest = UINT64_C(1) << (8 * mm_dtype_bytes(lines->dtype) - 1);
    const uint64_t extremes[] = {highest, highest - 1, highest + 1, 0, 1, UINT64_MAX};
    FOR_EACH_ELEMENT(lines) {
        *word_at(lines, line, depth) = extremes[random_below(random, sizeof extremes / sizeof *extremes)];
    }
}

const struct family families[FAMILY_COUNT] = {
    {"symmetric", "U(-1,1)", fill_symmetric},
    {"unit", "U(0,1)", fill_unit},
    {"normal", "N(0,1)", fill_normal},
    {"wide_elements", "2^±15 per element", fill_wide_elements},
    {"wide_lines", "2^±40 per row", fill_wide_lines},
    {"huge_element", "one 2^20 per row", fill_huge_element},
    {"subnormals", "subnormals", fill_subnormal},
    {"signed_zeros", "signed zeros", fill_signed_zeros},
    {"nonfinite", "NaN and Inf", fill_nonfinite},
    {"overflow", "overflow", fill_overflow},
    {"hidden", "2^30 against zeros", fill_hidden},
    {"wider_elements", "2^±30 per element", fill_wider_elements},
    {"cancellation", "cancelling pairs", fill_cancellation},
    {"sparse", "1% not zero, 2^±20", fill_sparse},
    {"blocks", "blocks on the diagonal", fill_blocks},
    {"balanced", "2^±30 along k, balanced", fill_balanced},
    {"whole_numbers", "whole numbers to 2^37", fill_whole_numbers},
    {"powers_of_two", "powers of two", fill_powers_of_two},
    {"small_fractions", "2^37, 1, 2^10 by 0, 1, 61/2^31", fill_small_fractions},
    {"encodings", "every encoding", fill_encodings},
    {"words", "words at random", fill_words},
    {"small_words", "-8 to 7", fill_small_words},
    {"extreme_words", "extremes", fill_extreme_words},
};

const struct family *family_find(const char *key) {
    for (size_t index = 0; index < FAMILY_COUNT; index++)
        if (strcmp(families[index].key, key) == 0)
            return &families[index];
    return NULL;
}

bool family_is_of(const struct family *family, enum mm_dtype dtype) {
    const size_t index = (size_t)(family - families);
    if (!mm_dtype_is_float(dtype))
        return index >= FAMILY_WORDS;
    const bool has_small_range =
        range_of(dtype).largest < 64; /* in such types, no product overflows float32 */
    return index < FAMILY_ENCODINGS || (index == FAMILY_ENCODINGS && has_small_range);
}

/* Rounds a number to the type. A finite number stays finite. */
static void settle(union number *number, enum mm_dtype dtype, void *elements, size_t index) {
    if (mm_dtype_is_float(dtype)) {
        const double largest = mm_dtype_precision(dtype).largest;
        if (isfinite(number->real))
            number->real = fmin(fmax(number->real, -largest), largest);
        mm_dtype_put(dtype, elements, index, number->real);
        number->real = mm_dtype_get(dtype, elements, index);
        return;
    }
    const size_t bytes = mm_dtype_bytes(dtype);
    const uint64_t word = dtype == MM_BOOL ? number->whole & 1 : number->whole;
    memcpy((char *)elements + index * bytes, &word, bytes); /* the host is little-endian */
    number->whole = bytes == sizeof word ? word : (uint64_t)(int64_t)mm_dtype_get(dtype, elements, index);
}

void operand_make(struct operand *operand, const struct family *family, struct random *random,
                  struct lines *lines) {
    const size_t count = lines->count * lines->depth;
    operand->numbers = harness_allocate(count * sizeof *operand->numbers);
    operand->elements = harness_allocate(count * mm_dtype_bytes(lines->dtype));
    lines->x = operand->numbers;
    family->fill(random, lines);
    for (size_t index = 0; index < count; index++)
        settle(&operand->numbers[index], lines->dtype, operand->elements, index);
}

void operands_make(struct operands *operands, enum mm_dtype dtype, struct shape shape,
                   const struct family *family, uint64_t seed) {
    struct random random = {seed};
    struct lines rows = {.is_a = true, .dtype = dtype, .count = shape.m, .depth = shape.k};
    struct lines cols = {.dtype = dtype, .count = shape.n, .depth = shape.k};
    rows.line_step = shape.k;
    rows.depth_step = 1;
    cols.line_step = 1;
    cols.depth_step = shape.n;
    *operands = (struct operands){.shape = shape, .dtype = dtype};
    operand_make(&operands->a, family, &random, &rows);
    operand_make(&operands->b, family, &random, &cols);
}

struct one_case operands_case(const struct operands *operands, const struct family *family,
                              const struct reference *reference) {
    return (struct one_case){.data = family->name,
                             .shape = operands->shape,
                             .dtype = operands->dtype,
                             .c_dtype = mm_dtype_result(operands->dtype),
                             .a = operands->a.elements,
                             .b = operands->b.elements,
                             .reference = reference};
}

void operand_free(struct operand *operand) {
    free(operand->elements);
    free(operand->numbers);
    *operand = (struct operand){0};
}

void operands_free(struct operands *operands) {
    operand_free(&operands->a);
    operand_free(&operands->b);
    *operands = (struct operands){0};
}

void *harness_allocate(size_t bytes) {
    void *memory = aligned_alloc(64, (bytes + 64) / 64 * 64);
    if (memory == NULL) {
        fprintf(stderr, "kernels: out of memory for %zu bytes\n", bytes);
        abort();
    }
    return memory;
}
