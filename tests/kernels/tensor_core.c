/* Computes the model of tensor_core.h in integers. Truncation makes each addend a multiple of 2^(e −
 * fraction_bits), where e is the largest exponent of an addend. */
#include "tests/kernels/tensor_core.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { FLOAT_EXPONENT_MIN = -126 };

const struct tensor_core tensor_core_float16 = {.depth = TENSOR_CORE_DEPTH,
                                                .fraction_bits = 25,
                                                .sum_bits = 24,
                                                .exponent_min_a = -14,
                                                .exponent_min_b = -14};

const char *const tensor_core_names[TENSOR_CORE_ALIGNMENTS] = {"normalized", "as stored", "with zeros"};

static int exponent_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (int)(bits >> 23 & 0xff) - 127;
}

static int larger(int a, int b) {
    return a > b ? a : b;
}

static int factor_exponent(float x, int exponent_min, enum tensor_core_alignment alignment) {
    if (x == 0.0F)
        return exponent_min;
    const int exponent = exponent_of(x);
    return alignment == TENSOR_CORE_NORMALIZED ? exponent : larger(exponent, exponent_min);
}

/* Returns 2^exponent, which must be a normal float64. */
static double power(int exponent) {
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Truncates to sum_bits significant bits, at most 24. The result must not be subnormal. */
static float cut(double x, int sum_bits) {
    union {
        double value;
        uint64_t bits;
    } of = {.value = x};
    of.bits &= ~((UINT64_C(1) << (53 - sum_bits)) - 1);
    return (float)of.value;
}

float tensor_core_add(const struct tensor_core *core, const float *a, const float *b, float c,
                      enum tensor_core_alignment alignment) {
    int largest = c == 0.0F ? FLOAT_EXPONENT_MIN : exponent_of(c);
    for (unsigned i = 0; i < core->depth; i++)
        if (alignment == TENSOR_CORE_WITH_ZEROS || (a[i] != 0.0F && b[i] != 0.0F))
            largest = larger(largest, factor_exponent(a[i], core->exponent_min_a, alignment) +
                                          factor_exponent(b[i], core->exponent_min_b, alignment));
    const double quanta = power(core->fraction_bits - largest); /* 1 divided by the unit of `sum` */
    int64_t sum = (int64_t)((double)c * quanta);
    for (unsigned i = 0; i < core->depth; i++)
        sum += (int64_t)((double)a[i] * (double)b[i] * quanta);
    return cut((double)sum * power(largest - core->fraction_bits), core->sum_bits);
}
