/* Tests the guard of fp32_tensor, which certifies that an element of C is accurate. A model of the tensor
 * cores computes elements for all families of data. Each certified element is compared with a sum in float64.
 * With `cuda`, a GPU must give the same bits as the model. usage: guard cpu|cuda [N], where N runs one in N
 * cases of the search. Exits with 77 if no device can run fp32_tensor. */
#include "gpu/cuda/variants/fp32_tensor/guard.h"
#include "tests/kernels/harness.h"
#include "tests/kernels/tensor_core.h"

#include <math.h>
#include <stdlib.h>

enum { DEPTH = TENSOR_CORE_DEPTH, BLOCK = 32 };

/* The guard must be right for every tensor_core_alignment below PROMISED. */
enum { PROMISED = TENSOR_CORE_WITH_ZEROS };

static unsigned failures;

/* Counts a failure. Returns whether to print it, because only the first ten are printed. */
static bool fail(void) {
    return ++failures <= 10;
}

/* The rows of op(A) or the columns of op(B), before and after scaling and splitting. Owns its arrays. */
struct side {
    size_t count;
    size_t k;
    size_t padded; /* k rounded up to a multiple of DEPTH */
    float *x;      /* count × k numbers, all finite */
    float *high;   /* count × padded numbers; the padding is zero */
    float *low;
    struct mm_fp32_line *lines;
};

struct pair {
    struct side a;
    struct side b;
};

static struct side side_make(size_t count, size_t k) {
    struct side side = {.count = count, .k = k, .padded = (k + DEPTH - 1) / DEPTH * DEPTH};
    side.x = harness_allocate(count * (k + 2 * side.padded) * sizeof(float));
    side.high = side.x + count * k;
    side.low = side.high + count * side.padded;
    side.lines = harness_allocate(count * sizeof *side.lines);
    return side;
}

/* Allocates both operands. The caller fills `x` of each operand. */
static struct pair pair_make(size_t rows, size_t cols, size_t k) {
    return (struct pair){side_make(rows, k), side_make(cols, k)};
}

static void pair_free(const struct pair *pair) {
    free(pair->b.lines);
    free(pair->b.x);
    free(pair->a.lines);
    free(pair->a.x);
}

static void side_split(struct side *side, bool is_a) {
    const float factor = is_a ? mm_fp32_threshold((unsigned)side->k) : 1.0F;
    for (size_t index = 0; index < side->count; index++) {
        const float *x = side->x + index * side->k;
        float *high = side->high + index * side->padded;
        float *low = side->low + index * side->padded;
        unsigned most = 0;
        unsigned long long lost = 0;
        for (size_t i = 0; i < side->k; i++)
            most = mm_fp32_magnitude(x[i]) > most ? mm_fp32_magnitude(x[i]) : most;
        const struct mm_fp32_scale scale = mm_fp32_scale_of(most);
        float largest;
        memcpy(&largest, &most, sizeof largest);
        largest = mm_fp32_scaled(largest, scale);
        if (most != 0 && !(largest >= 0x1p14F && largest < 0x1p15F) && fail())
            printf("FAIL: a line is scaled to %g, not to [2^14, 2^15)\n", (double)largest);
        for (size_t i = 0; i < side->padded; i++)
            high[i] = low[i] = 0.0F;
        for (size_t i = 0; i < side->k; i++) {
            mm_fp32_split(mm_fp32_scaled(x[i], scale), &high[i], &low[i]);
            lost += mm_fp32_lost(x[i], scale);
        }
        side->lines[index] = mm_fp32_line_of(most, lost, factor);
    }
}

static void pair_split(struct pair *pair) {
    side_split(&pair->a, true);
    side_split(&pair->b, false);
}

/* Computes an element by the model. Adds the products in the order that the kernels use for k up to 448.
 * Returns whether the guard certifies the element. */
