/* float32 and float64 as text that reads back bit for bit. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
    MM_FLOAT_TEXT_MAX = 16,  /* "-1.23456789e-38", "-Infinity" with its quotes, fit */
    MM_DOUBLE_TEXT_MAX = 24, /* "-1.2345678901234567e-308" fits */
    MM_FLOAT_TEXT_ROOM = 24  /* what may be written to */
};

/* Writes value as a JSON token and returns its length, at most MM_FLOAT_TEXT_MAX; no NUL is added. Up to
 * MM_FLOAT_TEXT_ROOM bytes may be written over. Finite values are written as printf's %g does, with the
 * fewest digits from six to nine that read back; -0 as -0.0, since some readers take -0 for the integer; NaN
 * and infinities as strings, with quotes. */
size_t mm_float_text(float value, char *text);

/* The same for a float64, in the fewest of 15, 16 and 17 digits that read back (10¹⁷ > 2⁵³·10), and at most
 * MM_DOUBLE_TEXT_MAX bytes; nothing else is written. */
size_t mm_double_text(double value, char *text);

/* The same for an element of a narrower float of so many bits of exponent and mantissa (gpu/matrix/narrow.h),
 * in the fewest digits that read back as this element: from one to five. */
size_t mm_narrow_text(float value, unsigned exponent_bits, unsigned mantissa_bits, char *text);

/* The word for what JSON has no number for: "NaN", "Infinity", "-Infinity". Static. */
const char *mm_float_word(double value);

/* Finds the value that a word stands for; false if there is none. */
bool mm_float_of_word(const char *word, float *value);
