/* Writes numbers by hand: printf's way from a double costs a microsecond for each. */
#include "server/digits.h"

#include <string.h>

static char *put(char *end, uint64_t number, unsigned base, unsigned least) {
    static const char digits[] = "0123456789abcdef";
    char text[MM_DIGITS_MAX];
    unsigned first = sizeof text;
    while (number > 0 || sizeof text - first < least) {
        text[--first] = digits[number % base];
        number /= base;
    }
    memcpy(end, text + first, sizeof text - first);
    return end + (sizeof text - first);
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
