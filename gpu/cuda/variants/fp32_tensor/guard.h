/* The guard of fp32_tensor: how an element is scaled and split into two float16, what splitting loses, and
 * when an element of C is certified as accurate enough. Kernels, host and tests share these functions.
 *
 * Definitions. A line is a row of op(A) or a column of op(B). Scaling moves a line's largest magnitude into
 * [2^14, 2^15). amax is the largest scaled magnitude of a row, and bmax of a column. R is the exact scaled
 * element of C, and P is the same element of |op(A)|·|op(B)|. Let u = 2^-24. A step adds up t = min(k, 64)
 * products with w = ceil(t/16) instructions for high·high, and with 2w instructions for the small products
 * low·high and high·low. There are s = ceil(k/64) steps. A faint element is smaller than 2^-2. C differs from
 * R by at most the sum of these terms:
 *
 * 1. 8u·P for splitting. Splitting x loses d = x - high - low, and |d| <= 2^-23·|x| = 2u·|x| unless x is
 * faint. Both operands together lose 4u·P. Leaving out low·low costs 2^-22·P = 4u·P.
 * 2. bmax·Da + amax·Db for splitting faint elements. Da is the sum of |d| over the faint elements of the row,
 * and Db over those of the column.
 * 3. (t/2 + 2.5w)·u·P for high·high. An instruction truncates each product and the previous sum by at most
 * 2^-25 of the largest addend, which is u/2·P. The new sum is truncated by at most 2u·P.
 * 4. 2^-10·(t + 5w)·u·P for the small products. There are twice as many small products as products in term 3,
 * and their sum is at most 2^-10·P.
 * 5. 2^-8·u·P for subnormal halves of elements that are not faint. wgmma treats a subnormal half as if its
 * exponent were -14. A product of this half and a half of exponent e then has exponent e - 14, however small
 * the product is. If e - 14 is the largest exponent of the instruction, each of the 16 other addends is
 * truncated by at most 2^(e-14-25), and all together by 2^-35·2^e. Only the low half of x can be subnormal
 * here. One instruction uses this half, with a high half of at least 2^e as its partner. Term 6 counts
 * subnormal partners. So x costs at most 2^-35 of its partner. Because |x| is at least 2^-2, this is at most
 * 2^-33 = 2^-9·u of the product of both elements. Both operands together cost twice as much.
 * 6. bmax·Da + amax·Db for subnormal halves of faint elements, if Da and Db also count 2^-35 for each of
 * these elements. A subnormal low half costs as much as in term 5. If the high half is subnormal, the low
 * half is 0. The high half is used in two instructions, but in one of them its partner is a low half, at most
 * 2^-11 of bmax.
 * 7. (s - 1)·u·P for adding up the steps, with rounding.
 *
 * Halves are rounded, so their products may exceed P by 2^-10. For terms 2 and 6 this gives
 * E = (1 + 2^-10)·(bmax·Da + amax·Db). For term 3 it adds 0.05u·P, and then terms 3, 4 and 5 together are
 * less than (t/2 + 2.5w + 1/2)·u·P. So |C - R| <= E + c·u·P with c = 8.5 + t/2 + 2.5w + (s - 1).
 *
 * An error of up to (2k + 16)·u·P counts as right. So E may be as large as (2k + 16 - c)·u·P, which is
 * positive for every k. P is unknown, but P >= |R| >= |C| - E - c·u·P. So an element is certified if
 *     |C| >= E·(1 + (1 + c·u) / ((2k + 16 - c)·u)).
 *
 * This bound allows errors that grow with k. Therefore E must also be small for C as a whole: the sum of E²
 * over all certified elements may be at most 2^-46 of the sum of C² (both unscaled). Then float16's limited
 * range adds at most 2^-23 to the relative error of C in the Frobenius norm. That is half of the 2.5e-7 that
 * docs/accuracy.md allows. The product kernel leaves elements out of both sums if each E is at most
 * 2^-23/sqrt(count) of the largest |C| among `count` elements, because these elements meet the limit by
 * themselves.
 *
 * Terms 5 and 6 rest on a published model of the tensor cores (P. Xie and others, arXiv 2511.10909), in which
 * a product with a zero has no exponent. tests/kernels/guard compares the model with the hardware. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Elements of k in a step. After each step the kernel adds the tensor cores' sum to a sum in registers. */
enum { MM_FP32_STEP = 64 };

/* The unit of a line's loss, which is the sum of mm_fp32_lost over the line's elements. */
#define MM_FP32_LOST_UNIT 0x1p-40f

