/* Checks a product on the host. The loops read A, B and C in memory order, and first convert each row to
 * float64 or to words of 64 bits. */
#include "gpu/check/verify.h"

#include <assert.h>
#include <string.h>

enum { VECTORS = MM_VERIFY_VECTORS, SUMS = MM_VERIFY_SUMS, WORDS = MM_VERIFY_WORDS, NUMBER_BYTES = 8 };
enum { PRECISE_SUMS = MM_VERIFY_PRECISE_SUMS, LARGEST = PRECISE_SUMS - 2, LAST = PRECISE_SUMS - 1 };

/* The elements that one call of mm_verify_prepare sums. A call takes at most a few milliseconds. */
enum { STEP_NUMBERS = 1 << 17 };

#define SEEDS_SEED UINT64_C(0x766572696679)

uint64_t mm_verify_seed(void) {
    static size_t checks;
    return mm_random_bits(SEEDS_SEED, __atomic_fetch_add(&checks, 1, __ATOMIC_RELAXED));
}

/* The matrix whose rows are summed. The last sum of a row depends on it (last_term). OF_B also stands for the
 * addend and the bias. */
enum part { OF_A, OF_B, OF_C };

/* The factors by which the elements of a row of op(X) are multiplied. Element i and vector v have the factor
 * at v·length + i. The factors for B and C are the vectors x. The factors for A are the sums of B, and then
 * the norms of B's rows. */
struct factors {
    enum part part;
    const void *numbers;
    size_t length;
};

/* Functions for one kind of operands: floats with float32 sums, floats with float64 sums, or integers. A
 * line is a row of op(X). Sum s of line l is at s·lines + l. */
struct kind {
    size_t vectors;
    size_t sums;

    /* For an operand that is not stored transposed: computes all sums of one line. */
    void (*sum_row)(const void *row, const struct factors *by, void *sums, size_t lines, size_t line);

    /* For an operand that is stored transposed: adds a stored row to the sums of all lines. The stored row
     * has element `depth` of each line. */
    void (*add_row)(const void *row, const struct factors *by, size_t depth, void *sums, size_t lines);

    void (*make_vectors)(void *x, size_t length, uint64_t seed);
    void (*make_norms)(void *sums, size_t lines); /* NULL for integers, which have no norms */
};

/* --- sums in float64 --------------------------------------------------------------------------------- */

static void make_signs(void *x, size_t length, uint64_t seed) {
    double *signs = x;
    for (size_t index = 0; index < length; index++) {
        const uint64_t bits = mm_random_bits(seed, index);
        for (unsigned v = 0; v < VECTORS; v++)
            signs[v * length + index] = (bits >> v & 1) != 0 ? -1.0 : 1.0;
    }
}

/* Returns what an element adds to the last sum of a row, which the bound needs (verify.h). In a row of A, the
 * last sum is s. In a row of B or C, it is the sum of the squares, from which the row's norm is computed. */
static double last_term(enum part part, double element, double norm) {
    return part == OF_A ? fabs(element) * norm : element * element;
}

static double norm_of(const struct factors *by, size_t index, size_t last) {
    return by->part == OF_A ? ((const double *)by->numbers)[last * by->length + index] : 0.0;
}

static void sum_real_row(const void *data, const struct factors *by, void *sums, size_t lines, size_t line) {
    const double *row = data, *vectors = by->numbers;
    double own[SUMS] = {0.0};
    for (size_t index = 0; index < by->length; index++) {
        for (unsigned v = 0; v < VECTORS; v++)
            own[v] += row[index] * vectors[v * by->length + index];
        own[VECTORS] += last_term(by->part, row[index], norm_of(by, index, VECTORS));
    }
    for (unsigned s = 0; s < SUMS; s++)
        ((double *)sums)[s * lines + line] = own[s];
}

static void add_real_row(const void *data, const struct factors *by, size_t depth, void *sums, size_t lines) {
    const double *restrict row = data;
    const double *vectors = by->numbers;
    double *restrict own = sums;
    const double norm = norm_of(by, depth, VECTORS);
    for (unsigned v = 0; v < VECTORS; v++)
        for (size_t line = 0; line < lines; line++)
            own[v * lines + line] += row[line] * vectors[v * by->length + depth];
    for (size_t line = 0; line < lines; line++)
        own[VECTORS * lines + line] += last_term(by->part, row[line], norm);
}

