/* Fast writers of numbers and text, because every request needs them. Each function writes at `end`, adds no
 * NUL, and returns the new end. The caller provides the space. Any thread may call these functions. */
#pragma once

#include <stdint.h>
#include <string.h>

enum { MM_DIGITS_MAX = 20, MM_MILLIONTHS_MAX = 14 + 1 + 6 };

/* Writes a decimal number of at most MM_DIGITS_MAX characters. */
char *mm_put_digits(char *end, uint64_t number);

/* Writes the last `count` decimal digits, with leading zeros. */
char *mm_put_last_digits(char *end, uint64_t number, unsigned count);

/* Writes a hexadecimal number of at least `least` digits. */
char *mm_put_hex(char *end, uint64_t number, unsigned least);

/* Writes count/10⁶ as a decimal such as 1.234567, which has at most MM_MILLIONTHS_MAX characters. Callers
 * pass nanoseconds to write milliseconds. */
char *mm_put_millionths(char *end, uint64_t count);

/* Inline, so the compiler knows the length of a literal. */
static inline char *mm_put_text(char *end, const char *text) {
    const size_t length = strlen(text);
    memcpy(end, text, length);
    return end + length;
}