static bool certifies(const struct pair *pair, size_t row, size_t col, unsigned model, float *value) {
    const enum tensor_core_alignment alignment = (enum tensor_core_alignment)model;
    const struct mm_fp32_line of_row = pair->a.lines[row], of_col = pair->b.lines[col];
    const size_t padded = pair->a.padded;
    const float *const a[] = {pair->a.high + row * padded, pair->a.low + row * padded};
    const float *const b[] = {pair->b.high + col * padded, pair->b.low + col * padded};
    float sum = 0.0F;
    for (size_t k = 0; k < padded; k += MM_FP32_STEP) {
        const size_t end = k + MM_FP32_STEP < padded ? k + MM_FP32_STEP : padded;
        float step = 0.0F;
        for (size_t i = k; i < end; i += DEPTH) {
            step = tensor_core_add(&tensor_core_float16, a[1] + i, b[0] + i, step, alignment);
            step = tensor_core_add(&tensor_core_float16, a[0] + i, b[1] + i, step, alignment);
        }
        for (size_t i = k; i < end; i += DEPTH)
            step = tensor_core_add(&tensor_core_float16, a[0] + i, b[0] + i, step, alignment);
        sum += step;
    }
    *value = mm_fp32_unscaled(sum, of_row.exponent + of_col.exponent);
    return fabsf(sum) >= mm_fp32_least(of_row, of_col);
}

/* Returns whether the small range of float16 adds no more error to the element than the guard allows. */
static bool costs_little(const struct pair *pair, size_t row, size_t col, float value) {
    const struct mm_fp32_line of_row = pair->a.lines[row], of_col = pair->b.lines[col];
    const double error =
        (double)mm_fp32_least(of_row, of_col) * (double)mm_fp32_range_share((unsigned)pair->a.k);
    const double scaled = ldexp((double)value, -(of_row.exponent + of_col.exponent));
    return error * error <= MM_FP32_RANGE_SQUARES * scaled * scaled;
}

static struct expected expected_of(const struct pair *pair, size_t row, size_t col) {
    const size_t k = pair->a.k;
    struct expected expected = {.row = row, .col = col, .scale = 1.0, .growth = 1.0};
    for (size_t depth = 0; depth < k; depth++) {
        const double product = (double)pair->a.x[row * k + depth] * (double)pair->b.x[col * k + depth];
        expected.sum += product;
        expected.magnitude += fabs(product);
    }
    return expected;
}

struct totals {
    const char *name;
    double relative_max; /* largest allowed relative error; 0 for no limit */
    size_t elements;
    size_t certified[PROMISED];
    double worst[PROMISED]; /* largest error of a certified element, divided by its bound */
};

static void totals_print(const struct totals *totals) {
    if (totals->elements == 0)
        return;
    printf("%-28s %8zu elements; certified, worst error / bound:", totals->name, totals->elements);
    for (size_t i = 0; i < PROMISED; i++)
        printf(" %s %.4f, %.3f%s", tensor_core_names[i],
               (double)totals->certified[i] / (double)totals->elements, totals->worst[i],
               i + 1 < PROMISED ? ";" : "\n");
}

static struct mm_device *device; /* NULL if only the model is tested */
static size_t differing[TENSOR_CORE_ALIGNMENTS];
static size_t compared;

/* Computes a block of C on the GPU. Sets is_split to false if the fallback kernel simt computed it. */
static bool run_block(const struct pair *pair, size_t row, size_t rows, size_t col, size_t cols, float *c,
                      bool *is_split) {
    const size_t k = pair->a.k;
    struct mm_job job = {.work.backend = device->backend,
                         .variant = mm_backend_variant(device->backend, MM_MATMUL, "fp32_tensor"),
                         .product = {.transpose_b = true}};
    job.outcome.ran = job.variant;
    job.product.a = mm_matrix_dense(MM_FLOAT32, rows, k, pair->a.x + row * k);
    job.product.b = mm_matrix_dense(MM_FLOAT32, cols, k, pair->b.x + col * k);
    job.product.c = mm_matrix_dense(MM_FLOAT32, rows, cols, c);
    mm_product_conform(MM_MATMUL, &job.product, NULL);
    if (mm_device_run(device, &job) != MM_OK && fail())
        printf("FAIL: %s\n", job.work.error.detail);
    *is_split = job.outcome.path.kind != MM_PATH_SIMT;
    return job.work.error.status == MM_OK;
}

static void check_relative(const struct expected *expected, float value, const struct totals *totals) {
    if (totals->relative_max > 0.0 &&
        fabs((double)value - expected->sum) > totals->relative_max * fabs(expected->sum) && fail())
        printf("FAIL %s: %.9g, not %.9g\n", totals->name, (double)value, expected->sum);
}

static double check_value(const struct expected *expected, size_t k, float value, const char *by,
                          const char *name) {
    const struct arithmetic arithmetic = arithmetic_of(MM_FLOAT32, MM_FLOAT32, k, MM_ROUNDED);
    double fraction;
    if (!reference_check(expected, &arithmetic, (double)value, &fraction) && fail())
        printf("FAIL %s, %s: row %zu, column %zu is %.9g, not %.9g, %.3g × the bound\n", name, by,
               expected->row, expected->col, (double)value, expected->sum, fraction);
    return fraction;
}

