/* Writes numbers without printf, which takes a microsecond for each number. */
#include "api/number/digits.h"

char *mm_put_last_digits(char *end, uint64_t number, unsigned count) {
    for (unsigned place = count; place-- > 0; number /= 10)
        end[place] = (char)('0' + number % 10);
    return end + count;
}

char *mm_put_digits(char *end, uint64_t number) {
    unsigned count = 1;
    for (uint64_t power = 10; count < MM_DIGITS_MAX && number >= power; power *= 10)
        count++;
    return mm_put_last_digits(end, number, count);
}

char *mm_put_hex(char *end, uint64_t number, unsigned least) {
    unsigned digits = least;
    while (digits < 16 && number >> 4 * digits != 0)
        digits++;
    while (digits-- > 0)
        *end++ = "0123456789abcdef"[number >> 4 * digits & 15];
    return end;
}

char *mm_put_millionths(char *end, uint64_t count) {
    end = mm_put_digits(end, count / 1000000);
    *end++ = '.';
    return mm_put_last_digits(end, count, 6);
}
