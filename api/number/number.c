/* Reads JSON numbers in one pass: the first 19 significant digits as an integer, and a power of ten. One
 * multiplication usually gives the float32. If the result is near a tie or the number is longer, the C
 * library reads a copy of bounded length. */
#include "api/number/number.h"

#include "api/number/ten.h"
#include "api/slice.h"
#include "gpu/matrix/narrow.h"

#include <endian.h>
#include <fenv.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_MAX = 19 }; /* as many decimal digits as fit into 64 bits */

/* ±digits·10^exponent. `more`: other digits follow, and one of them is not 0. */
struct decimal {
    uint64_t digits;
    int64_t exponent;
    bool negative;
    bool more;
    bool whole; /* has neither point nor exponent */
    const char *text;
    const char *end;
};

static uint64_t load(const char *text) {
    uint64_t bytes;
    memcpy(&bytes, text, sizeof bytes);
    return le64toh(bytes);
}

/* Whether all bytes are ASCII digits, 0x30 to 0x39. A byte is a digit if its upper four bits are 3, both
 * before and after adding 6. */
static bool is_eight_digits(uint64_t bytes) {
    const uint64_t upper = UINT64_C(0xF0F0F0F0F0F0F0F0);
    return ((bytes & upper) | ((bytes + UINT64_C(0x0606060606060606)) & upper) >> 4) ==
           UINT64_C(0x3333333333333333);
}

/* Returns the value of eight digits; the first byte is the most significant one. Combines digits into pairs,
 * pairs into fours, and fours into eight. */
static uint64_t eight_digits(uint64_t bytes) {
    const uint64_t mask = UINT64_C(0x000000FF000000FF);
    bytes -= UINT64_C(0x3030303030303030);
    bytes = bytes * 10 + (bytes >> 8);
    return ((bytes & mask) * (100 + (UINT64_C(1000000) << 32)) +
            (bytes >> 16 & mask) * (1 + (UINT64_C(10000) << 32))) >>
           32;
}

/* Appends digits to *digits, which may overflow. Returns the end of the digits. */
static inline const char *read_digits(const char *at, const char *end, uint64_t *digits) {
    uint64_t value = *digits;
    while (end - at >= 8) {
        uint64_t bytes = load(at);
        if (!is_eight_digits(bytes))
            break;
        value = value * 100000000 + eight_digits(bytes);
        at += 8;
    }
    for (; at < end && mm_is_digit(*at); at++)
        value = value * 10 + (uint64_t)(*at - '0');
    *digits = value;
    return at;
}

/* Adds the exponent after an e to *exponent. NULL if the exponent has no digits. A huge exponent is cut to a
 * value that still outweighs the digits of any text that fits in memory. */
static const char *read_exponent(const char *at, const char *end, int64_t *exponent) {
    const int64_t exponent_max = INT64_C(1) << 56;
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    const char *first = at;
    int64_t value = 0;
    for (; at < end && mm_is_digit(*at); at++)
        if (value < exponent_max)
            value = value * 10 + (*at - '0');
    *exponent += negative ? -value : value;
    return at > first ? at : NULL;
}

/* Reads only the first DIGITS_MAX significant digits of a longer number. Each omitted digit adds 1 to the
 * exponent. */
static void truncate_digits(struct decimal *decimal) {
    int count = 0;
    decimal->digits = 0;
    for (const char *at = decimal->text; at < decimal->end && (*at | 0x20) != 'e'; at++) {
        if (!mm_is_digit(*at) || (count == 0 && *at == '0'))
            continue;
        if (count++ < DIGITS_MAX) {
            decimal->digits = decimal->digits * 10 + (uint64_t)(*at - '0');
        } else {
            decimal->exponent++;
            decimal->more |= *at != '0';
        }
    }
}

/* Splits a number and returns its end, or NULL if there is no number. Inlined, because a call and a struct in
 * memory would cost a third of the time. */
