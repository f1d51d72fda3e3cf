/* Writes a float32 like printf's %g, with the fewest digits from six to nine that read back as the number.
 * Uses only integer arithmetic. For a float64, the file uses printf. The point is always '.', because this
 * program never calls setlocale. */
#include "api/number/float_text.h"

#include "api/number/digits.h"
#include "api/number/ten.h"

#include <assert.h>
#include <endian.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOAT_BITS_INFINITE = 0x7f800000, FLOAT_DIGITS_MAX = 9 };
enum { DOUBLE_DIGITS_MIN = 15, DOUBLE_DIGITS_MAX = 17 };

static const struct {
    const char *word;
    float value;
} specials[] = {{"NaN", NAN}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}};

enum { SPECIAL_COUNT = sizeof specials / sizeof specials[0] };

const char *mm_float_word(double value) {
    return specials[isnan(value) ? 0 : value > 0 ? 1 : 2].word;
}

bool mm_float_of_word(const char *word, float *value) {
    unsigned index = 0;
    while (index < SPECIAL_COUNT && strcmp(specials[index].word, word) != 0)
        index++;
    if (index < SPECIAL_COUNT)
        *value = specials[index].value;
    return index < SPECIAL_COUNT;
}

static bool is_special(double value) {
    return value == 0 || !isfinite(value);
}

static size_t special_text(double value, char *text) {
    if (value == 0)
        return (size_t)(mm_put_text(text, signbit(value) ? "-0.0" : "0") - text);
    return (size_t)(mm_put_text(mm_put_text(mm_put_text(text, "\""), mm_float_word(value)), "\"") - text);
}

/* A finite float32 other than 0: mantissa·2^exponent. The mantissa has 24 bits. `unit` is the value that the
 * type's lowest bit has in the mantissa. It exceeds 1 if the number is subnormal or of a narrow type. */
struct parts {
    uint64_t mantissa;
    int exponent;
    uint64_t unit;
    bool is_least; /* the mantissa is a power of two, so the next lower number is only half a unit away */
};

static inline struct parts split(uint32_t bits) {
    enum { BIAS = 127 + FLT_MANT_DIG - 1 };
    const uint64_t hidden = UINT64_C(1) << (FLT_MANT_DIG - 1);
    const uint64_t mantissa = bits & (hidden - 1);
    const int biased = (int)(bits >> (FLT_MANT_DIG - 1) & 0xff);
    if (biased > 0)
        return (struct parts){mantissa | hidden, biased - BIAS, 1, mantissa == 0 && biased > 1};
    const int shift = __builtin_clzll(mantissa) - (64 - FLT_MANT_DIG);
    return (struct parts){mantissa << shift, 1 - BIAS - shift, UINT64_C(1) << shift, false};
}

static inline uint64_t multiply(uint64_t a, uint64_t b) {
    return (uint64_t)((unsigned __int128)a * b >> 64);
}

/* A number, multiplied by the power of ten that gives it nine digits before the point. `below` and `above`
 * are the distances to the midpoints between the number and its neighbours. All three are in units of
 * 2^-POINT. */
struct scaled {
    uint64_t value, below, above;
    int exponent; /* decimal exponent of the number */
    bool is_even; /* the mantissa is even, so a decimal exactly on a midpoint reads back as the number */
};

enum { POINT = 33, DOUBT = 3 };

/* Each result is less than two units too small: less than one because the power of ten has only 64 bits, and
 * less than one because bits below 2^-POINT are dropped. This error changes no decision. A decimal of six to
 * eight digits that is so near to a midpoint of float32 is exactly the midpoint. A float32 that is so near to
 * the middle of two such decimals is exactly the middle. */
static inline struct scaled scale(const struct parts *parts) {
    /* 78913/2¹⁸ is log10(2). The estimate is right or 1 too low. If it is too low, the result has ten
     * digits. */
    int exponent = (parts->exponent + FLT_MANT_DIG - 1) * 78913 >> 18;
    int power = FLOAT_DIGITS_MAX - 1 - exponent;
    const int guessed_shift = parts->exponent + mm_ten_exponent(power) + POINT + 64 - 5;
    exponent += multiply(parts->mantissa << guessed_shift, mm_tens[power - MM_TEN_MIN]) >=
                UINT64_C(1000000000) << (POINT - 5);
    power = FLOAT_DIGITS_MAX - 1 - exponent;
    const int shift = parts->exponent + mm_ten_exponent(power) + POINT + 64;
    const uint64_t ten = mm_tens[power - MM_TEN_MIN];
    const uint64_t half = multiply(parts->unit << (shift - 1), ten);
    return (struct scaled){.value = multiply(parts->mantissa << shift, ten),
                           .below = half >> parts->is_least,
                           .above = half,
                           .exponent = exponent,
                           .is_even = (parts->mantissa & parts->unit) == 0};
}