/* If the guard certifies the model's element, checks this element. Unless `got` is NULL, also checks *got,
 * the GPU's element. If is_split, the tensor cores computed *got, so *got is also compared with the model's
 * element. */
static void check_element(const struct pair *pair, size_t row, size_t col, const float *got, bool is_split,
                          struct totals *totals) {
    const struct expected expected = expected_of(pair, row, col);
    totals->elements++;
    if (got != NULL) {
        (void)check_value(&expected, pair->a.k, *got, device->name, totals->name);
        check_relative(&expected, *got, totals);
        compared += is_split;
    }
    for (unsigned i = 0; i < (got != NULL ? TENSOR_CORE_ALIGNMENTS : PROMISED); i++) {
        float value;
        if (!certifies(pair, row, col, i, &value))
            continue;
        if (totals->relative_max > 0.0 && !costs_little(pair, row, col, value))
            continue;
        check_relative(&expected, value, totals);
        differing[i] += got != NULL && is_split && value != *got;
        if (i < PROMISED) {
            const double part = check_value(&expected, pair->a.k, value, tensor_core_names[i], totals->name);
            totals->certified[i]++;
            totals->worst[i] = fmax(totals->worst[i], part);
        }
    }
}

static void check_and_free(struct pair *pair, struct totals *totals) {
    float c[BLOCK * BLOCK];
    pair_split(pair);
    for (size_t row = 0; row < pair->a.count; row += BLOCK)
        for (size_t col = 0; col < pair->b.count; col += BLOCK) {
            const size_t rows = mm_size_min(BLOCK, pair->a.count - row);
            const size_t cols = mm_size_min(BLOCK, pair->b.count - col);
            bool is_split = false;
            const bool ran = device != NULL && run_block(pair, row, rows, col, cols, c, &is_split);
            for (size_t i = 0; i < rows * cols; i++)
                check_element(pair, row + i / cols, col + i % cols, ran ? &c[i] : NULL, is_split, totals);
        }
    pair_free(pair);
}

/* Products that once failed. Each has a C of one element. In the first five, the guard certified a wrong C.
 * In the last two, scaling or splitting turns an element of A into 0, although C needs it. */
static void check_known(void) {
    static const struct {
        const char *name;
        size_t k;
        float a[3];
        float b[3];
    } cases[] = {
        {"known: whole numbers", DEPTH, {0x1p37F, 1.0F, 1023.0F}, {0.0F, 0x1p26F, 3.0F}},
        {"known: fractions", DEPTH, {0x1p37F, 1.0F, 1024.0F}, {0.0F, 1.0F, 1.90625F * 0x1p-26F}},
        {"known: small fractions", 4096, {0x1p37F, 1.0F, 1024.0F}, {0.0F, 1.0F, 61.0F * 0x1p-31F}},
        {"known: small scales", 4096, {0x1p-41F, 0x1.00001p-60F, 0.0F}, {0.0F, 0x1p-60F, 0.0F}},
        {"known: subnormal", 4096, {0.0F, 0x1p60F, 61.0F * 0x1p29F}, {0x1p-101F, 0x1p-138F, 0x1p-128F}},
        {"known: 2^-23 lost, and more", DEPTH, {0x1p14F, 0x1.fdp-3F + 0x1p-25F, 0.0F}, {0.0F, 1.0F, 0.0F}},
        {"known: scaled to 0", DEPTH, {0x1p127F, 0x1p-149F, 0.0F}, {0.0F, 0x1p20F, 0.0F}},
        {"known: split to 0", DEPTH, {0x1p100F, 0x1p-30F, 0.0F}, {0.0F, 1.0F, 0.0F}}};
    for (size_t which = 0; which < sizeof cases / sizeof cases[0]; which++) {
        const size_t depth = cases[which].k;
        struct pair pair = pair_make(1, 1, depth);
        for (size_t k = 0; k < depth; k++) {
            pair.a.x[k] = cases[which].a[k < 2 ? k : 2];
            pair.b.x[k] = cases[which].b[k < 2 ? k : 2];
        }
        struct totals totals = {.name = cases[which].name, .relative_max = 0x1p-23};
        check_and_free(&pair, &totals);
        totals_print(&totals);
    }
}

