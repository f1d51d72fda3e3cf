/* The epilogue of a product: D = act(alpha·op(A)·op(B) + beta·C + bias), where D is the result. This code
 * calls the matrix C of the formula the addend. The result of a product without an epilogue is its sums.
 *
 * The functions compute in the type of the sums. The result is rounded to D's type once, at the end. C and
 * CUDA code use the functions, and any thread may call them. */
#pragma once

#include <math.h>

#include "gpu/matrix/matrix.h"
#include "gpu/matrix/sums.h"

/* One row for each activation: constant, name in the API. */
#define MM_ACTIVATION_TABLE(X)                                                                               \
    X(MM_ACTIVATION_NONE, "none")                                                                            \
    X(MM_ACTIVATION_RELU, "relu")                                                                            \
    X(MM_ACTIVATION_GELU, "gelu")                                                                            \
    X(MM_ACTIVATION_GELU_TANH, "gelu_tanh")                                                                  \
    X(MM_ACTIVATION_SILU, "silu")                                                                            \
    X(MM_ACTIVATION_SIGMOID, "sigmoid")                                                                      \
    X(MM_ACTIVATION_TANH, "tanh")

enum mm_activation { MM_ACTIVATION_TABLE(MM_CONSTANT) MM_ACTIVATION_COUNT };

const char *mm_activation_name(enum mm_activation activation);

/* A factor (alpha or beta) in the type of the sums. The name of each member says the type. */
union mm_scale {
    float of_float;
    double of_double;
    uint32_t of_uint32_t; /* arithmetic is modulo 2³², so -1 is 2³² - 1 */
    uint64_t of_uint64_t;
};

/* Sets a factor to a whole number in the type of the sums (mm_dtype_sum). */
union mm_scale mm_scale_of(enum mm_dtype sum, int number);

/* Whether a factor is this whole number. */
bool mm_scale_is(enum mm_dtype sum, const union mm_scale *scale, int number);

/* Returns a factor as a float64. The sums must be floats. mm_scale_whole returns a factor of integer sums,
 * modulo 2⁶⁴. */
static inline double mm_scale_real(enum mm_dtype sum, const union mm_scale *scale) {
    return sum == MM_FLOAT64 ? scale->of_double : (double)scale->of_float;
}

static inline uint64_t mm_scale_whole(enum mm_dtype sum, const union mm_scale *scale) {
    return sum == MM_INT32 ? scale->of_uint32_t : scale->of_uint64_t;
}

/* The factors and the activation. If all members are zero, the product has no epilogue. */
struct mm_epilogue {
    bool is_set; /* if not set, D is the sums, and the other members are ignored */
    enum mm_activation activation;
    union mm_scale alpha;
    union mm_scale beta; /* used if the product has an addend */
};

/* What kernels need to compute the elements of D from their sums. */
struct mm_terms {
    struct mm_epilogue epilogue;
    enum mm_dtype dtype;    /* type of the addend's and the bias's elements */
    const void *addend;     /* elements of the addend, or NULL if there is no addend */
    size_t addend_row_step; /* distance of the addend's rows, in elements */
    size_t addend_col_step; /* distance of the addend's columns, in elements */
    const void *bias;       /* n elements, or NULL if there is no bias */
};

/* Return alpha·sum + beta·addend + bias. If `addend` or `bias` is NULL, the sum has no such term. Integers
 * wrap around. fma(alpha, sum, -0) is alpha·sum, rounded once. By default gcc, clang and nvcc do not fuse
 * it with the next term. */