enum { MM_FP32_POWER_MIN = -126, MM_FP32_POWER_MAX = 127 };

/* --- what differs between C and CUDA ------------------------------------------------------------- */

#ifdef __CUDACC__
#include <cuda_fp16.h>
#define MM_FP32_FUNCTION __host__ __device__ static __forceinline__
typedef __half mm_fp32_half;

MM_FP32_FUNCTION mm_fp32_half mm_fp32_to_half(float x) {
    return __float2half_rn(x);
}

MM_FP32_FUNCTION float mm_fp32_from_half(mm_fp32_half x) {
    return __half2float(x);
}
#else
#include "gpu/matrix/narrow.h"
#define MM_FP32_FUNCTION static inline
typedef float mm_fp32_half; /* C11 has no float16, so a float replaces it */

static inline mm_fp32_half mm_fp32_to_half(float x) {
    return mm_float16_value(mm_float16_of(x));
}

static inline float mm_fp32_from_half(mm_fp32_half x) {
    return x;
}
#endif

/* Rounds x up to a float, on the host. The device has instructions for this. */
MM_FP32_FUNCTION float mm_fp32_round_up(double x) {
    const float nearest = (float)x;
    return (double)nearest < x ? nextafterf(nearest, INFINITY) : nearest;
}

MM_FP32_FUNCTION float mm_fp32_to_float_up(unsigned long long count) {
#ifdef __CUDA_ARCH__
    return __ull2float_ru(count);
#else
    return mm_fp32_round_up((double)count);
#endif
}

MM_FP32_FUNCTION float mm_fp32_multiply_up(float x, float y) {
#ifdef __CUDA_ARCH__
    return __fmul_ru(x, y);
#else
    return mm_fp32_round_up((double)x * (double)y);
#endif
}

MM_FP32_FUNCTION float mm_fp32_fma_up(float x, float y, float z) {
#ifdef __CUDA_ARCH__
    return __fmaf_ru(x, y, z);
#else
    return mm_fp32_round_up((double)x * (double)y + (double)z);
#endif
}

