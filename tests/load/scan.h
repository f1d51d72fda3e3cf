/* A scanner of JSON text, strict in its grammar: the caller says what it expects, token by token. It
 * builds no tree, and decodes no escapes. */
#ifndef MM_LOAD_SCAN_H
#define MM_LOAD_SCAN_H

#include <stdbool.h>
#include <stddef.h>

/* Once anything was not as expected, `failed` stays set and every call returns false. */
struct mm_load_scan {
    const char *at;
    const char *end;
    bool failed;
};

/* The text must be followed by a NUL byte, and outlive the scan. */
struct mm_load_scan mm_load_scan_start(const char *text, size_t length);

/* Takes the character where it is the next one after spaces; else nothing happens. */
bool mm_load_scan_take(struct mm_load_scan *scan, char character);

/* As mm_load_scan_take, but it must be there. */
bool mm_load_scan_expect(struct mm_load_scan *scan, char character);

/* Whether another element, or member, comes before `close`, which is taken:
 * for (bool first = true; mm_load_scan_more(scan, ']', &first);) … */
bool mm_load_scan_more(struct mm_load_scan *scan, char close, bool *first);

/* A string, cut to what fits, with its escapes as they stand. */
bool mm_load_scan_string(struct mm_load_scan *scan, char *text, size_t text_bytes);

/* A member's name and its colon. */
bool mm_load_scan_name(struct mm_load_scan *scan, char *name, size_t name_bytes);

/* A number; *text is where it starts, so that the caller can read it as it likes. */
bool mm_load_scan_number(struct mm_load_scan *scan, const char **text);

/* A number that is whole and not negative. */
bool mm_load_scan_count(struct mm_load_scan *scan, size_t *count);

/* true or false. */
bool mm_load_scan_boolean(struct mm_load_scan *scan, bool *value);

/* Any value at all. */
bool mm_load_scan_skip(struct mm_load_scan *scan);

/* Whether nothing failed and nothing is left but spaces. */
bool mm_load_scan_done(struct mm_load_scan *scan);

#endif