static void make_real_norms(void *sums, size_t lines) {
    double *squares = (double *)sums + VECTORS * lines;
    for (size_t line = 0; line < lines; line++)
        squares[line] = sqrt(squares[line]);
}

static const struct kind real = {VECTORS, SUMS, sum_real_row, add_real_row, make_signs, make_real_norms};

/* --- sums of float64s, in twice the precision ---------------------------------------------------------- */

/* Adds an element to the sums of a row, which are `step` apart. For B and C the factors are 1 and -1, so the
 * products are exact and need no low part. */
static void add_precisely(double element, const struct factors *by, size_t index, double *sums, size_t step) {
    const double *vectors = (const double *)by->numbers + index;
    for (unsigned v = 0; v < VECTORS; v++) {
        double *high = sums + v * step, *low = sums + (VECTORS + v) * step;
        if (by->part == OF_A)
            mm_exact_add_product(high, low, element, vectors[v * by->length],
                                 vectors[(VECTORS + v) * by->length]);
        else
            mm_exact_add(high, low, element * vectors[v * by->length]);
    }
    if (by->part == OF_B) {
        sums[LARGEST * step] = fmax(sums[LARGEST * step], fabs(element));
        sums[LAST * step] += fabs(element);
    } else {
        sums[LAST * step] += last_term(by->part, element, norm_of(by, index, LAST));
    }
}

static void sum_precise_row(const void *data, const struct factors *by, void *sums, size_t lines,
                            size_t line) {
    const double *row = data;
    double own[PRECISE_SUMS] = {0.0};
    for (size_t index = 0; index < by->length; index++)
        add_precisely(row[index], by, index, own, 1);
    for (unsigned s = 0; s < PRECISE_SUMS; s++)
        ((double *)sums)[s * lines + line] = own[s];
}

static void add_precise_row(const void *data, const struct factors *by, size_t depth, void *sums,
                            size_t lines) {
    const double *row = data;
    for (size_t line = 0; line < lines; line++)
        add_precisely(row[line], by, depth, (double *)sums + line, lines);
}

static void make_precise_norms(void *sums, size_t lines) {
    const double *largest = (const double *)sums + LARGEST * lines;
    double *last = (double *)sums + LAST * lines;
    for (size_t line = 0; line < lines; line++)
        last[line] = sqrt(largest[line]) * sqrt(last[line]);
}

static const struct kind precise = {VECTORS,         PRECISE_SUMS, sum_precise_row,
                                    add_precise_row, make_signs,   make_precise_norms};

/* --- integers, modulo 2^64 ------------------------------------------------------------------------------ */

static void make_words(void *x, size_t length, uint64_t seed) {
    for (unsigned v = 0; v < WORDS; v++)
        for (size_t index = 0; index < length; index++)
            ((uint64_t *)x)[v * length + index] = mm_verify_word(seed, v, index);
}

static void sum_words_row(const void *data, const struct factors *by, void *sums, size_t lines, size_t line) {
    const uint64_t *row = data;
    for (unsigned v = 0; v < WORDS; v++) {
        const uint64_t *vector = (const uint64_t *)by->numbers + v * by->length;
        uint64_t sum = 0;
        for (size_t index = 0; index < by->length; index++)
            sum += row[index] * vector[index];
        ((uint64_t *)sums)[v * lines + line] = sum;
    }
}

static void add_words_row(const void *data, const struct factors *by, size_t depth, void *sums,
                          size_t lines) {
    const uint64_t *restrict row = data;
    for (unsigned v = 0; v < WORDS; v++) {
        const uint64_t factor = ((const uint64_t *)by->numbers)[v * by->length + depth];
        uint64_t *restrict own = (uint64_t *)sums + v * lines;
        for (size_t line = 0; line < lines; line++)
            own[line] += row[line] * factor;
    }
}

static const struct kind words = {WORDS, WORDS, sum_words_row, add_words_row, make_words, NULL};