/* Exponents of all float16 numbers below 2^15, including subnormals. Scaled elements stay below 2^15. */
enum { LEAST = -24, MOST = 14, EXPONENTS = MOST + 1 - LEAST };

/* Gives each row of A or column of B a different pair of exponents: one for x[1], and one for the elements
 * behind x[1]. If x[1] is large, the tensor cores truncate the other products. The largest element meets a 0
 * of the other operand, so it only sets the scale. */
static void make_searched(struct side *side, bool is_a, const float *significands, size_t thin) {
    for (size_t index = 0; index < side->count; index++) {
        float *x = side->x + index * DEPTH;
        x[0] = is_a ? ldexpf(1.0F, MOST) : 0.0F;
        x[1] = ldexpf(significands[0], LEAST + (int)(index * thin / EXPONENTS));
        for (size_t k = 2; k < DEPTH - 1; k++)
            x[k] = ldexpf(significands[1], LEAST + (int)(index * thin % EXPONENTS));
        x[DEPTH - 1] = is_a ? 0.0F : ldexpf(1.0F, MOST);
    }
}

static void search(size_t thin) {
    /* Some of these numbers fit into one float16, and some need two. */
    static const float pairs[][2][2] = {
        {{1.0F, 1.0F}, {1.0F, 1.90625F}},
        {{1.0F + 0x1p-12F, 1.0F}, {1.0F, 1.90625F}},
        {{1.0F, 2047.0F / 1024.0F}, {1.0F + 0x1p-16F, 2047.0F / 1024.0F}},
        {{1.0F + 0x1p-23F, 1.0F + 0x1p-10F}, {1.0F + 0x1p-23F, 1023.0F / 512.0F}},
        {{1.0F, 8191.0F / 4096.0F}, {1.0F, 8191.0F / 4096.0F}},
    };
    for (size_t which = 0; which < sizeof pairs / sizeof pairs[0]; which++) {
        const size_t count = (EXPONENTS * EXPONENTS + thin - 1) / thin;
        struct pair pair = pair_make(count, count, DEPTH);
        char name[32];
        snprintf(name, sizeof name, "search: significands %zu", which);
        make_searched(&pair.a, true, pairs[which][0], thin);
        make_searched(&pair.b, false, pairs[which][1], thin);
        struct totals totals = {.name = name};
        check_and_free(&pair, &totals);
        totals_print(&totals);
    }
}

/* Element k has the kind kinds[k] in each row of A or column of B. Within a row or column, elements of one
 * kind have the same random exponent. */
static void make_random(struct side *side, bool is_a, struct random *random, const unsigned *kinds) {
    for (size_t index = 0; index < side->count; index++) {
        const bool is_positive = random_below(random, 2) == 0;
        int exponents[4];
        for (unsigned kind = 0; kind < 4; kind++)
            exponents[kind] = LEAST + (int)random_below(random, EXPONENTS);
        exponents[is_a ? 0 : 1] = MOST;
        for (size_t at = 0; at < side->k; at++) {
            const int bits = (int)random_below(random, 11);
            const float significand = 1.0F + ldexpf((float)random_below(random, (size_t)1 << bits), -bits);
            const float value = ldexpf(significand, exponents[kinds[at]]);
            const bool is_zero = kinds[at] == (is_a ? 1U : 0U) || random_below(random, 8) == 0;
            side->x[index * side->k + at] = is_zero                                       ? 0.0F
                                            : is_positive || random_below(random, 2) == 0 ? value
                                                                                          : -value;
        }
    }
}

static void search_at_random(size_t thin) {
    enum { TRIALS = 48, LONGEST = 80 };
    struct random random = {UINT64_C(0x6775617264)};
    struct totals totals = {.name = "search: at random"};
    for (size_t trial = 0; trial < TRIALS / thin; trial++) {
        const size_t k = 2 + random_below(&random, LONGEST - 1);
        struct pair pair = pair_make(BLOCK, BLOCK, k);
        unsigned kinds[LONGEST];
        for (size_t at = 0; at < k; at++)
            kinds[at] = (unsigned)random_below(&random, 4);
        make_random(&pair.a, true, &random, kinds);
        make_random(&pair.b, false, &random, kinds);
        check_and_free(&pair, &totals);
    }
    totals_print(&totals);
}