__attribute__((always_inline)) static inline const char *parse(const char *text, const char *end,
                                                               struct decimal *decimal) {
    const char *at = text;
    decimal->text = text;
    decimal->negative = at < end && *at == '-';
    at += decimal->negative;
    decimal->digits = 0;
    decimal->exponent = 0;
    decimal->more = false;
    const char *first = at;
    at = read_digits(at, end, &decimal->digits);
    ptrdiff_t count = at - first;
    if (count == 0 || (count > 1 && *first == '0'))
        return NULL;
    decimal->whole = true;
    if (at < end && *at == '.') {
        const char *fraction = ++at;
        at = read_digits(at, end, &decimal->digits);
        if (at == fraction)
            return NULL;
        decimal->exponent = fraction - at;
        count += at - fraction;
        decimal->whole = false;
    }
    if (at < end && (*at | 0x20) == 'e') {
        at = read_exponent(at + 1, end, &decimal->exponent);
        if (at == NULL)
            return NULL;
        decimal->whole = false;
    }
    decimal->end = at;
    if (count > DIGITS_MAX)
        truncate_digits(decimal);
    return at;
}

/* 800 digits are enough to round to a float64, because a midpoint of two neighbours has at most 767 digits.
 * Of all later digits, it matters only whether one is not 0. */
enum { COPY_DIGITS_MAX = 800, COPY_BYTES = COPY_DIGITS_MAX + 32 };

/* Writes the number without its sign, for strtod. The copy has no point, because the locale decides which
 * character is the point. decimal->exponent is the exponent of the last digit in decimal->digits. The copy's
 * exponent is limited to ±100000, because beyond this limit every number is 0 or infinite. */
static void copy_bounded(const struct decimal *decimal, char *copy) {
    const int64_t cut = 100000;
    int count = 0;
    bool more = false;
    for (const char *at = decimal->text; at < decimal->end && (*at | 0x20) != 'e'; at++) {
        if (!mm_is_digit(*at) || (count == 0 && *at == '0'))
            continue;
        if (count < COPY_DIGITS_MAX)
            copy[count++] = *at;
        else
            more |= *at != '0';
    }
    int64_t exponent = decimal->exponent - (count > DIGITS_MAX ? count - DIGITS_MAX : 0);
    if (count == 0)
        copy[count++] = '0';
    if (more) {
        copy[count++] = '1';
        exponent--;
    }
    exponent = exponent < -cut ? -cut : exponent > cut ? cut : exponent;
    snprintf(copy + count, COPY_BYTES - (size_t)count, "e%" PRId64, exponent);
}

/* Returns the nearest float32 if `narrow`, otherwise the nearest float64. Rounds only once. */
static double read_by_strtod(const struct decimal *decimal, bool narrow) {
    char copy[COPY_BYTES];
    copy_bounded(decimal, copy);
    return narrow ? (double)strtof(copy, NULL) : strtod(copy, NULL);
}

enum { FLOAT_BIAS = 127, FLOAT_BITS_INFINITE = 0x7f800000 };

/* Computes the bits of the float32 nearest to digits·10^exponent. Returns false if the product is too near a
 * midpoint to decide.
 *
 * `digits` is shifted up until its highest bit is set. The shifted digits times the power's 64 bits have 127
 * or 128 bits. Only the upper 64 bits are kept. Dropping the lower bits loses less than 1. The power's own
 * error, less than 1 in its last bit, also adds less than 1. So the number lies in [upper, upper + 2). */
