/* Numbers as text, against printf's. */
#include "api/number/digits.h"
#include "tests/unit/unit.h"

#include <inttypes.h>

enum { TEXT_BYTES = 32 };

/* The text of so many bytes is one that a number was written to, of which nothing lies behind. */
static void expect(const char *end, char *text, const char *expected) {
    assert_ptr_equal(end, text + strlen(expected));
    assert_memory_equal(text, expected, strlen(expected));
    for (const char *behind = end; behind < text + TEXT_BYTES; behind++)
        assert_int_equal(*behind, '#');
    memset(text, '#', TEXT_BYTES);
}

static void numbers_are_as_printf_writes_them(void **state) {
    uint64_t number = 0;
    char text[TEXT_BYTES];
    memset(text, '#', sizeof text);
    for (unsigned step = 0; step < 140; step++) {
        char expected[TEXT_BYTES];
        snprintf(expected, sizeof expected, "%" PRIu64, number);
        expect(mm_put_digits(text, number), text, expected);
        snprintf(expected, sizeof expected, "%" PRIu64 ".%06" PRIu64, number / 1000000, number % 1000000);
        expect(mm_put_milliseconds(text, number), text, expected);
        number = step % 2 == 0 ? number * 2 + 1 : number + 1;
    }
    expect(mm_put_digits(text, UINT64_MAX), text, "18446744073709551615");
    expect(mm_put_milliseconds(text, UINT64_MAX), text, "18446744073709.551615");
}

RUN_TESTS(numbers_are_as_printf_writes_them)
