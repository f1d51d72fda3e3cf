/* Writes numbers by hand: printf's way from a double costs a microsecond for each. */
#include "api/number/digits.h"

#include <string.h>

static inline char *put(char *end, uint64_t number, unsigned base, unsigned least) {
    char text[MM_DIGITS_MAX];
    unsigned first = sizeof text;
    while (number > 0 || sizeof text - first < least) {
        text[--first] = "0123456789abcdef"[number % base];
        number /= base;
    }
    return mempcpy(end, text + first, sizeof text - first);
}

char *mm_put_digits(char *end, uint64_t number) {
    return put(end, number, 10, 1);
}

char *mm_put_hex(char *end, uint64_t number, unsigned least) {
    return put(end, number, 16, least);
}

char *mm_put_milliseconds(char *end, uint64_t ns) {
    end = put(end, ns / 1000000, 10, 1);
    *end++ = '.';
    return put(end, ns % 1000000, 10, 6);
}
