/* JSON by RFC 8259, as far as a checker of replies needs it. */
#include "tests/load/scan.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 16 };

struct mm_load_scan mm_load_scan_start(const char *text, size_t length) {
    return (struct mm_load_scan){.at = text, .end = text + length};
}

static void skip_spaces(struct mm_load_scan *scan) {
    while (scan->at < scan->end &&
           (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\r' || *scan->at == '\n'))
        scan->at++;
}

static bool fail(struct mm_load_scan *scan) {
    scan->failed = true;
    return false;
}

static char peek(struct mm_load_scan *scan) {
    skip_spaces(scan);
    if (scan->failed || scan->at == scan->end)
        return '\0';
    return *scan->at;
}

bool mm_load_scan_take(struct mm_load_scan *scan, char character) {
    if (peek(scan) != character || scan->at == scan->end)
        return false;
    scan->at++;
    return true;
}

bool mm_load_scan_expect(struct mm_load_scan *scan, char character) {
    return mm_load_scan_take(scan, character) || fail(scan);
}

bool mm_load_scan_more(struct mm_load_scan *scan, char close, bool *first) {
    if (scan->failed || mm_load_scan_take(scan, close))
        return false;
    if (!*first && !mm_load_scan_expect(scan, ','))
        return false;
    *first = false;
    return true;
}

bool mm_load_scan_string(struct mm_load_scan *scan, char *text, size_t text_bytes) {
    if (!mm_load_scan_expect(scan, '"'))
        return false;
    const char *start = scan->at;
    while (scan->at < scan->end && *scan->at != '"') {
        if ((unsigned char)*scan->at < 0x20)
            return fail(scan);
        scan->at += *scan->at == '\\' && scan->at + 1 < scan->end ? 2 : 1;
    }
    size_t length = (size_t)(scan->at - start);
    if (!mm_load_scan_expect(scan, '"'))
        return false;
    if (length >= text_bytes)
        length = text_bytes - 1;
    memcpy(text, start, length);
    text[length] = '\0';
    return true;
}

bool mm_load_scan_name(struct mm_load_scan *scan, char *name, size_t name_bytes) {
    return mm_load_scan_string(scan, name, name_bytes) && mm_load_scan_expect(scan, ':');
}

static bool is_digit(const struct mm_load_scan *scan) {
    return scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9';
}

static bool digits(struct mm_load_scan *scan) {
    if (!is_digit(scan))
        return fail(scan);
    while (is_digit(scan))
        scan->at++;
    return true;
}

static bool take_here(struct mm_load_scan *scan, const char *any_of) {
    if (scan->at == scan->end || strchr(any_of, *scan->at) == NULL)
        return false;
    scan->at++;
    return true;
}

bool mm_load_scan_number(struct mm_load_scan *scan, const char **text) {
    skip_spaces(scan);
    *text = scan->at;
    (void)take_here(scan, "-");
    bool zero = scan->at < scan->end && *scan->at == '0';
    const char *whole = scan->at;
    if (scan->failed || !digits(scan) || (zero && scan->at > whole + 1))
        return fail(scan);
    if (take_here(scan, ".") && !digits(scan))
        return false;
    if (take_here(scan, "eE")) {
        (void)take_here(scan, "+-");
        return digits(scan);
    }
    return true;
}

bool mm_load_scan_count(struct mm_load_scan *scan, size_t *count) {
    const char *text;
    if (!mm_load_scan_number(scan, &text))
        return false;
    for (const char *digit = text; digit < scan->at; digit++)
        if (*digit < '0' || *digit > '9')
            return fail(scan);
    *count = (size_t)strtoull(text, NULL, 10);
    return true;
}

static bool take_word(struct mm_load_scan *scan, const char *word) {
    size_t length = strlen(word);
    skip_spaces(scan);
    if (scan->failed || (size_t)(scan->end - scan->at) < length || memcmp(scan->at, word, length) != 0)
        return false;
    scan->at += length;
    return true;
}

bool mm_load_scan_boolean(struct mm_load_scan *scan, bool *value) {
    *value = take_word(scan, "true");
    return *value || take_word(scan, "false") || fail(scan);
}

static bool skip(struct mm_load_scan *scan, unsigned depth) {
    char text[2];
    const char *number;
    if (depth == DEPTH_MAX)
        return fail(scan);
    bool first = true;
    switch (peek(scan)) {
    case '{':
        scan->at++;
        while (mm_load_scan_more(scan, '}', &first))
            if (mm_load_scan_name(scan, text, sizeof text))
                skip(scan, depth + 1);
        return !scan->failed;
    case '[':
        scan->at++;
        while (mm_load_scan_more(scan, ']', &first))
            skip(scan, depth + 1);
        return !scan->failed;
    case '"':
        return mm_load_scan_string(scan, text, sizeof text);
    case 't':
        return take_word(scan, "true") || fail(scan);
    case 'f':
        return take_word(scan, "false") || fail(scan);
    case 'n':
        return take_word(scan, "null") || fail(scan);
    default:
        return mm_load_scan_number(scan, &number);
    }
}

bool mm_load_scan_skip(struct mm_load_scan *scan) {
    return skip(scan, 0);
}

bool mm_load_scan_done(struct mm_load_scan *scan) {
    skip_spaces(scan);
    return !scan->failed && scan->at == scan->end;
}