static inline bool round_float32(uint64_t digits, int64_t exponent, uint32_t *bits) {
    if (digits == 0 || exponent < MM_TEN_MIN) { /* less than half the smallest float32 */
        *bits = 0;
        return true;
    }
    if (exponent >= FLT_MAX_10_EXP + 1) {
        *bits = FLOAT_BITS_INFINITE;
        return true;
    }
    const int shift = __builtin_clzll(digits);
    const uint64_t upper =
        (uint64_t)((unsigned __int128)(digits << shift) * mm_tens[exponent - MM_TEN_MIN] >> 64);
    const int top = (int)(upper >> 63);
    int biased = FLOAT_BIAS + 126 + top - shift + mm_ten_exponent((int)exponent);
    int dropped = 64 - FLT_MANT_DIG - 1 + top;
    if (biased < 1) { /* subnormal numbers have fewer bits */
        dropped += 1 - biased;
        biased = 1;
        if (dropped > 63)
            return false;
    }
    const uint64_t half = UINT64_C(1) << (dropped - 1);
    const uint64_t rest = upper & ((half << 1) - 1);
    if (rest - (half - 1) <= 1) /* too near the midpoint to decide */
        return false;
    /* The mantissa's highest bit and a carry out of the mantissa increase the exponent. */
    *bits = ((uint32_t)(biased - 1) << (FLT_MANT_DIG - 1)) + (uint32_t)(upper >> dropped) + (rest > half);
    return true;
}

const char *mm_number_float32(const char *text, const char *end, void *element, bool *fits) {
    struct decimal decimal;
    const char *stop = parse(text, end, &decimal);
    if (stop == NULL)
        return NULL;
    uint32_t bits;
    float value;
    if (decimal.exponent == 0 && decimal.digits <= INT64_MAX && !decimal.more) {
        value = (float)(int64_t)decimal.digits; /* the processor rounds once */
        memcpy(&bits, &value, sizeof bits);
    } else if (decimal.more || !round_float32(decimal.digits, decimal.exponent, &bits)) {
        value = (float)read_by_strtod(&decimal, true);
        memcpy(&bits, &value, sizeof bits);
    }
    if (bits >= FLOAT_BITS_INFINITE)
        *fits = false;
    bits |= (uint32_t)decimal.negative << 31;
    memcpy(element, &bits, sizeof bits);
    return stop;
}

