/* Text for what every request pays for: elements, headers, and its line in the log. Each function writes to
 * `end`, without a zero behind, and returns where the next character goes; the caller has the room. Any
 * thread may call these functions. */
#ifndef MM_API_NUMBER_DIGITS_H
#define MM_API_NUMBER_DIGITS_H

#include <stdint.h>

enum { MM_DIGITS_MAX = 20, MM_MILLISECONDS_MAX = 14 + 1 + 6 };

/* Decimal, of MM_DIGITS_MAX characters at most. */
char *mm_put_digits(char *end, uint64_t number);

/* Nanoseconds as milliseconds: 1.234567. */
char *mm_put_milliseconds(char *end, uint64_t ns);

char *mm_put_text(char *end, const char *text);

#endif