/* --- all kinds ------------------------------------------------------------------------------------- */

static const struct kind *kind_of(enum mm_dtype dtype) {
    if (!mm_dtype_is_float(dtype))
        return &words;
    return mm_dtype_sum(dtype) == MM_FLOAT64 ? &precise : &real;
}

static size_t longest_row(const struct mm_product *product) {
    size_t longest = product->c.cols;
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        longest = mm_size_max(longest, mm_product_operand(product, index)->cols);
    return longest;
}

/* Returns how many rows of the addend and of the bias have sums. */
static size_t count_term_rows(const struct mm_product *product) {
    return (product->addend.rows > 0 ? product->m : 0) + (product->bias.rows > 0 ? 1 : 0);
}

size_t mm_verify_bytes(const struct mm_product *product) {
    const struct kind *kind = kind_of(product->a.dtype);
    const size_t rows = product->k + product->m + 1 + count_term_rows(product);
    return (kind->vectors * product->n + kind->sums * rows + longest_row(product)) *
           NUMBER_BYTES; /* the products of a stack use the memory one after another */
}

/* Converts a stored row to float64, or to words of 64 bits by sign extension. The addend and the bias may
 * begin at any address. */
static void widen(const struct mm_matrix *x, size_t row, void *wide) {
    const bool is_real = mm_dtype_is_float(x->dtype);
#define X(constant, name, type, word, sum, value, ...)                                                       \
    case constant: {                                                                                         \
        const size_t first = row * x->ld;                                                                    \
        for (size_t col = 0; is_real && col < x->cols; col++)                                                \
            ((double *)wide)[col] = (double)value(MM_READ(type, x->data, first + col));                      \
        for (size_t col = 0; !is_real && col < x->cols; col++)                                               \
            ((uint64_t *)wide)[col] = (uint64_t)(int64_t)value(MM_READ(type, x->data, first + col));         \
        break;                                                                                               \
    }
    MM_DTYPE_SWITCH(x->dtype, X)
#undef X
}

/* Generates a row of a random stream, as float64 or as words of 64 bits. */
static void generate(const struct mm_matrix *x, uint64_t stream, size_t row, void *wide) {
    for (size_t col = 0; col < x->cols; col++) {
        const double number = mm_random_number(x->dtype, stream, row * x->cols + col);
        if (mm_dtype_is_float(x->dtype))
            ((double *)wide)[col] = number;
        else
            ((uint64_t *)wide)[col] = (uint64_t)(int64_t)number;
    }
}

/* The parts of the check's memory: the vectors, the sums of B, of A, of one row of C, of the addend and of
 * the bias, and one converted row. */
struct parts {
    const struct kind *kind;
    char *x;
    char *of_b;
    char *of_a;
    char *of_c;
    char *of_addend;
    char *of_bias;
    char *wide;
    const uint64_t *stream; /* seed of the operand that is summed, or NULL if its elements are in memory */
};

static struct parts cut(const struct mm_product *product, void *memory) {
    struct parts parts = {.kind = kind_of(product->a.dtype), .x = memory};
    parts.of_b = parts.x + parts.kind->vectors * product->n * NUMBER_BYTES;
    parts.of_a = parts.of_b + parts.kind->sums * product->k * NUMBER_BYTES;
    parts.of_c = parts.of_a + parts.kind->sums * product->m * NUMBER_BYTES;
    parts.of_addend = parts.of_c + parts.kind->sums * NUMBER_BYTES;
    parts.of_bias =
        parts.of_addend + (product->addend.rows > 0 ? parts.kind->sums * product->m * NUMBER_BYTES : 0);
    parts.wide = parts.of_c + parts.kind->sums * (1 + count_term_rows(product)) * NUMBER_BYTES;
    return parts;
}

/* Adds `count` stored rows, beginning with row `first`, to the sums of the rows of op(X). */
static void multiply(const struct parts *parts, const struct mm_matrix *x, bool transpose,
                     const struct factors *by, void *sums, size_t first, size_t count) {
    const struct kind *kind = parts->kind;
    const size_t lines = transpose ? x->cols : x->rows;
    if (first == 0 && (transpose || x->cols == 0))
        memset(sums, 0, kind->sums * lines * NUMBER_BYTES);
    for (size_t row = first; row < first + count && x->cols > 0; row++) {
        if (parts->stream != NULL)
            generate(x, *parts->stream, row, parts->wide);
        else
            widen(x, row, parts->wide);
        if (transpose)
            kind->add_row(parts->wide, by, row, sums, lines);
        else
            kind->sum_row(parts->wide, by, sums, lines, row);
    }
}