/* Returns 2^exponent, which must be a normal float. */
MM_FP32_FUNCTION float mm_fp32_power_of_two(int exponent) {
    const int32_t bits = (exponent + 127) * (1 << 23);
    float power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* Returns the bits of |x|. Compared as integers, the bits order floats by magnitude, with Inf and NaN
 * last. */
MM_FP32_FUNCTION unsigned mm_fp32_magnitude(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x7fffffffu;
}

/* Returns the exponent of a line's scale. `max_bits` has the bits of the line's largest magnitude, which
 * divided by 2^exponent lies in [2^14, 2^15). The exponent is -163 to 113, and 0 for a line of zeros. */
MM_FP32_FUNCTION int mm_fp32_exponent(unsigned max_bits) {
    if (max_bits == 0)
        return 0;
    if (max_bits >= 0x00800000u)
        return (int)(max_bits >> 23) - 127 - 14;
    return (int)(mm_fp32_magnitude((float)max_bits) >> 23) - 127 - 149 - 14; /* subnormal: max_bits·2^-149 */
}

/* The scale 2^-exponent as two factors, because 2^163 is not a float. */
struct mm_fp32_scale {
    float first;
    float second;
};

MM_FP32_FUNCTION struct mm_fp32_scale mm_fp32_scale_of(unsigned max_bits) {
    const int exponent = -mm_fp32_exponent(max_bits);
    const struct mm_fp32_scale scale = {mm_fp32_power_of_two(exponent / 2),
                                        mm_fp32_power_of_two(exponent - exponent / 2)};
    return scale;
}

MM_FP32_FUNCTION float mm_fp32_scaled(float x, struct mm_fp32_scale scale) {
    return x * scale.first * scale.second;
}

/* Returns x·2^exponent. Only a subnormal result is rounded, because the factor is a power of two. */
MM_FP32_FUNCTION float mm_fp32_unscaled(float x, int exponent) {
    if (exponent >= MM_FP32_POWER_MIN && exponent <= MM_FP32_POWER_MAX)
        return x * mm_fp32_power_of_two(exponent);
    return scalbnf(x, exponent);
}

/* Splits y into high + low, and returns the loss |y - high - low|. */
MM_FP32_FUNCTION float mm_fp32_split(float y, mm_fp32_half *high, mm_fp32_half *low) {
    *high = mm_fp32_to_half(y);
    const float rest = y - mm_fp32_from_half(*high);
    *low = mm_fp32_to_half(rest);
    return fabsf(rest - mm_fp32_from_half(*low));
}

/* Scaled elements below this magnitude are faint: splitting may lose more than 2^-23 of an element. */
#define MM_FP32_FAINT 0x1p-2f

/* Whether x is faint, so the guard must count what x loses. y is the scaled x. */
MM_FP32_FUNCTION bool mm_fp32_is_faint(float x, float y) {
    return x != 0.0f && fabsf(y) < MM_FP32_FAINT;
}

MM_FP32_FUNCTION bool mm_fp32_is_subnormal(mm_fp32_half x) {
    const float size = fabsf(mm_fp32_from_half(x));
    return size > 0.0f && size < 0x1p-14f;
}

/* The largest cost of a subnormal half, in MM_FP32_LOST_UNIT (2^-35). */
#define MM_FP32_SUBNORMAL_LOST 32u

/* Returns the loss that the guard counts for x, in MM_FP32_LOST_UNIT. Returns 0 if x is not faint. */
MM_FP32_FUNCTION unsigned mm_fp32_lost(float x, struct mm_fp32_scale scale) {
    const float y = mm_fp32_scaled(x, scale);
    mm_fp32_half high;
    mm_fp32_half low;
    const float lost = mm_fp32_split(y, &high, &low) / MM_FP32_LOST_UNIT;
    const bool is_coarse = mm_fp32_is_subnormal(high) || mm_fp32_is_subnormal(low);
    /* If scaling rounds x to 0, less than one unit is lost. */
    const unsigned units = y == 0.0f ? 1 : (unsigned)ceilf(lost) + (is_coarse ? MM_FP32_SUBNORMAL_LOST : 0);
    return mm_fp32_is_faint(x, y) ? units : 0;
}

/* --- certifying ---------------------------------------------------------------------------------- */

/* A scaled row of op(A) or column of op(B). mm_fp32_line_of multiplies the members `lost` and `largest` of a
 * row by mm_fp32_threshold. */
struct mm_fp32_line {
    float lost;    /* sum of the losses of the faint elements */
    float largest; /* largest magnitude of the elements */
    int exponent;
} __attribute__((aligned(16)));

/* Returns a line from its loss in MM_FP32_LOST_UNIT and the bits of its largest magnitude. Rounds both values
 * up, so the guard errs on the safe side. `factor` must be mm_fp32_threshold for rows of op(A), and 1 for
 * columns of op(B). */
MM_FP32_FUNCTION struct mm_fp32_line mm_fp32_line_of(unsigned max_bits, unsigned long long lost,
                                                     float factor) {
    struct mm_fp32_line line;
    float largest;
    memcpy(&largest, &max_bits, sizeof largest);
    line.exponent = mm_fp32_exponent(max_bits);
    line.lost =
        mm_fp32_multiply_up(mm_fp32_multiply_up(mm_fp32_to_float_up(lost), MM_FP32_LOST_UNIT), factor);
    line.largest = mm_fp32_multiply_up(mm_fp32_unscaled(largest, -line.exponent), factor);
    return line;
}

/* Returns the smallest scaled magnitude at which an element of C is certified. */
MM_FP32_FUNCTION float mm_fp32_least(struct mm_fp32_line row, struct mm_fp32_line col) {
    return mm_fp32_fma_up(row.lost, col.largest, mm_fp32_multiply_up(row.largest, col.lost));
}

/* Returns the factor of bmax·Da + amax·Db in the bound for certified elements (top of this file). k must not
 * be 0. */
MM_FP32_FUNCTION float mm_fp32_threshold(unsigned k) {
    const double unit = 0x1p-24;
    const unsigned step = MM_FP32_STEP;
    const unsigned depth = k < step ? k : step;
    const unsigned steps = k / step + (k % step != 0);
    const unsigned instructions = (depth + 15) / 16;
    const double c = 8.5 + depth / 2.0 + 2.5 * instructions + (steps - 1.0);
    const double slack = (2.0 * k + 16.0 - c) * unit;
    return (float)((1.0 + 0x1p-10) * (1.0 + (1.0 + c * unit) / slack) * (1.0 + 0x1p-22));
}

/* The largest allowed ratio of the sum of E² to the sum of C²: 2^-23, squared. */
#define MM_FP32_RANGE_SQUARES 0x1p-46

/* Returns the error bound E divided by mm_fp32_least, rounded up. k must not be 0. */
MM_FP32_FUNCTION float mm_fp32_range_share(unsigned k) {
    return (float)((1.0 + 0x1p-10) * (1.0 + 0x1p-22) / mm_fp32_threshold(k));
}
