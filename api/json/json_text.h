/* The JSON tokenizer (RFC 8259): reads an object token by token, while its text arrives. Does not know what
 * the members mean, and allocates nothing. */
#pragma once

#include "api/value.h"
#include "gpu/status.h"

enum { MM_JSON_DEPTH_MAX = 64 }; /* deepest nesting of arrays and objects */

/* What mm_json_next has read. */
enum mm_json_event {
    MM_JSON_NAME,  /* a member's name; the token includes the quotes */
    MM_JSON_VALUE, /* a string, a number, or a word such as true */
    MM_JSON_OPEN,  /* the [ or { that begins a value */
    MM_JSON_CLOSE, /* the ] or } that ends a value */
    MM_JSON_END,
    MM_JSON_WAIT, /* nothing, because the next chunk is missing */
    MM_JSON_FAULT /* malformed text: call mm_json_fail */
};

/* A token's place in the text: offset and length in bytes. */
struct mm_json_token {
    enum mm_value_kind kind;
    size_t at;
    size_t bytes;
};

/* What the reader expects next. */
enum mm_json_place {
    MM_JSON_BEFORE, /* the { at the beginning of the text */
    MM_JSON_FIRST_NAME,
    MM_JSON_NEXT_NAME,
    MM_JSON_COLON,
    MM_JSON_FIRST_ELEMENT,
    MM_JSON_NEXT_VALUE, /* after a colon, or after a comma in an array */
    MM_JSON_COMMA,
    MM_JSON_BEHIND /* nothing, because the text is complete */
};

/* The state of reading one text; initialize it with zeros. One thread at a time may use a reader. A caller
 * may read the elements of an array without mm_json_next. It must then set `at` to the next byte, and `place`
 * to MM_JSON_COMMA after an element, or to MM_JSON_NEXT_VALUE after a comma. */
struct mm_json_reader {
    size_t at; /* offset of the next byte to read */
    enum mm_json_place place;
    unsigned depth;             /* number of open arrays and objects */
    uint64_t objects;           /* bit d is 1 if the value at depth d + 1 is an object */
    struct mm_json_token token; /* token of the last event; after a fault, the wrong text */
    const char *expected;       /* after a fault: the expected text; NULL means a whole object */
    bool joins_arrays;          /* an array of words and numbers is one value, whose inside is not checked */
    size_t retry_bytes;         /* a long incomplete token is read again when this many bytes have arrived */
};

/* Reads the next event. `text` has all bytes that have arrived since the beginning of the body. The address
 * of `text` may change between calls. If is_all, nothing more will arrive. Skips a byte order mark at the
 * beginning. Does not report duplicate names. Do not call again after MM_JSON_END or MM_JSON_FAULT. The time
 * is linear in the length of the text, even if the text arrives in small chunks. */
enum mm_json_event mm_json_next(struct mm_json_reader *reader, const char *text, size_t bytes, bool is_all);

static inline const char *mm_json_skip_spaces(const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

/* Rejects a token that is valid JSON, but not valid for the caller. `expected` is a static text for the error
 * message. Returns MM_JSON_FAULT. */
enum mm_json_event mm_json_fault(struct mm_json_reader *reader, struct mm_json_token token,
                                 const char *expected);

/* After MM_JSON_FAULT: sets *error to MM_BAD_REQUEST, with the line and column of the first wrong character.
 * `example` shows a valid object. error may be NULL. */
enum mm_status mm_json_fail(const struct mm_json_reader *reader, const char *text, const char *example,
                            struct mm_error *error);

/* Sets *error to MM_BAD_REQUEST for an empty body, without line and column. `example` is a valid object. */
enum mm_status mm_json_fail_empty(const char *example, struct mm_error *error);

/* Sets the error's line and column to the beginning of the token. A byte order mark does not count as a
 * column. error may be NULL. */
void mm_json_locate(const char *text, struct mm_json_token token, struct mm_error *error);

enum {
    MM_JSON_TEXT_MAX = 264
}; /* bytes with the NUL; longer strings are cut, because none of them is valid */

/* Returns the value of a token. A string is decoded into `buffer`, cut to fit. The value of an array or
 * object points into `text`. */
struct mm_value mm_json_value(const char *text, struct mm_json_token token, char buffer[MM_JSON_TEXT_MAX]);

/* --- short texts that are complete (json_members.c) */

/* Checks the syntax of a whole text. Fails with MM_BAD_REQUEST, with line and column if the text is not
 * empty. */
enum mm_status mm_json_check(const char *text, size_t bytes, const char *example, struct mm_error *error);

/* A member of an object. For an element of an array, the name is empty. */
struct mm_json_member {
    struct mm_value name;
    struct mm_value value;
    struct mm_json_token token; /* place of the value in the text */
    char name_buffer[MM_JSON_TEXT_MAX];
    char buffer[MM_JSON_TEXT_MAX];
};

/* Reads the next member of a text that mm_json_check has accepted. Returns false if there are no more
 * members. For the outermost object, begin with a reader of zeros. For an array or object inside it, begin
 * with the reader that mm_json_within returns, and pass the value's text and length. */
bool mm_json_step(struct mm_json_reader *reader, const char *text, size_t bytes,
                  struct mm_json_member *member);

struct mm_json_reader mm_json_within(const struct mm_value *value);
