/* Writes floats as text that reads back bit for bit. Any thread may call these functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
    MM_FLOAT_TEXT_MAX = 16,   /* "-1.23456789e-38" fits, and "-Infinity" with its quotes */
    MM_DOUBLE_TEXT_MAX = 24,  /* "-1.2345678901234567e-308" fits */
    MM_FLOAT_TEXT_BUFFER = 24 /* bytes that a float32 writer may overwrite */
};

/* Writes a JSON number without a NUL. Returns its length, at most MM_FLOAT_TEXT_MAX, but may overwrite
 * MM_FLOAT_TEXT_BUFFER bytes. The format is printf's %g with the fewest digits, from six to nine, that read
 * back as the value. -0 becomes -0.0, because some readers take -0 for the integer. NaN and infinities become
 * strings with quotes. */
size_t mm_float_text(float value, char *text);

/* Writes a JSON number without a NUL. Returns its length, at most MM_DOUBLE_TEXT_MAX. A finite value has 15,
 * 16 or 17 digits: the fewest that read back. -0, NaN and infinities are written as by mm_float_text. */
size_t mm_double_text(double value, char *text);

/* Writes an element of a narrow float type (gpu/matrix/narrow.h), as mm_float_text does, but with one to five
 * digits: the fewest that read back as this element. exponent_bits and mantissa_bits describe the type. */
size_t mm_narrow_text(float value, unsigned exponent_bits, unsigned mantissa_bits, char *text);

/* Returns the static text "NaN", "Infinity" or "-Infinity". */
const char *mm_float_word(double value);

/* Reads "NaN", "Infinity" or "-Infinity". False for other words. */
bool mm_float_of_word(const char *word, float *value);
