/* float32 as text that reads back bit for bit. */
#ifndef MM_API_FLOAT_TEXT_H
#define MM_API_FLOAT_TEXT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MM_FLOAT_TEXT_MAX = 16 }; /* "-1.23456789e-38", "-Infinity" with its quotes, fit */

/* Writes value as a JSON token and returns its length, at most MM_FLOAT_TEXT_MAX; no NUL is added.
 * Finite values have nine significant digits at most (sufficient for float32, since 10⁹ > 2²⁴·10);
 * -0 is written -0.0, since some readers take -0 for the integer; NaN and infinities are the strings
 * "NaN", "Infinity", "-Infinity", quotes included. */
size_t mm_float_text(float value, char *text);

#ifdef __cplusplus
}
#endif
#endif
