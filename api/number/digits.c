/* Writes numbers by hand: printf's way from a double costs a microsecond for each. */
#include "api/number/digits.h"

#include <string.h>

static char *put(char *end, uint64_t number, unsigned least) {
    char text[MM_DIGITS_MAX];
    unsigned first = sizeof text;
    while (number > 0 || sizeof text - first < least) {
        text[--first] = (char)('0' + number % 10);
        number /= 10;
    }
    return mempcpy(end, text + first, sizeof text - first);
}

char *mm_put_digits(char *end, uint64_t number) {
    return put(end, number, 1);
}

char *mm_put_hex(char *end, uint64_t number, unsigned least) {
    unsigned digits = least;
    while (digits < 16 && number >> 4 * digits != 0)
        digits++;
    while (digits-- > 0)
        *end++ = "0123456789abcdef"[number >> 4 * digits & 15];
    return end;
}

char *mm_put_milliseconds(char *end, uint64_t ns) {
    end = put(end, ns / 1000000, 1);
    *end++ = '.';
    return put(end, ns % 1000000, 6);
}