static struct pair make_family(const struct family *family, size_t edge, size_t k) {
    struct random random = {1};
    struct pair pair = pair_make(edge, edge, k);
    union number *numbers = harness_allocate(edge * k * sizeof *numbers);
    const struct side *const sides[] = {&pair.a, &pair.b};
    for (unsigned which = 0; which < 2; which++) {
        family->fill(&random, &(const struct lines){which == 0, MM_FLOAT32, numbers, edge, k, k, 1});
        for (size_t index = 0; index < edge * k; index++)
            sides[which]->x[index] = (float)numbers[index].real;
    }
    free(numbers);
    return pair;
}

static bool is_finite(const struct side *side) {
    for (size_t index = 0; index < side->count * side->k; index++)
        if (!isfinite(side->x[index]))
            return false;
    return true;
}

/* Skips data with an Inf or a NaN, because fp32_tensor leaves such blocks to the kernel simt. */
static void check_families(void) {
    static const size_t depths[] = {1, 16, 80, 200};
    for (size_t index = 0; index < FAMILY_ENCODINGS; index++) {
        struct totals totals = {.name = families[index].name};
        for (size_t which = 0; which < sizeof depths / sizeof depths[0]; which++) {
            struct pair pair = make_family(&families[index], BLOCK, depths[which]);
            if (is_finite(&pair.a) && is_finite(&pair.b))
                check_and_free(&pair, &totals);
            else
                pair_free(&pair);
        }
        totals_print(&totals);
    }
}

/* On ordinary data the guard must certify almost all elements, because each repair of an element takes time.
 * This test uses sums in float64 instead of the sums of the tensor cores. */
static void check_shares(void) {
    static const char *const ordinary[] = {"symmetric", "unit", "normal"};
    static const size_t depths[] = {64, 1024, 8192};
    enum { EDGE = 128, LITTLE = EDGE * EDGE / 256 };
    for (size_t index = 0; index < sizeof ordinary / sizeof ordinary[0]; index++)
        for (size_t which = 0; which < sizeof depths / sizeof depths[0]; which++) {
            const struct family *family = family_find(ordinary[index]);
            struct pair pair = make_family(family, EDGE, depths[which]);
            size_t uncertain = 0;
            pair_split(&pair);
            for (size_t element = 0; element < (size_t)EDGE * EDGE; element++) {
                const struct mm_fp32_line row = pair.a.lines[element / EDGE],
                                          col = pair.b.lines[element % EDGE];
                const double sum = expected_of(&pair, element / EDGE, element % EDGE).sum;
                uncertain +=
                    fabs(ldexp(sum, -(row.exponent + col.exponent))) < (double)mm_fp32_least(row, col);
            }
            printf("%s, k %zu: %zu of %d not certified\n", family->name, depths[which], uncertain,
                   EDGE * EDGE);
            if (uncertain > LITTLE && fail())
                printf("FAIL: so many would be left to simt\n");
            pair_free(&pair);
        }
}

/* Prints how the GPU aligns products with subnormal factors. Fails if the guard is not made for that
 * alignment. */
static void tell_hardware(void) {
    for (unsigned alignment = 0; alignment < TENSOR_CORE_ALIGNMENTS; alignment++)
        printf("%s: of %zu elements %zu certified ones differ from the model, subnormals %s\n", device->name,
               compared, differing[alignment], tensor_core_names[alignment]);
    if (differing[TENSOR_CORE_NORMALIZED] > 0 && differing[TENSOR_CORE_AS_STORED] > 0 && fail())
        printf("FAIL: it is none of the models that the guard is derived from\n");
}

int main(int count, char **arguments) {
    const size_t thin = count == 3 ? strtoul(arguments[2], NULL, 10) : 1;
    const struct mm_backend *backend = count >= 2 && count <= 3 ? mm_backend_find(arguments[1]) : NULL;
    if (backend == NULL || thin == 0 || thin > EXPONENTS) {
        printf("usage: guard cpu|cuda [N], N up to %d; or this build has no such backend\n", EXPONENTS);
        return EXIT_SKIPPED;
    }
    const struct mm_variant *variant = mm_backend_variant(backend, MM_MATMUL, "fp32_tensor");
    struct mm_error error = {.detail = "it has no tensor cores for fp32_tensor"};
    if (variant != NULL && (backend->open(0, &device, &error) != MM_OK ||
                            mm_variant_missing(variant, device, MM_FLOAT32) != NULL)) {
        printf("no such device: %s\n", error.detail);
        return EXIT_SKIPPED;
    }
    check_known();
    search(thin);
    search_at_random(thin);
    check_families();
    check_shares();
    if (device != NULL) {
        tell_hardware();
        backend->close(device);
    }
    printf("%u failures\n", failures);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