#define MM_COMBINE_FLOATS(SUM, FMA)                                                                          \
    MM_HOST_AND_DEVICE SUM mm_combine_##SUM(const struct mm_epilogue *epilogue, SUM sum, const SUM *addend,  \
                                            const SUM *bias) {                                               \
        const SUM scaled = FMA(epilogue->alpha.of_##SUM, sum, -(SUM)0);                                      \
        const SUM x = addend == NULL ? scaled : FMA(epilogue->beta.of_##SUM, *addend, scaled);               \
        return bias == NULL ? x : x + *bias;                                                                 \
    }

#define MM_COMBINE_INTEGERS(SUM)                                                                             \
    MM_HOST_AND_DEVICE SUM mm_combine_##SUM(const struct mm_epilogue *epilogue, SUM sum, const SUM *addend,  \
                                            const SUM *bias) {                                               \
        return epilogue->alpha.of_##SUM * sum + (addend == NULL ? 0 : epilogue->beta.of_##SUM * *addend) +   \
               (bias == NULL ? 0 : *bias);                                                                   \
    }

MM_COMBINE_FLOATS(float, fmaf)
MM_COMBINE_FLOATS(double, fma)
MM_COMBINE_INTEGERS(uint32_t)
MM_COMBINE_INTEGERS(uint64_t)

/* Kernels do not inline large functions, because a thread may store dozens of elements. */
#ifdef __CUDACC__
#define MM_NOT_INLINED __host__ __device__ __noinline__ static inline
#else
#define MM_NOT_INLINED static inline
#endif

/* Returns 1/x. On a GPU the error is up to 2 units in the last place, because exact rounding takes a
 * subroutine. */
MM_HOST_AND_DEVICE float mm_reciprocal(float x) {
#ifdef __CUDA_ARCH__
    return __fdividef(1, x);
#else
    return 1 / x;
#endif
}

/* Computes the activations other than none and relu. gelu uses erfc. The other activations follow from s, the
 * logistic function of y: for example, tanh(x) = 2·s - 1 with y = 2x. 1.59577 is √(8/π), from the definition
 * of gelu_tanh. gelu, gelu_tanh and silu of -∞ are 0. */
#define MM_ACTIVATE(SUM, EXP, ERFC, RECIPROCAL)                                                              \
    MM_NOT_INLINED SUM mm_activate_##SUM(enum mm_activation activation, SUM x) {                             \
        SUM y = x, s = 0;                                                                                    \
        if (activation == MM_ACTIVATION_TANH)                                                                \
            y = 2 * x;                                                                                       \
        if (activation == MM_ACTIVATION_GELU_TANH)                                                           \
            y = (SUM)1.5957691216057308 * (x + (SUM)0.044715 * x * x * x);                                   \
        if (activation == MM_ACTIVATION_GELU)                                                                \
            s = (SUM)0.5 * ERFC(x * (SUM)-0.70710678118654752);                                              \
        else                                                                                                 \
            s = RECIPROCAL(1 + EXP(-y));                                                                     \
        if (activation == MM_ACTIVATION_SIGMOID)                                                             \
            return s;                                                                                        \
        if (activation == MM_ACTIVATION_TANH)                                                                \
            return 2 * s - 1;                                                                                \
        return x == -(SUM)INFINITY ? 0 : x * s;                                                              \
    }

MM_ACTIVATE(float, expf, erfcf, mm_reciprocal)
MM_ACTIVATE(double, exp, erfc, 1 /)

/* Return act(x). relu of a NaN is a NaN. */
#define MM_ACTIVATED(SUM)                                                                                    \
    MM_HOST_AND_DEVICE SUM mm_activated_##SUM(enum mm_activation activation, SUM x) {                        \
        if (activation == MM_ACTIVATION_NONE)                                                                \
            return x;                                                                                        \
        if (activation == MM_ACTIVATION_RELU)                                                                \
            return x <= 0 ? 0 : x;                                                                           \
        return mm_activate_##SUM(activation, x);                                                             \
    }

MM_ACTIVATED(float)
MM_ACTIVATED(double)

/* The only activation of integers is relu. */
MM_HOST_AND_DEVICE uint32_t mm_activated_uint32_t(enum mm_activation activation, uint32_t x) {
    return activation != MM_ACTIVATION_NONE && (int32_t)x < 0 ? 0 : x;
}
MM_HOST_AND_DEVICE uint64_t mm_activated_uint64_t(enum mm_activation activation, uint64_t x) {
    return activation != MM_ACTIVATION_NONE && (int64_t)x < 0 ? 0 : x;
}

/* Returns element (row, col) of D from its sum. */
#define MM_FINISH(SUM)                                                                                       \
    MM_HOST_AND_DEVICE SUM mm_finish_##SUM(const struct mm_terms *terms, size_t row, size_t col, SUM sum) {  \
        SUM addend = 0, bias = 0;                                                                            \
        if (terms->addend != NULL)                                                                           \
            addend = mm_load_##SUM(terms->dtype, terms->addend,                                              \
                                   row * terms->addend_row_step + col * terms->addend_col_step);             \
        if (terms->bias != NULL)                                                                             \
            bias = mm_load_##SUM(terms->dtype, terms->bias, col);                                            \
        const SUM x = mm_combine_##SUM(&terms->epilogue, sum, terms->addend == NULL ? NULL : &addend,        \
                                       terms->bias == NULL ? NULL : &bias);                                  \
        return mm_activated_##SUM(terms->epilogue.activation, x);                                            \
    }

MM_FINISH(float)
MM_FINISH(double)
MM_FINISH(uint32_t)
MM_FINISH(uint64_t)
