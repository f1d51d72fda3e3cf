/* Numbers as text for what every request pays for: its headers and its line in the log. Each function writes
 * to `end`, without a zero behind, and returns where the next character goes; the caller has the room. */
#ifndef MM_SERVER_DIGITS_H
#define MM_SERVER_DIGITS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MM_DIGITS_MAX = 20, MM_HEX_DIGITS_MAX = 16, MM_MILLISECONDS_MAX = 14 + 1 + 6 };

/* Decimal, of MM_DIGITS_MAX characters at most. */
char *mm_put_digits(char *end, uint64_t number);

/* Hexadecimal, of at least so many digits. */
char *mm_put_hex(char *end, uint64_t number, unsigned least);

/* Nanoseconds as milliseconds: 1.234567. */
char *mm_put_milliseconds(char *end, uint64_t ns);

#ifdef __cplusplus
}
#endif
#endif