/* Adds `count` stored rows of an operand, beginning with row `first`, to the operand's sums. If alpha is 0, k
 * is 0, so A and B are not read. */
static void sum_operand(const struct mm_product *product, const struct parts *parts,
                        enum mm_operand_index index, size_t first, size_t count) {
    const struct kind *kind = parts->kind;
    const struct mm_matrix *x = mm_product_operand(product, index);
    const bool is_a = index == MM_OPERAND_A;
    const bool transposes[] = {product->transpose_a, product->transpose_b, product->transpose_addend, false};
    char *const all_sums[] = {parts->of_a, parts->of_b, parts->of_addend, parts->of_bias};
    const struct factors by_x = {OF_B, parts->x, product->n}, by_b = {OF_A, parts->of_b, product->k};
    if (is_a && product->k == 0)
        memset(parts->of_a, 0, kind->sums * product->m * NUMBER_BYTES);
    if (index <= MM_OPERAND_B && product->k == 0)
        return;
    multiply(parts, x, transposes[index], is_a ? &by_b : &by_x, all_sums[index], first, count);
    if (!is_a && first + count == x->rows && kind->make_norms != NULL)
        kind->make_norms(all_sums[index], transposes[index] ? x->cols : x->rows);
}

/* The order in which the operands are summed. B comes before A, because the sums of A need the sums of B. */
static const enum mm_operand_index in_order[] = {MM_OPERAND_B, MM_OPERAND_A, MM_OPERAND_ADDEND,
                                                 MM_OPERAND_BIAS};

/* Copies the sums of one line to `own`. */
static void pick(const struct kind *kind, const void *sums, size_t lines, size_t line, double *own) {
    for (size_t s = 0; s < kind->sums; s++)
        own[s] = ((const double *)sums)[s * lines + line];
}

static void check_real(const struct parts *parts, const struct mm_product *product,
                       const struct mm_verify_bounds *bounds, size_t row,
                       struct mm_verification *verification) {
    const struct kind *kind = parts->kind;
    const size_t last = kind->sums - 1;
    double of_c[PRECISE_SUMS], own[PRECISE_SUMS], addend[PRECISE_SUMS] = {0.0}, bias[PRECISE_SUMS] = {0.0};
    struct mm_verify_sums sums = {0};
    pick(kind, parts->of_c, 1, 0, of_c);
    pick(kind, parts->of_a, product->m, row, own);
    if (product->addend.rows > 0)
        pick(kind, parts->of_addend, product->m, row, addend);
    if (product->bias.rows > 0)
        pick(kind, parts->of_bias, 1, 0, bias);
    mm_verify_apply(bounds, own, addend, bias, kind == &precise);
    for (unsigned v = 0; v < VECTORS; v++) {
        double difference = of_c[v] - own[v];
        if (kind == &precise)
            difference += of_c[VECTORS + v] - own[VECTORS + v];
        mm_verify_add(&sums, difference, own[v]);
    }
    mm_verify_row(verification, bounds, row, &sums, own[last], fabs(bounds->beta) * addend[last] + bias[last],
                  of_c[last]);
}

static void check_words(const struct parts *parts, const struct mm_product *product,
                        const struct mm_verify_bounds *bounds, size_t row,
                        struct mm_verification *verification) {
    const unsigned unused = 64 - 8 * (unsigned)mm_dtype_bytes(product->c.dtype);
    const uint64_t *of_c = (const void *)parts->of_c, *of_a = (const void *)parts->of_a;
    const uint64_t *of_addend = (const void *)parts->of_addend, *of_bias = (const void *)parts->of_bias;
    bool is_wrong = false;
    for (unsigned v = 0; v < WORDS; v++) {
        uint64_t sum = bounds->whole_alpha * of_a[v * product->m + row];
        if (product->addend.rows > 0)
            sum += bounds->whole_beta * of_addend[v * product->m + row];
        if (product->bias.rows > 0)
            sum += of_bias[v];
        is_wrong = is_wrong || (of_c[v] - sum) << unused != 0;
    }
    mm_verify_words_row(verification, row, is_wrong);
}

