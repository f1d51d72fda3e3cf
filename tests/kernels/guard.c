/* What the guard of fp32_tensor certifies, against float64, by a model of the tensor cores (split.h): on data
 * that splits without loss, so that only their own cutting is left, and on every family of data.c. With
 * `cuda` the kernels compute the same, and must have the bits of the model wherever it certifies.
 *
 * usage: guard cpu|cuda [N]; of the search each Nth row and column. Ends with 77 where there is no device
 * that runs fp32_tensor. */
#include "tests/kernels/split.h"

#include <math.h>
#include <stdlib.h>

enum { DEPTH = TENSOR_CORE_DEPTH, BLOCK = 32 };

/* What the guard is derived for. */
static const enum tensor_core_alignment promised[] = {TENSOR_CORE_NORMALIZED, TENSOR_CORE_AS_STORED};
enum { PROMISED = sizeof promised / sizeof promised[0] };

static unsigned failures;

/* --- what came of many ------------------------------------------------------------------------------- */

struct totals {
    const char *name;
    size_t elements;
    size_t certified[PROMISED];
    double worst[PROMISED]; /* of the certified: error over bound */
};

/* Counts a failure; whether it is one of the first, which are told. */
static bool fail(void) {
    return ++failures <= 10;
}

static void judge_element(const struct side *a, size_t row, const struct side *b, size_t col,
                          struct totals *totals) {
    const struct expected expected = expected_of(a, row, b, col);
    totals->elements++;
    for (size_t i = 0; i < PROMISED; i++) {
        const struct element element = element_of(a, row, b, col, promised[i]);
        double fraction;
        if (!element.is_certified)
            continue;
        totals->certified[i]++;
        if (!reference_judge(&expected, a->k, element.value, &fraction) && fail())
            printf("FAIL %s, %s: row %zu, column %zu is %.9g, not %.9g, %.3g × the bound, and certified\n",
                   totals->name, tensor_core_names[promised[i]], row, col, (double)element.value,
                   expected.sum, fraction);
        if (fraction > totals->worst[i])
            totals->worst[i] = fraction;
    }
}

static void totals_print(const struct totals *totals) {
    if (totals->elements == 0)
        return;
    printf("%-28s %8zu elements; certified, worst error / bound:", totals->name, totals->elements);
    for (size_t i = 0; i < PROMISED; i++)
        printf(" %s %.4f, %.3f%s", tensor_core_names[promised[i]],
               (double)totals->certified[i] / (double)totals->elements, totals->worst[i],
               i + 1 < PROMISED ? ";" : "\n");
}

/* --- on a GPU ---------------------------------------------------------------------------------------- */

static struct mm_device *device; /* NULL: the host alone */
static size_t differing[TENSOR_CORE_ALIGNMENTS];
static size_t compared;

/* A block of C by fp32_tensor, dense; small enough for none to be left to simt. */
static bool run_block(const struct side *a, size_t row, size_t rows, const struct side *b, size_t col,
                      size_t cols, float *c) {
    struct mm_job job = {.backend = device->backend,
                         .variant = mm_backend_variant(device->backend, MM_MATMUL, "fp32_tensor"),
                         .product = {.transpose_b = true}};
    job.ran = job.variant;
    job.product.a = mm_matrix_dense(MM_FLOAT32, rows, a->k, a->x + row * a->k);
    job.product.b = mm_matrix_dense(MM_FLOAT32, cols, b->k, b->x + col * b->k);
    job.product.c = mm_matrix_dense(MM_FLOAT32, rows, cols, c);
    mm_product_conform(&job.product, NULL);
    if (mm_device_run(device, &job) == MM_OK)
        return true;
    printf("FAIL: %s\n", job.error.detail);
    failures++;
    return false;
}

static void compare_element(const struct side *a, size_t row, const struct side *b, size_t col, float value,
                            const char *name) {
    const struct expected expected = expected_of(a, row, b, col);
    double fraction;
    if (!reference_judge(&expected, a->k, value, &fraction) && fail())
        printf("FAIL %s: row %zu, column %zu is %.9g on the GPU, not %.9g, %.3g × the bound\n", name, row,
               col, (double)value, expected.sum, fraction);
    compared++;
    for (unsigned i = 0; i < TENSOR_CORE_ALIGNMENTS; i++) {
        const struct element element = element_of(a, row, b, col, (enum tensor_core_alignment)i);
        differing[i] += element.is_certified && element.value != value;
    }
}

