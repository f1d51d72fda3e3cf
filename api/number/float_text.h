/* Writes float32 and float64 as text that reads back bit for bit. Any thread may call these functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
    MM_FLOAT_TEXT_MAX = 16,   /* "-1.23456789e-38" fits, and "-Infinity" with its quotes */
    MM_DOUBLE_TEXT_MAX = 24,  /* "-1.2345678901234567e-308" fits */
    MM_FLOAT_TEXT_BUFFER = 24 /* bytes that mm_float_text and mm_narrow_text may write to */
};

/* Writes value as a JSON token and returns its length, at most MM_FLOAT_TEXT_MAX; no NUL is added. Up to
 * MM_FLOAT_TEXT_BUFFER bytes may be written over. Finite values are written as printf's %g does, with the
 * fewest digits from six to nine that read back; -0 as -0.0, because some readers take -0 for the integer;
 * NaN and infinities as strings, with quotes. */
size_t mm_float_text(float value, char *text);

/* Writes a float64 as a JSON token and returns its length, at most MM_DOUBLE_TEXT_MAX; nothing else is
 * written, and no NUL is added. Finite values get the fewest of 15, 16 or 17 digits that read back. -0, NaN
 * and infinities are written as mm_float_text writes them. */
size_t mm_double_text(double value, char *text);

/* Writes an element of a narrow float type (gpu/matrix/narrow.h), which has exponent_bits and mantissa_bits.
 * Writes as mm_float_text does, but with the fewest digits that read back as this element: one to five. */
size_t mm_narrow_text(float value, unsigned exponent_bits, unsigned mantissa_bits, char *text);

/* Returns the word for a NaN or an infinity: "NaN", "Infinity", "-Infinity". Static. */
const char *mm_float_word(double value);

/* Sets *value to the value of "NaN", "Infinity" or "-Infinity"; false for other words. */
bool mm_float_of_word(const char *word, float *value);
