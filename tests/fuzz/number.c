/* Fuzzes the number parsers. Results must match strtof, strtod or strtold, and a second parser here. */
#include "tests/fuzz/fuzz.h"

#include "api/element.h"

#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_digits(const char *at) {
    return at + strspn(at, "0123456789");
}

/* Returns the end of the JSON number at the start of the text, or NULL if there is no complete number. */
static const char *number_end(const char *text) {
    const char *first = text + (*text == '-');
    const char *at = skip_digits(first);
    if (at == first || (*first == '0' && at > first + 1))
        return NULL;
    if (*at == '.') {
        const char *fraction = at + 1;
        at = skip_digits(fraction);
        if (at == fraction)
            return NULL;
    }
    if (*at == 'e' || *at == 'E') {
        const char *exponent = at + 1 + (at[1] == '+' || at[1] == '-');
        at = skip_digits(exponent);
        if (at == exponent)
            return NULL;
    }
    return at;
}

static long double read_rounded(const char *number, int rounding) {
    fesetround(rounding);
    const long double value = strtold(number, NULL);
    fesetround(FE_TONEAREST);
    return value;
}

/* Returns whether number.h must read the number as an exact integer. A long double holds every int64_t. */
static bool hold_whole(const char *number, int64_t least, int64_t most, int64_t *whole) {
    const long double value = read_rounded(number, FE_DOWNWARD);
    if (value != read_rounded(number, FE_UPWARD) || value != rintl(value) || value < (long double)least ||
        value > (long double)most)
        return false;
    *whole = (int64_t)value;
    return strpbrk(number, ".eE") == NULL || (long double)(double)value == value;
}

/* Copies the word to memory of its size, so a sanitizer reports reads past the end, and reads the copy. */
static const char *read_as(mm_number_reader *reader, struct slice word, void *element, bool *held) {
    *held = true;
    char *copy = word.bytes == 0 ? malloc(1) : fuzz_copy_bytes(word);
    const char *stop = reader(copy, copy + word.bytes, element, held);
    const char *in_word = stop == NULL ? NULL : word.text + (stop - copy);
    free(copy);
    return in_word;
}

static void check_floats(struct slice word, const char *number) {
    float read, nearest = strtof(number, NULL);
    double read_double, nearest_double = strtod(number, NULL);
    bool held;
    read_as(mm_number_float32, word, &read, &held);
    REQUIRE(held == !isinf(nearest));
    REQUIRE(!held || memcmp(&read, &nearest, sizeof read) == 0);
    read_as(mm_number_float64, word, &read_double, &held);
    REQUIRE(held == !isinf(nearest_double));
    REQUIRE(!held || memcmp(&read_double, &nearest_double, sizeof read_double) == 0);
}

static void check_whole(struct slice word, const char *number) {
    int32_t read;
    int64_t read_long, whole;
    bool held;
    read_as(mm_number_int32, word, &read, &held);
    REQUIRE(held == hold_whole(number, INT32_MIN, INT32_MAX, &whole));
    REQUIRE(!held || read == whole);
    read_as(mm_number_int64, word, &read_long, &held);
    REQUIRE(held == hold_whole(number, INT64_MIN, INT64_MAX, &whole));
    REQUIRE(!held || read_long == whole);
}

static void check_word(struct slice word) {
    char *text = fuzz_copy_text(word);
    const char *end = number_end(text);
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
        int64_t element;
        bool held;
        const char *stop = read_as(mm_element(dtype)->read, word, &element, &held);
        REQUIRE(end == NULL ? stop == NULL : stop == word.text + (end - text));
        REQUIRE(held || stop != NULL);
    }
    if (end != NULL) {
        text[end - text] = '\0';
        check_floats(word, text);
        check_whole(word, text);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct slice rest = {(const char *)data, bytes};
    while (rest.bytes > 0)
        check_word(fuzz_split(&rest, ' '));
    return 0;
}
