/* JSON's grammar (RFC 8259): reads an object token by token, while its text arrives or when it is complete.
 * Does not know what the members mean, and allocates nothing. */
#pragma once

#include "api/value.h"
#include "gpu/status.h"

enum { MM_JSON_DEPTH_MAX = 64 }; /* how deep arrays and objects may be nested */

/* What mm_json_next has read. */
enum mm_json_event {
    MM_JSON_NAME,  /* a member's name: the token, with its quotes */
    MM_JSON_VALUE, /* the token: a string, a number or a word */
    MM_JSON_OPEN,  /* the [ or { of a value, whose contents follow */
    MM_JSON_CLOSE, /* the ] or } of a value */
    MM_JSON_END,   /* the end of the text */
    MM_JSON_WAIT,  /* nothing: the next chunk has not arrived */
    MM_JSON_FAULT  /* the text is malformed: call mm_json_fail */
};

/* A part of the text. */
struct mm_json_token {
    enum mm_value_kind kind;
    size_t at;
    size_t bytes;
};

/* What may come next. */
enum mm_json_place {
    MM_JSON_BEFORE, /* the { of the text's object */
    MM_JSON_FIRST_NAME,
    MM_JSON_NEXT_NAME,
    MM_JSON_COLON,
    MM_JSON_FIRST_ELEMENT,
    MM_JSON_NEXT_VALUE, /* behind a colon, or behind a comma in an array */
    MM_JSON_COMMA,
    MM_JSON_BEHIND /* nothing: the object is complete */
};

/* The state of reading one text; begins as zeros. One thread at a time may use a reader. A caller that reads
 * elements of an array itself then sets `at` and `place`. `place` is MM_JSON_COMMA behind an element, and
 * MM_JSON_NEXT_VALUE behind a comma. */
struct mm_json_reader {
    size_t at; /* offset of the first byte that was not read */
    enum mm_json_place place;
    unsigned depth;             /* how many arrays and objects are open */
    uint64_t objects;           /* bit d: the value at depth d + 1 is an object, not an array */
    struct mm_json_token token; /* the last event's token; after a fault, the wrong text */
    const char *expected;       /* after a fault, what would be right; NULL: the text must be an object */
    size_t retry_bytes; /* a long cut-off token is not read again before this many bytes have arrived */
};

/* Reads the next event. `text` is all of the text that has arrived, from its beginning. It may move between
 * calls. is_all: the text is complete. A byte order mark may begin the text (RFC 8259, 8.1). Do not call
 * again after MM_JSON_END or MM_JSON_FAULT. The caller finds duplicate names. The time is linear in the text,
 * however it is chunked. */
enum mm_json_event mm_json_next(struct mm_json_reader *reader, const char *text, size_t bytes, bool is_all);

static inline const char *mm_json_skip_spaces(const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

/* Turns a token that the grammar allows into a fault. Returns MM_JSON_FAULT. `expected` is static. */
enum mm_json_event mm_json_fault(struct mm_json_reader *reader, struct mm_json_token token,
                                 const char *expected);

/* Fills in MM_BAD_REQUEST for a fault, with line and column of the first wrong character. `example` is
 * an object that the text could be. error may be NULL. */
enum mm_status mm_json_fail(const struct mm_json_reader *reader, const char *text, const char *example,
                            struct mm_error *error);

/* Fills in MM_BAD_REQUEST for an empty body, without line and column. `example` is an object that the text
 * could be. */
enum mm_status mm_json_fail_empty(const char *example, struct mm_error *error);

/* Sets the error's line and column to the place of the token's first character. A byte order mark does not
 * count. error may be NULL. */
void mm_json_locate(const char *text, struct mm_json_token token, struct mm_error *error);

enum { MM_JSON_TEXT_MAX = 256 }; /* size of a text's buffer; all texts that have a meaning are shorter */

/* The value of a token. A string is copied to `buffer` without its escapes, cut to fit; arrays and objects
 * point into `text`. */
struct mm_value mm_json_value(const char *text, struct mm_json_token token, char buffer[MM_JSON_TEXT_MAX]);

/* --- small complete texts (json_members.c) */

/* Checks a whole text. MM_BAD_REQUEST, as mm_json_fail says; an empty text has no line and column. */
enum mm_status mm_json_check(const char *text, size_t bytes, const char *example, struct mm_error *error);

/* A member of an object, or an element of an array, which has an empty name. */
struct mm_json_member {
    struct mm_value name;
    struct mm_value value;
    struct mm_json_token token; /* the whole value */
    char name_buffer[MM_JSON_TEXT_MAX];
    char buffer[MM_JSON_TEXT_MAX];
};

/* Reads the next member of a checked text; false if there are no more. To read the text's object, begin with
 * a reader of zeros. To read an array or object inside it, pass the text and length of that value, and begin
 * with the reader that mm_json_within returns. */
bool mm_json_step(struct mm_json_reader *reader, const char *text, size_t bytes,
                  struct mm_json_member *member);

/* Returns a reader that begins inside an array or object, for mm_json_step. */
struct mm_json_reader mm_json_within(const struct mm_value *value);
