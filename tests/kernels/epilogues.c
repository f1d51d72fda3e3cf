/* The epilogues that products are tested with, and the data of their addend and bias. */
#include "tests/kernels/harness.h"

#include <math.h>
#include <string.h>

/* ANY is a random factor. For floating-point types it is not a whole number. */
enum factor { ZERO, ONE, ANY };

/* What the elements of the addend and the bias are. */
enum content {
    FAMILY,  /* numbers of the product's family of data */
    NOTHING, /* -0, or 0 for integers, which change no sum */
    NANS,    /* NaN, or -1 for integers */
};

static const struct {
    const char *name;
    enum factor alpha;
    enum factor beta;
    bool has_addend;
    bool has_bias;
    enum mm_activation activation;
    enum content content;
} rows[EPILOGUE_COUNT] = {
    {"alpha", ANY, ONE, false, false, MM_ACTIVATION_NONE, FAMILY},
    {"c", ONE, ONE, true, false, MM_ACTIVATION_NONE, FAMILY},
    {"beta c", ONE, ANY, true, false, MM_ACTIVATION_NONE, FAMILY},
    {"bias", ONE, ONE, false, true, MM_ACTIVATION_NONE, FAMILY},
    {"alpha, beta c, bias", ANY, ANY, true, true, MM_ACTIVATION_NONE, FAMILY},
    {"alpha 0, beta c, bias", ZERO, ANY, true, true, MM_ACTIVATION_NONE, FAMILY},
    {"alpha, beta 0", ANY, ZERO, true, false, MM_ACTIVATION_NONE, NANS},
    {"alpha, relu", ANY, ONE, false, false, MM_ACTIVATION_RELU, FAMILY},
    {"bias, relu", ONE, ONE, false, true, MM_ACTIVATION_RELU, FAMILY},
    {"alpha, beta c, bias, relu", ANY, ANY, true, true, MM_ACTIVATION_RELU, FAMILY},
    {"alpha, beta c, bias, gelu", ANY, ANY, true, true, MM_ACTIVATION_GELU, FAMILY},
    {"bias, gelu_tanh", ONE, ONE, false, true, MM_ACTIVATION_GELU_TANH, FAMILY},
    {"c, silu", ONE, ONE, true, false, MM_ACTIVATION_SILU, FAMILY},
    {"sigmoid", ONE, ONE, false, false, MM_ACTIVATION_SIGMOID, FAMILY},
    {"alpha, beta c, tanh", ANY, ANY, true, false, MM_ACTIVATION_TANH, FAMILY},
    {"c of -0, bias of -0", ONE, ONE, true, true, MM_ACTIVATION_NONE, NOTHING},
};

bool epilogue_suits(const struct family *family) {
    static const char *const keys[] = {"symmetric",    "signed_zeros", "subnormals",   "nonfinite",
                                       "cancellation", "words",        "extreme_words"};
    for (size_t index = 0; index < sizeof keys / sizeof *keys; index++)
        if (strcmp(family->key, keys[index]) == 0)
            return true;
    return false;
}

static union mm_scale make_factor(enum factor factor, enum mm_dtype sum, struct random *random) {
    const uint64_t bits = random_next(random);
    const double real = (bits & 1 ? 0.5 : -0.5) - (double)(int64_t)bits * 0x1p-63;
    union mm_scale scale = mm_scale_of(sum, factor == ONE);
    if (factor != ANY)
        return scale;
    if (sum == MM_FLOAT64)
        scale.of_double = real;
    else if (sum == MM_FLOAT32)
        scale.of_float = (float)real;
    else if (sum == MM_INT32)
        scale.of_uint32_t = (uint32_t)bits;
    else
        scale.of_uint64_t = bits;
    return scale;
}

/* Makes a matrix of C's type. */
static void make(struct operand *operand, const struct one_case *one, size_t rows_count, enum content content,
                 const struct family *family, struct random *random) {
    const enum mm_dtype dtype = one->c_dtype;
    const size_t cols = one->shape.n, count = rows_count * cols;
    struct lines lines = {
        .is_a = true, .dtype = dtype, .count = rows_count, .depth = cols, .line_step = cols, .depth_step = 1};
    operand_make(operand, family, random, &lines);
    if (content == FAMILY)
        return;
    const uint64_t whole = content == NANS ? UINT64_MAX : 0;
    const double real = content == NANS ? NAN : -0.0;
    for (size_t index = 0; index < count; index++) {
        if (mm_dtype_is_float(dtype)) {
            operand->numbers[index].real = real;
            mm_dtype_put(dtype, operand->elements, index, real);
        } else {
            const size_t bytes = mm_dtype_bytes(dtype);
            operand->numbers[index].whole = whole;
            memcpy((char *)operand->elements + index * bytes, &whole, bytes);
        }
    }
}

bool epilogue_make(struct one_case *one, unsigned index, const struct family *family, uint64_t seed) {
    const enum mm_dtype sum = mm_dtype_sum(one->dtype);
    struct random random = {random_mix(seed, 0xe911 + index)};
    if (!mm_dtype_is_float(one->dtype) && rows[index].activation > MM_ACTIVATION_RELU)
        return false;
    one->terms = rows[index].name;
    one->changes_nothing = rows[index].content == NOTHING;
    one->epilogue = (struct mm_epilogue){.is_set = true,
                                         .activation = rows[index].activation,
                                         .alpha = make_factor(rows[index].alpha, sum, &random),
                                         .beta = make_factor(rows[index].beta, sum, &random)};
    if (rows[index].has_addend)
        make(&one->addend, one, one->shape.m, rows[index].content, family, &random);
    if (rows[index].has_bias)
        make(&one->bias, one, 1, rows[index].content, family, &random);
    return true;
}

void epilogue_free(struct one_case *one) {
    operand_free(&one->addend);
    operand_free(&one->bias);
}
