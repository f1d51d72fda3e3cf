/* float32 and float64 as text that reads back bit for bit. Any thread may call these functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
    MM_FLOAT_TEXT_MAX = 16,  /* "-1.23456789e-38" fits, and "-Infinity" with its quotes */
    MM_DOUBLE_TEXT_MAX = 24, /* "-1.2345678901234567e-308" fits */
    MM_FLOAT_TEXT_ROOM = 24  /* bytes that may be overwritten */
};

/* Writes value as a JSON token and returns its length, at most MM_FLOAT_TEXT_MAX; no NUL is added. Up to
 * MM_FLOAT_TEXT_ROOM bytes may be overwritten. Finite values are written as printf's %g does, with the fewest
 * digits from six to nine that read back. -0 is written as -0.0, because some readers take -0 for an integer.
 * NaN and infinities are written as strings, with quotes. */
size_t mm_float_text(float value, char *text);

/* Writes a float64 as a JSON token, with the fewest of 15, 16 and 17 digits that read back (10¹⁷ > 2⁵³·10).
 * Returns its length, at most MM_DOUBLE_TEXT_MAX; nothing else is overwritten. mm_float_text explains -0, NaN
 * and infinities. */
size_t mm_double_text(double value, char *text);

/* Writes an element of a narrower float (gpu/matrix/narrow.h) as a JSON token, with the fewest digits, one to
 * five, that read back as this element. mm_float_text explains the rest. */
size_t mm_narrow_text(float value, unsigned exponent_bits, unsigned mantissa_bits, char *text);

/* The word for a value that JSON has no number for: "NaN", "Infinity", "-Infinity". Static. */
const char *mm_float_word(double value);

/* Sets *value to what "NaN", "Infinity" or "-Infinity" means; false for any other word. */
bool mm_float_of_word(const char *word, float *value);