/* Rounds to nine digits. No float32 is halfway between two decimals of nine digits, so there are no ties. */
static inline uint64_t round_to_one(const struct scaled *scaled) {
    return (scaled->value + (UINT64_C(1) << (POINT - 1))) >> POINT;
}

/* Rounds the nine digits to a multiple of `unit`, which is a power of ten. Ties go to even. */
static inline uint64_t round_to(const struct scaled *scaled, uint64_t unit) {
    const uint64_t whole = scaled->value >> POINT;
    const bool has_fraction = (scaled->value & ((UINT64_C(1) << POINT) - 1)) != 0;
    const uint64_t quotient = whole / unit;
    const uint64_t twice = 2 * (whole % unit) + has_fraction; /* twice the remainder; a fraction adds 1 */
    return (quotient + (twice + (quotient & 1) > unit)) * unit;
}

/* Whether the decimal reads back as the number. Has no branches, because the CPU would mispredict half. */
static inline bool reads_back(const struct scaled *scaled, uint64_t digits) {
    const uint64_t decimal = digits << POINT;
    const uint64_t is_below = -(uint64_t)(decimal < scaled->value);
    const uint64_t away = ((decimal - scaled->value) ^ is_below) - is_below;
    const uint64_t allowed = scaled->above - ((scaled->above - scaled->below) & is_below);
    return away + DOUBT < allowed + (scaled->is_even ? 2 * DOUBT : 0);
}

static inline uint64_t choose(bool first, uint64_t x, uint64_t y) {
    return y ^ ((x ^ y) & -(uint64_t)first);
}

/* Returns nine digits: the fewest, but at least six, that read back as the number, and then zeros. *precision
 * becomes the count of digits before these zeros. If six digits suffice, seven and eight suffice too. */
static inline uint64_t choose_digits(const struct scaled *scaled, int *precision) {
    const uint64_t eight = round_to(scaled, 10), seven = round_to(scaled, 100), six = round_to(scaled, 1000);
    const bool is_eight = reads_back(scaled, eight);
    const bool is_seven = reads_back(scaled, seven);
    const bool is_six = reads_back(scaled, six);
    *precision = FLOAT_DIGITS_MAX - is_eight - is_seven - is_six;
    return choose(is_six, six, choose(is_seven, seven, choose(is_eight, eight, round_to_one(scaled))));
}

/* Returns eight decimal digits as bytes, the highest digit in the lowest byte. Splits the number into groups
 * of four digits, then into pairs and digits; each step splits all groups at once. Multiplies by 10486/2²⁰
 * instead of 1/100, and by 103/2¹⁰ instead of 1/10. For such small numbers, the results are exact. */
static inline uint64_t spread_digits(uint64_t number) {
    number = number / 10000 | (number % 10000) << 32;
    const uint64_t hundreds = number * 10486 >> 20 & UINT64_C(0x0000007F0000007F);
    number = (number - hundreds * 100) << 16 | hundreds;
    const uint64_t tens = number * 103 >> 10 & UINT64_C(0x000F000F000F000F);
    return (number - tens * 10) << 8 | tens;
}

/* Nine digits as characters. `first` is the highest digit. `others` has the other eight digits, the highest
 * of them in the lowest byte. `count` excludes zeros at the end. */
struct digits {
    char first;
    uint64_t others;
    int count;
};

static inline struct digits make_digits(uint64_t number) {
    const uint64_t spread = spread_digits(number % 100000000);
    return (struct digits){.first = (char)('0' + number / 100000000),
                           .others = spread + UINT64_C(0x3030303030303030),
                           .count = FLOAT_DIGITS_MAX - (spread == 0 ? 8 : __builtin_clzll(spread) / 8)};
}

/* Writes eight characters, even if fewer are needed. */
static inline void put_eight(uint64_t characters, char *text) {
    characters = htole64(characters);
    memcpy(text, &characters, sizeof characters);
}