/* Checks the rows of `c`, which are the rows of C from row `first` on. The caller has computed the sums of A
 * and B. Row r of C has the number first_row + r in the verification. */
static void check_rows(const struct mm_product *product, enum mm_arithmetic arithmetic,
                       const struct parts *parts, const struct mm_matrix *c, size_t first, size_t first_row,
                       struct mm_verification *verification) {
    struct mm_verification rows = {.is_done = false};
    const struct mm_verify_bounds bounds = mm_verify_bounds_of(product, arithmetic);
    const struct factors by = {OF_C, parts->x, product->n};
    for (size_t row = 0; row < c->rows; row++) {
        widen(c, row, parts->wide);
        parts->kind->sum_row(parts->wide, &by, parts->of_c, 1, 0);
        if (parts->kind == &words)
            check_words(parts, product, &bounds, first + row, &rows);
        else
            check_real(parts, product, &bounds, first + row, &rows);
    }
    rows.row += first_row;
    if (parts->kind == &words)
        mm_verify_merge_words(verification, &rows);
    else
        mm_verify_merge(verification, &rows);
}

bool mm_verify_prepare(const struct mm_product *product, const uint64_t *streams, uint64_t seed, void *memory,
                       size_t *row) {
    struct parts parts = cut(product, memory);
    size_t first = *row;
    unsigned index = 0;
    while (index < MM_OPERANDS_MAX && first >= mm_product_operand(product, in_order[index])->rows)
        first -= mm_product_operand(product, in_order[index++])->rows;
    if (index == MM_OPERANDS_MAX)
        return false;
    const struct mm_matrix *x = mm_product_operand(product, in_order[index]);
    const size_t count = mm_size_min(x->rows - first, STEP_NUMBERS / x->cols + 1);
    if (*row == 0)
        parts.kind->make_vectors(parts.x, product->n, seed);
    if (streams != NULL && in_order[index] <= MM_OPERAND_B)
        parts.stream = &streams[in_order[index]];
    sum_operand(product, &parts, in_order[index], first, count);
    *row += count;
    return true;
}

void mm_verify_rows(const struct mm_product *product, enum mm_arithmetic arithmetic,
                    const struct mm_matrix *c, size_t first, void *memory,
                    struct mm_verification *verification) {
    const struct parts parts = cut(product, memory);
    check_rows(product, arithmetic, &parts, c, first, 0, verification);
}

/* `memory` keeps the vectors for all products, and the sums of B if the next product has the same B. */
void mm_verify_range(const struct mm_product *product, enum mm_arithmetic arithmetic, size_t first,
                     size_t count, void *memory, struct mm_verification *verification) {
    for (size_t index = first; index < first + count; index++) {
        const struct mm_product item = mm_product_item(product, index);
        const bool has_b = index > 0 && mm_product_item(product, index - 1).b.data == item.b.data;
        const struct parts parts = cut(&item, memory);
        assert(item.m > 0 && item.n > 0);
        if (index == 0)
            parts.kind->make_vectors(parts.x, item.n, verification->seed);
        for (unsigned next = has_b; next < MM_OPERANDS_MAX; next++) { /* B is first in in_order */
            const size_t rows = mm_product_operand(&item, in_order[next])->rows;
            if (in_order[next] <= MM_OPERAND_B || rows > 0)
                sum_operand(&item, &parts, in_order[next], 0, rows);
        }
        check_rows(&item, arithmetic, &parts, &item.c, 0, index * item.m, verification);
    }
}

void mm_verify(const struct mm_product *product, enum mm_arithmetic arithmetic, uint64_t seed, void *memory,
               struct mm_verification *verification) {
    *verification = (struct mm_verification){.is_done = true, .seed = seed};
    mm_verify_range(product, arithmetic, 0, mm_product_count(product), memory, verification);
}
