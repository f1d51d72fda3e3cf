/* Writers of text that every request needs: elements, headers, the log line. Each function writes to `end`,
 * adds no NUL, and returns where the next character goes. The caller provides the space. Any thread may call
 * these functions. */
#pragma once

#include <stdint.h>
#include <string.h>

enum { MM_DIGITS_MAX = 20, MM_MILLIONTHS_MAX = 14 + 1 + 6 };

/* Writes a decimal number, of at most MM_DIGITS_MAX characters. */
char *mm_put_digits(char *end, uint64_t number);

/* Writes the last `count` decimal digits, with leading zeros. */
char *mm_put_last_digits(char *end, uint64_t number, unsigned count);

/* Writes a hexadecimal number with at least `least` digits, padded with zeros. */
char *mm_put_hex(char *end, uint64_t number, unsigned least);

/* Writes count/10⁶ as a decimal such as 1.234567, at most MM_MILLIONTHS_MAX characters: nanoseconds as
 * milliseconds. */
char *mm_put_millionths(char *end, uint64_t count);

/* Inline, so the length of a literal is known when it is compiled. */
static inline char *mm_put_text(char *end, const char *text) {
    const size_t length = strlen(text);
    memcpy(end, text, length);
    return end + length;
}