static inline size_t write_fraction(const struct digits *digits, int zeros, char *text) {
    memcpy(text, "0.00000", 8);
    char *first = text + 2 + zeros;
    *first = digits->first;
    put_eight(digits->others, first + 1);
    return (size_t)(first + digits->count - text);
}

/* Always writes the point, but the returned length excludes the point if no digit follows. */
static inline size_t write_fixed(const struct digits *digits, int whole, char *text) {
    text[0] = digits->first;
    put_eight(digits->others, text + 1);
    text[whole] = '.';
    put_eight(digits->others >> (8 * (whole - 1) & 63), text + whole + 1);
    return (size_t)(digits->count > whole ? digits->count + 1 : whole);
}

static size_t write_exponent(const struct digits *digits, int exponent, char *text) {
    char *end = text + write_fixed(digits, 1, text);
    const int magnitude = abs(exponent);
    *end++ = 'e';
    *end++ = exponent < 0 ? '-' : '+';
    *end++ = (char)('0' + magnitude / 10);
    *end++ = (char)('0' + magnitude % 10);
    return (size_t)(end - text);
}

/* Writes number·10^(exponent − 8), as %g with this precision does. `number` has nine digits. */
static inline size_t write_number(bool is_negative, uint64_t number, int exponent, int precision,
                                  char *text) {
    enum { FIXED_MIN = -4 };    /* below this decimal exponent %g writes an e */
    if (number == 1000000000) { /* rounding has added a digit */
        number /= 10;
        exponent++;
    }
    const struct digits digits = make_digits(number);
    *text = '-';
    text += is_negative;
    if (exponent < FIXED_MIN || exponent >= precision)
        return is_negative + write_exponent(&digits, exponent, text);
    if (exponent < 0)
        return is_negative + write_fraction(&digits, -1 - exponent, text);
    return is_negative + write_fixed(&digits, exponent + 1, text);
}

static inline bool is_special_of(uint32_t bits) {
    return (bits & FLOAT_BITS_INFINITE) == FLOAT_BITS_INFINITE || bits << 1 == 0;
}

size_t mm_float_text(float value, char *text) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (is_special_of(bits))
        return special_text((double)value, text);
    const struct parts parts = split(bits);
    const struct scaled scaled = scale(&parts);
    int precision;
    const uint64_t number = choose_digits(&scaled, &precision);
    return write_number(bits >> 31, number, scaled.exponent, precision, text);
}

/* Splits an element of a narrow type, given as a float32. `unit` becomes the lowest bit of that type's
 * mantissa. */
static struct parts split_narrow(uint32_t bits, unsigned exponent_bits, unsigned mantissa_bits) {
    const int least_exponent = 2 - (1 << (exponent_bits - 1)); /* smallest exponent of normal numbers */
    struct parts parts = split(bits);
    const int exponent = parts.exponent + FLT_MANT_DIG - 1;
    const int subnormal = exponent < least_exponent ? least_exponent - exponent : 0;
    parts.unit = UINT64_C(1) << (FLT_MANT_DIG - 1 - (int)mantissa_bits + subnormal);
    parts.is_least = parts.mantissa == UINT64_C(1) << (FLT_MANT_DIG - 1) && exponent > least_exponent;
    return parts;
}

size_t mm_narrow_text(float value, unsigned exponent_bits, unsigned mantissa_bits, char *text) {
    enum { PRECISION = 6 }; /* %g writes numbers from 10⁶ on with an exponent */
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (is_special_of(bits))
        return special_text((double)value, text);
    const struct parts parts = split_narrow(bits, exponent_bits, mantissa_bits);
    const struct scaled scaled = scale(&parts);
    uint64_t unit = 100000000;
    while (unit > 1 && !reads_back(&scaled, round_to(&scaled, unit)))
        unit /= 10;
    return write_number(bits >> 31, round_to(&scaled, unit), scaled.exponent, PRECISION, text);
}

size_t mm_double_text(double value, char *text) {
    if (is_special(value))
        return special_text(value, text);
    char token[MM_DOUBLE_TEXT_MAX + 1];
    int length = 0;
    for (int digits = DOUBLE_DIGITS_MIN; digits <= DOUBLE_DIGITS_MAX; digits++) {
        length = snprintf(token, sizeof token, "%.*g", digits, value);
        if (digits == DOUBLE_DIGITS_MAX || strtod(token, NULL) == value)
            break;
    }
    assert(length > 0 && length <= MM_DOUBLE_TEXT_MAX);
    memcpy(text, token, (size_t)length);
    return (size_t)length;
}