/* Powers of ten up to 10²² and integers up to 2⁵³ are exact as doubles, so one operation rounds only once. */
enum { EXACT_MAX = 22 };
static const double tens[EXACT_MAX + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                           1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                           1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static bool round_float64(const struct decimal *decimal, double *value) {
    if (decimal->more || decimal->digits > UINT64_C(1) << DBL_MANT_DIG || decimal->exponent < -EXACT_MAX ||
        decimal->exponent > EXACT_MAX)
        return false;
    *value = (double)(int64_t)decimal->digits;
    if (decimal->exponent < 0)
        *value /= tens[-decimal->exponent];
    else
        *value *= tens[decimal->exponent];
    return true;
}

const char *mm_number_float64(const char *text, const char *end, void *element, bool *fits) {
    struct decimal decimal;
    const char *stop = parse(text, end, &decimal);
    if (stop == NULL)
        return NULL;
    double value;
    if (!round_float64(&decimal, &value))
        value = read_by_strtod(&decimal, false);
    if (isinf(value))
        *fits = false;
    value = decimal.negative ? -value : value;
    memcpy(element, &value, sizeof value);
    return stop;
}

/* Compares the number's absolute value with `nearest`, the float64 nearest to it. The result is negative, 0
 * or positive. Reads the number by strtod twice: rounded down and rounded up. */
static int compare_by_strtod(const struct decimal *decimal, double nearest) {
    char copy[COPY_BYTES];
    copy_bounded(decimal, copy);
    fesetround(FE_TOWARDZERO);
    const double below = strtod(copy, NULL);
    fesetround(FE_UPWARD);
    const double above = strtod(copy, NULL);
    fesetround(FE_TONEAREST);
    return (above > nearest) - (below < nearest);
}

/* Reads a number as a float32, rounded to odd. Rounding this float32 to a narrower type then gives what
 * rounding the number itself would give. If the nearest float64 is also a float32, the number may still be a
 * little smaller or larger, so its digits decide. */
static const char *read_to_odd(const char *text, const char *end, float *odd) {
    struct decimal decimal;
    double value;
    const char *stop = parse(text, end, &decimal);
    if (stop == NULL)
        return NULL;
    const bool is_quick = round_float64(&decimal, &value);
    if (!is_quick)
        value = read_by_strtod(&decimal, false);
    *odd = mm_round_to_odd(value);
    if (value != 0.0 && isfinite(value) && (double)*odd == value) {
        const double past = is_quick && decimal.exponent <= 0
                                ? fma(value, tens[-decimal.exponent], -(double)(int64_t)decimal.digits)
                                : -(double)compare_by_strtod(&decimal, value);
        if (past != 0.0)
            *odd = mm_round_to_odd(nextafter(value, past > 0.0 ? 0.0 : (double)INFINITY));
    }
    *odd = decimal.negative ? -*odd : *odd;
    return stop;
}

#define NARROW_READER(TYPE)                                                                                  \
    const char *mm_number_##TYPE(const char *text, const char *end, void *element, bool *fits) {             \
        float odd;                                                                                           \
        const char *stop = read_to_odd(text, end, &odd);                                                     \
        if (stop == NULL)                                                                                    \
            return NULL;                                                                                     \
        const mm_##TYPE nearest = mm_##TYPE##_of(odd);                                                       \
        if (!isfinite(mm_##TYPE##_value(nearest)))                                                           \
            *fits = false;                                                                                   \
        memcpy(element, &nearest, sizeof nearest);                                                           \
        return stop;                                                                                         \
    }

NARROW_READER(float16)
NARROW_READER(bfloat16)
NARROW_READER(float8_e4m3fn)
NARROW_READER(float8_e5m2)

/* Computes digits·10^exponent. False if the result is not whole or exceeds 64 bits. */
static bool to_whole(const struct decimal *decimal, uint64_t *magnitude) {
    uint64_t value = decimal->digits;
    int64_t exponent = decimal->exponent;
    if (decimal->more)
        return false;
    for (; value != 0 && exponent < 0; exponent++) {
        if (value % 10 != 0)
            return false;
        value /= 10;
    }
    for (; value != 0 && exponent > 0; exponent--)
        if (__builtin_mul_overflow(value, 10, &value))
            return false;
    *magnitude = value;
    return true;
}

static bool is_float64(uint64_t magnitude) {
    return magnitude == 0 || 64 - __builtin_clzll(magnitude) - __builtin_ctzll(magnitude) <= DBL_MANT_DIG;
}

/* Reads a whole number between `least` and `most`. `least` is 0 or -most − 1. */
static const char *read_whole(const char *text, const char *end, int64_t least, int64_t most, int64_t *value,
                              bool *fits) {
    struct decimal decimal;
    uint64_t magnitude = 0;
    const char *stop = parse(text, end, &decimal);
    if (stop == NULL)
        return NULL;
    const uint64_t magnitude_max = decimal.negative ? -(uint64_t)least : (uint64_t)most;
    if (!to_whole(&decimal, &magnitude) || magnitude > magnitude_max ||
        (!decimal.whole && !is_float64(magnitude)))
        *fits = false;
    *value = (int64_t)(decimal.negative ? -magnitude : magnitude);
    return stop;
}

#define WHOLE_READER(NAME, TYPE, LEAST, MOST)                                                                \
    const char *mm_number_##NAME(const char *text, const char *end, void *element, bool *fits) {             \
        int64_t value = 0;                                                                                   \
        const char *stop = read_whole(text, end, LEAST, MOST, &value, fits);                                 \
        const TYPE narrow = (TYPE)value;                                                                     \
        if (stop != NULL)                                                                                    \
            memcpy(element, &narrow, sizeof narrow);                                                         \
        return stop;                                                                                         \
    }

WHOLE_READER(int8, int8_t, INT8_MIN, INT8_MAX)
WHOLE_READER(uint8, uint8_t, 0, UINT8_MAX)
WHOLE_READER(bool, uint8_t, 0, 1)
WHOLE_READER(int32, int32_t, INT32_MIN, INT32_MAX)
WHOLE_READER(int64, int64_t, INT64_MIN, INT64_MAX)