static size_t lesser(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Judges each element of C, by the model, and on the GPU if there is one. */
static void check_all(const struct side *a, const struct side *b, struct totals *totals) {
    float c[BLOCK * BLOCK];
    for (size_t row = 0; row < a->count; row++)
        for (size_t col = 0; col < b->count; col++)
            judge_element(a, row, b, col, totals);
    for (size_t row = 0; device != NULL && row < a->count; row += BLOCK)
        for (size_t col = 0; col < b->count; col += BLOCK) {
            const size_t rows = lesser(BLOCK, a->count - row);
            const size_t cols = lesser(BLOCK, b->count - col);
            const bool ran = run_block(a, row, rows, b, col, cols, c);
            for (size_t i = 0; ran && i < rows * cols; i++)
                compare_element(a, row + i / cols, b, col + i % cols, c[i], totals->name);
        }
}

/* --- known cases ------------------------------------------------------------------------------------- */

/* The first element of a row is its largest and meets a zero. Fourteen equal elements follow two others. The
 * guard once certified the first two cases, whose results were wrong. In the last two, a single product
 * counts, and nothing is left of its factor in A: scaling makes it 0, or no half can hold it. */
static void check_known(void) {
    static const struct {
        const char *name;
        float a[3];
        float b[3];
    } cases[] = {{"known: whole numbers", {0x1p37F, 1.0F, 1023.0F}, {0.0F, 0x1p26F, 3.0F}},
                 {"known: fractions", {0x1p37F, 1.0F, 1024.0F}, {0.0F, 1.0F, 1.90625F * 0x1p-26F}},
                 {"known: scaled to 0", {0x1p127F, 0x1p-149F, 0.0F}, {0.0F, 0x1p20F, 0.0F}},
                 {"known: split to 0", {0x1p100F, 0x1p-30F, 0.0F}, {0.0F, 1.0F, 0.0F}}};
    for (size_t which = 0; which < sizeof cases / sizeof cases[0]; which++) {
        struct side a, b;
        side_make(&a, 1, DEPTH);
        side_make(&b, 1, DEPTH);
        for (size_t k = 0; k < DEPTH; k++) {
            a.x[k] = cases[which].a[k < 2 ? k : 2];
            b.x[k] = cases[which].b[k < 2 ? k : 2];
        }
        side_split(&a, true);
        side_split(&b, false);
        struct totals totals = {.name = cases[which].name};
        check_all(&a, &b, &totals);
        totals_print(&totals);
        side_free(&b);
        side_free(&a);
    }
}

/* --- the search -------------------------------------------------------------------------------------- */

/* All that float16 has below 2^14, subnormals included. */
enum { LEAST = -24, EXPONENTS = 14 - LEAST };

/* Significands of the element that may coarsen the others, and of those: of whole halves, and with low ones.
 */
struct significands {
    float coarse;
    float others;
};

/* A line for each pair of exponents. Its first element is the largest of a row and the last that of a column,
 * and each meets a zero. */
static void make_searched(struct side *side, bool is_a, struct significands significands, size_t thin) {
    side_make(side, (EXPONENTS * EXPONENTS + thin - 1) / thin, DEPTH);
    for (size_t index = 0; index < side->count; index++) {
        float *x = side->x + index * DEPTH;
        x[0] = is_a ? 0x1p13F : 0.0F;
        x[1] = ldexpf(significands.coarse, LEAST + (int)(index * thin / EXPONENTS));
        for (size_t k = 2; k < DEPTH - 1; k++)
            x[k] = ldexpf(significands.others, LEAST + (int)(index * thin % EXPONENTS));
        x[DEPTH - 1] = is_a ? 0.0F : 0x1p13F;
    }
    side_split(side, is_a);
}

static void search(size_t thin) {
    static const struct significands pairs[][2] = {
        {{1.0F, 1.0F}, {1.0F, 1.90625F}},
        {{1.0F + 0x1p-12F, 1.0F}, {1.0F, 1.90625F}},
        {{1.0F, 2047.0F / 1024.0F}, {1.0F + 0x1p-16F, 2047.0F / 1024.0F}},
        {{1.0F + 0x1p-23F, 1.0F + 0x1p-10F}, {1.0F + 0x1p-23F, 1023.0F / 512.0F}},
        {{1.0F, 8191.0F / 4096.0F}, {1.0F, 8191.0F / 4096.0F}},
    };
    for (size_t which = 0; which < sizeof pairs / sizeof pairs[0]; which++) {
        struct side a, b;
        char name[32];
        snprintf(name, sizeof name, "search: significands %zu", which);
        make_searched(&a, true, pairs[which][0], thin);
        make_searched(&b, false, pairs[which][1], thin);
        struct totals totals = {.name = name};
        check_all(&a, &b, &totals);
        totals_print(&totals);
        side_free(&b);
        side_free(&a);
    }
}

/* At random: which of four kinds stands where is the same for rows and columns, how large a kind is belongs
 * to the line, and an element's significand, of at most 11 bits, to itself. */
static void make_random(struct side *side, bool is_a, size_t k, struct random *random,
                        const unsigned *kinds) {
    side_make(side, BLOCK, k);
    for (size_t index = 0; index < side->count; index++) {
        const bool is_positive = random_below(random, 2) == 0;
        int exponents[4];
        for (unsigned kind = 0; kind < 4; kind++)
            exponents[kind] = LEAST + (int)random_below(random, EXPONENTS);
        exponents[is_a ? 0 : 1] = 13;
        for (size_t at = 0; at < k; at++) {
            const int bits = (int)random_below(random, 11);
            const float significand = 1.0F + ldexpf((float)random_below(random, (size_t)1 << bits), -bits);
            const float value = ldexpf(significand, exponents[kinds[at]]);
            const bool is_zero = kinds[at] == (is_a ? 1U : 0U) || random_below(random, 8) == 0;
            side->x[index * k + at] = is_zero                                       ? 0.0F
                                      : is_positive || random_below(random, 2) == 0 ? value
                                                                                    : -value;
        }
    }
    side_split(side, is_a);
}

static void search_at_random(size_t thin) {
    enum { TRIALS = 48, LONGEST = 80 };
    struct random random = {UINT64_C(0x6775617264)};
    struct totals totals = {.name = "search: at random"};
    for (size_t trial = 0; trial < TRIALS / thin; trial++) {
        const size_t k = 2 + random_below(&random, LONGEST - 1);
        unsigned kinds[LONGEST];
        struct side a, b;
        for (size_t at = 0; at < k; at++)
            kinds[at] = (unsigned)random_below(&random, 4);
        make_random(&a, true, k, &random, kinds);
        make_random(&b, false, k, &random, kinds);
        check_all(&a, &b, &totals);
        side_free(&b);
        side_free(&a);
    }
    totals_print(&totals);
}

/* --- families of data -------------------------------------------------------------------------------- */

/* False if an element is Inf or NaN, which `simt` is left with. */
static bool make_family(struct side *a, struct side *b, const struct family *family, struct shape shape) {
    struct operands operands;
    bool is_finite = true;
    operands_make(&operands, shape, family, 1);
    side_make(a, shape.m, shape.k);
    side_make(b, shape.n, shape.k);
    for (size_t index = 0; index < shape.m * shape.k; index++)
        a->x[index] = operands.a[index];
    for (size_t index = 0; index < shape.n * shape.k; index++)
        b->x[index] = operands.b[index % shape.k * shape.n + index / shape.k];
    for (size_t index = 0; index < shape.m * shape.k; index++)
        is_finite = is_finite && isfinite(a->x[index]);
    for (size_t index = 0; index < shape.n * shape.k; index++)
        is_finite = is_finite && isfinite(b->x[index]);
    operands_free(&operands);
    if (is_finite) {
        side_split(a, true);
        side_split(b, false);
    }
    return is_finite;
}

static void check_families(void) {
    static const size_t depths[] = {1, 16, 80, 200};
    for (size_t index = 0; index < FAMILY_COUNT; index++) {
        struct totals totals = {.name = families[index].name};
        for (size_t which = 0; which < sizeof depths / sizeof depths[0]; which++) {
            struct side a, b;
            if (make_family(&a, &b, &families[index], (struct shape){BLOCK, BLOCK, depths[which]}))
                check_all(&a, &b, &totals);
            side_free(&b);
            side_free(&a);
        }
        totals_print(&totals);
    }
}

/* Of ordinary data next to nothing may be left to be computed again: at most what product.cu takes for little
 * enough. Sums in float64 stand for those of the tensor cores. */
static void check_shares(void) {
    static const char *const ordinary[] = {"symmetric", "unit", "normal"};
    static const size_t depths[] = {64, 1024, 8192};
    enum { EDGE = 128, LITTLE = EDGE * EDGE / 256 };
    for (size_t index = 0; index < sizeof ordinary / sizeof ordinary[0]; index++)
        for (size_t which = 0; which < sizeof depths / sizeof depths[0]; which++) {
            const struct family *family = family_find(ordinary[index]);
            struct side a, b;
            size_t uncertain = 0;
            make_family(&a, &b, family, (struct shape){EDGE, EDGE, depths[which]});
            for (size_t element = 0; element < (size_t)EDGE * EDGE; element++) {
                const struct mm_fp32_line row = a.lines[element / EDGE], col = b.lines[element % EDGE];
                const double sum = expected_of(&a, element / EDGE, &b, element % EDGE).sum;
                uncertain +=
                    fabs(ldexp(sum, -(row.exponent + col.exponent))) < (double)mm_fp32_least(row, col);
            }
            printf("%s, k %zu: %zu of %d not certified\n", family->name, depths[which], uncertain,
                   EDGE * EDGE);
            if (uncertain > LITTLE && fail())
                printf("FAIL: so many would be left to simt\n");
            side_free(&b);
            side_free(&a);
        }
}

/* Which hardware this is. What it is taken for must be as coarse as it at least. */
static void tell_hardware(void) {
    bool is_one = false;
    for (unsigned alignment = 0; alignment < TENSOR_CORE_ALIGNMENTS; alignment++)
        printf("%s: of %zu elements %zu certified ones differ from the model, subnormals %s\n", device->name,
               compared, differing[alignment], tensor_core_names[alignment]);
    for (size_t i = 0; i < PROMISED; i++)
        is_one = is_one || differing[promised[i]] == 0;
    if (!is_one && fail())
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
    if (variant != NULL &&
        (backend->open(0, &device, &error) != MM_OK || mm_variant_missing(variant, device) != NULL)) {
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
