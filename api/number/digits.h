/* Text for what every request pays for: elements, headers, and its line in the log. Each function writes to
 * `end`, without a zero behind, and returns where the next character goes; the caller has the room. Any
 * thread may call these functions. */
#pragma once

#include <stdint.h>
#include <string.h>

enum { MM_DIGITS_MAX = 20, MM_MILLIONTHS_MAX = 14 + 1 + 6 };

/* Decimal, of MM_DIGITS_MAX characters at most. */
char *mm_put_digits(char *end, uint64_t number);

/* The last `count` digits, with zeros in front if it has fewer. */
char *mm_put_last_digits(char *end, uint64_t number, unsigned count);

/* Hexadecimal, of `least` to 16 digits. */
char *mm_put_hex(char *end, uint64_t number, unsigned least);

/* So many millionths as a decimal: 1.234567. Nanoseconds become milliseconds. */
char *mm_put_millionths(char *end, uint64_t count);

/* Inline, so the length of a literal is known when it is compiled. */
static inline char *mm_put_text(char *end, const char *text) {
    const size_t length = strlen(text);
    memcpy(end, text, length);
    return end + length;
}
