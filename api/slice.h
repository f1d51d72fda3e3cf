/* A slice is a part of a text and has no NUL at its end. Any thread may call these functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

struct mm_slice {
    const char *start;
    size_t length;
};

/* Makes a slice of a whole text. NULL becomes a slice that starts with NULL. */
static inline struct mm_slice mm_slice_of(const char *text) {
    return (struct mm_slice){text, text == NULL ? 0 : strlen(text)};
}

static inline bool mm_slice_is(struct mm_slice slice, const char *text) {
    return slice.length == strlen(text) && memcmp(slice.start, text, slice.length) == 0;
}

static inline bool mm_slice_is_any_case(struct mm_slice slice, const char *text) {
    return slice.length == strlen(text) && strncasecmp(slice.start, text, slice.length) == 0;
}

static inline bool mm_is_digit(char character) {
    return (unsigned char)(character - '0') <= 9;
}

/* Takes the first item of a list, which separators divide, from *rest. An empty list has one empty item.
 * After the last item rest->start is NULL. Returns false if it already was NULL. */
static inline bool mm_slice_next(struct mm_slice *rest, char separator, struct mm_slice *item) {
    if (rest->start == NULL)
        return false;
    const char *end = memchr(rest->start, separator, rest->length);
    *item = (struct mm_slice){rest->start, end == NULL ? rest->length : (size_t)(end - rest->start)};
    *rest = end == NULL ? (struct mm_slice){NULL, 0}
                        : (struct mm_slice){end + 1, rest->length - item->length - 1};
    return true;
}

/* Reads a decimal number without a sign. False if the slice is empty or has anything but digits. A number
 * above 2⁶⁴−1 becomes 2⁶⁴−1, and sets *overflows unless `overflows` is NULL. */
static inline bool mm_slice_whole(struct mm_slice digits, uint64_t *number, bool *overflows) {
    bool is_above = false;
    *number = 0;
    for (size_t index = 0; index < digits.length; index++) {
        if (!mm_is_digit(digits.start[index]))
            return false;
        is_above = is_above || __builtin_mul_overflow(*number, 10, number) ||
                   __builtin_add_overflow(*number, (uint64_t)(digits.start[index] - '0'), number);
    }
    if (is_above)
        *number = UINT64_MAX;
    if (overflows != NULL)
        *overflows = is_above;
    return digits.length > 0;
}

static inline bool mm_is_blank(char character) {
    return character == ' ' || character == '\t';
}

static inline const char *mm_skip_blanks(const char *at, const char *end) {
    while (at < end && mm_is_blank(*at))
        at++;
    return at;
}

/* UTF-8's byte order mark, which Windows programs write at the beginning of text files. */
#define MM_BYTE_ORDER_MARK "\xEF\xBB\xBF"

static inline const char *mm_skip_mark(const char *at, const char *end) {
    const size_t bytes = sizeof MM_BYTE_ORDER_MARK - 1;
    return (size_t)(end - at) >= bytes && memcmp(at, MM_BYTE_ORDER_MARK, bytes) == 0 ? at + bytes : at;
}

static inline struct mm_slice mm_slice_trim(const char *start, const char *end) {
    start = mm_skip_blanks(start, end);
    while (end > start && mm_is_blank(end[-1]))
        end--;
    return (struct mm_slice){start, (size_t)(end - start)};
}
