/* The JSON tokenizer. If a chunk ends inside a token, the reader reads the token again from its beginning
 * when more text has arrived. */
#include "api/json/json_text.h"

#include "api/number/number.h"
#include "api/json/utf8.h"
#include "api/slice.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What each place expects, for error messages. */
static const char *const expectations[] = {
    [MM_JSON_BEFORE] = NULL,
    [MM_JSON_FIRST_NAME] = "a name in double quotes or '}'",
    [MM_JSON_NEXT_NAME] = "a name in double quotes",
    [MM_JSON_COLON] = "':'",
    [MM_JSON_FIRST_ELEMENT] = "a value or ']'",
    [MM_JSON_NEXT_VALUE] = "a value",
    [MM_JSON_COMMA] = "',' or the closing bracket",
    [MM_JSON_BEHIND] = "nothing after the object",
};

/* An incomplete token of up to this many bytes is read again with each chunk. A longer token is read again
 * when its length has doubled, because rereading it for every byte would take quadratic time. */
enum { TOKEN_SHORT = 128 };

/* Whether the character may be part of a number or a word, even a misspelled one. */
static bool is_of_word(char character) {
    const char lower = (char)(character | 0x20);
    return mm_is_digit(character) || (lower >= 'a' && lower <= 'z') || character == '-' || character == '+' ||
           character == '.' || character == '_';
}

enum mm_json_event mm_json_fault(struct mm_json_reader *reader, struct mm_json_token token,
                                 const char *expected) {
    reader->token = token;
    reader->expected = expected;
    return MM_JSON_FAULT;
}

static enum mm_json_event wait_for_token(struct mm_json_reader *reader, size_t bytes) {
    const size_t token_bytes = bytes - reader->at;
    reader->retry_bytes = token_bytes > TOKEN_SHORT ? bytes + token_bytes : 0;
    return MM_JSON_WAIT;
}

/* Returns the value of four hexadecimal digits, or -1 if there are fewer than four. */
static int32_t read_code(const char *text, const char *end) {
    char digits[5] = "";
    if (end - text < 4)
        return -1;
    memcpy(digits, text, 4);
    return strspn(digits, "0123456789abcdefABCDEF") == 4 ? (int32_t)strtol(digits, NULL, 16) : -1;
}

/* Reads the escape at a backslash. Returns its length, or 0 if it is invalid. U+0000 is invalid, because C
 * strings end at NUL. */
static size_t read_escape(const char *text, const char *end, uint32_t *character) {
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (end - text < 2)
        return 0;
    const char *letter = text[1] == '\0' ? NULL : strchr(letters, text[1]);
    if (letter != NULL) {
        *character = (unsigned char)meanings[letter - letters];
        return 2;
    }
    const int32_t code = text[1] == 'u' ? read_code(text + 2, end) : -1;
    *character = (uint32_t)code;
    if (code <= 0 || (code >= 0xDC00 && code < 0xE000))
        return 0;
    if (code < 0xD800 || code >= 0xE000)
        return 6;
    const bool has_second = end - text >= 12 && text[6] == '\\' && text[7] == 'u';
    const int32_t second = has_second ? read_code(text + 8, end) : -1;
    if (second < 0xDC00 || second >= 0xE000)
        return 0;
    *character = 0x10000u + ((uint32_t)(code - 0xD800) << 10) + (uint32_t)(second - 0xDC00);
    return 12;
}

static bool is_plain(char character) {
    return character >= ' ' && character <= '~' && character != '"' && character != '\\';
}

static enum mm_json_event read_string(struct mm_json_reader *reader, const char *text, size_t bytes,
                                      bool is_all) {
    enum { LONGEST = 12 }; /* most bytes of one character: two escapes such as \ud83d */
    const char *const end = text + bytes;
    const char *at = text + reader->at + 1;
    for (;;) {
        while (at < end && is_plain(*at))
            at++;
        if (at < end && *at == '"')
            break;
        const size_t left = (size_t)(end - at);
        if (!is_all && left < LONGEST)
            return wait_for_token(reader, bytes);
        uint32_t character;
        const bool is_escape = left > 0 && *at == '\\';
        size_t step = 0;
        if (is_escape)
            step = read_escape(at, end, &character);
        else if (left > 0 && (unsigned char)*at >= ' ')
            step = mm_utf8_bytes(at, end);
        if (step == 0) {
            const size_t shown = is_escape ? (left < 6 || at[1] != 'u' ? 2 : 6) : 1;
            const struct mm_json_token token = {.at = (size_t)(at - text),
                                                .bytes = shown < left ? shown : left};
            return mm_json_fault(reader, token,
                                 left == 0   ? "the string's closing quote"
                                 : is_escape ? "an escape of JSON that means a character"
                                             : "UTF-8 without control characters in a string");
        }
        at += step;
    }
    reader->token = (struct mm_json_token){
        .kind = MM_VALUE_TEXT, .at = reader->at, .bytes = (size_t)(at + 1 - text) - reader->at};
    reader->at += reader->token.bytes;
    return MM_JSON_VALUE;
}

static size_t put_utf8(uint32_t character, char *out) {
    if (character < 0x80) {
        out[0] = (char)character;
        return 1;
    }
    const size_t bytes = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    for (size_t index = bytes - 1; index > 0; index--, character >>= 6)
        out[index] = (char)(0x80 | (character & 0x3F));
    out[0] = (char)(0xF0u << (4 - bytes) | character);
    return bytes;
}

/* Decodes the text between a string's quotes, cut to fit, and adds a NUL. Returns the length. */
static size_t copy_string(const char *text, struct mm_json_token token, char buffer[MM_JSON_TEXT_MAX]) {
    enum { CHARACTER_MAX = 4 };
    const char *at = text + token.at + 1, *end = text + token.at + token.bytes - 1;
    size_t length = 0;
    while (at < end && length < MM_JSON_TEXT_MAX - CHARACTER_MAX) {
        uint32_t character;
        if (*at == '\\') {
            at += read_escape(at, end, &character);
            length += put_utf8(character, buffer + length);
        } else {
            buffer[length++] = *at++;
        }
    }
    buffer[length] = '\0';
    return length;
}

/* Returns the end of the number or word at `at`, even if misspelled. Returns at + 1 if neither is there. */
static const char *word_end(const char *at, const char *end) {
    const char *start = at;
    while (at < end && is_of_word(*at))
        at++;
    return at > start ? at : at + 1;
}

static enum mm_json_event fail_here(struct mm_json_reader *reader, const char *text, size_t bytes,
                                    const char *expected) {
    const struct mm_json_token token = {
        .at = reader->at,
        .bytes = reader->at == bytes
                     ? 0
                     : (size_t)(word_end(text + reader->at, text + bytes) - text) - reader->at};
    return mm_json_fault(reader, token, expected);
}

static bool read_number(const char *at, const char *stop, double *value) {
    bool fits = true;
    return mm_number_float64(at, stop, value, &fits) == stop;
}

/* Returns the expected text for an error about a misspelled word. */
static const char *expected_word(const struct mm_json_reader *reader, struct mm_slice word) {
    static const struct {
        const char *bare;
        const char *expected;
    } specials[] = {{"NaN", "\"NaN\" in quotes"},
                    {"Infinity", "\"Infinity\" in quotes"},
                    {"-Infinity", "\"-Infinity\" in quotes"}};
    const bool in_array = reader->depth >= 2;
    for (size_t index = 0; in_array && index < sizeof specials / sizeof specials[0]; index++)
        if (mm_slice_is_any_case(word, specials[index].bare))
            return specials[index].expected;
    return expectations[reader->place];
}

static enum mm_json_event read_word(struct mm_json_reader *reader, const char *text, size_t bytes,
                                    bool is_all) {
    static const struct {
        const char *text;
        enum mm_value_kind kind;
    } words[] = {{"null", MM_VALUE_NULL}, {"false", MM_VALUE_FALSE}, {"true", MM_VALUE_TRUE}};
    const char *at = text + reader->at, *stop = word_end(at, text + bytes);
    const size_t length = (size_t)(stop - at);
    double unused;
    size_t index = 0;
    if (stop == text + bytes && !is_all && is_of_word(*at))
        return wait_for_token(reader, bytes);
    while (index < 3 && !mm_slice_is((struct mm_slice){at, length}, words[index].text))
        index++;
    if (index == 3 && !read_number(at, stop, &unused))
        return fail_here(reader, text, bytes, expected_word(reader, (struct mm_slice){at, length}));
    reader->token = (struct mm_json_token){
        .kind = index == 3 ? MM_VALUE_NUMBER : words[index].kind, .at = reader->at, .bytes = length};
    reader->at += length;
    return MM_JSON_VALUE;
}

static bool in_object(const struct mm_json_reader *reader) {
    return (reader->objects & UINT64_C(1) << (reader->depth - 1)) != 0;
}

static enum mm_json_event open(struct mm_json_reader *reader, bool is_object) {
    const uint64_t bit = UINT64_C(1) << reader->depth;
    reader->objects = is_object ? reader->objects | bit : reader->objects & ~bit;
    reader->depth++;
    reader->place = is_object ? MM_JSON_FIRST_NAME : MM_JSON_FIRST_ELEMENT;
    reader->token = (struct mm_json_token){
        .kind = is_object ? MM_VALUE_OBJECT : MM_VALUE_ARRAY, .at = reader->at++, .bytes = 1};
    return MM_JSON_OPEN;
}

static enum mm_json_event close(struct mm_json_reader *reader) {
    reader->token = (struct mm_json_token){
        .kind = in_object(reader) ? MM_VALUE_OBJECT : MM_VALUE_ARRAY, .at = reader->at++, .bytes = 1};
    reader->depth--;
    reader->place = reader->depth > 0 ? MM_JSON_COMMA : MM_JSON_BEHIND;
    return MM_JSON_CLOSE;
}

/* Returns the end of an array. NULL if it has strings or objects, or if its end is missing. Does not read
 * past the first bracket that closes after a string or an object begins, so the time is linear. */
static const char *joined_end(const char *start, const char *end) {
    const char *at = start, *close;
    size_t depth = 0;
    do {
        close = memchr(at, ']', (size_t)(end - at));
        if (close == NULL || memchr(at, '"', (size_t)(close - at)) != NULL ||
            memchr(at, '{', (size_t)(close - at)) != NULL)
            return NULL;
        for (; (at = memchr(at, '[', (size_t)(close - at))) != NULL; at++)
            depth++;
        at = close + 1;
    } while (--depth > 0);
    return at;
}

/* Reads a string, number or word, or the opening bracket of an array or object. */
static enum mm_json_event read_value(struct mm_json_reader *reader, const char *text, size_t bytes,
                                     bool is_all) {
    const char first = text[reader->at];
    const char *const joined =
        first == '[' && reader->joins_arrays ? joined_end(text + reader->at, text + bytes) : NULL;
    if (joined != NULL) {
        const size_t length = (size_t)(joined - text) - reader->at;
        reader->token = (struct mm_json_token){MM_VALUE_ARRAY, reader->at, length};
        reader->at += length;
        reader->place = MM_JSON_COMMA;
        return MM_JSON_VALUE;
    }
    if (first == '[' || first == '{') {
        if (reader->depth == MM_JSON_DEPTH_MAX)
            return fail_here(reader, text, bytes, "no more than 64 arrays and objects within each other");
        return open(reader, first == '{');
    }
    const enum mm_json_event event =
        first == '"' ? read_string(reader, text, bytes, is_all) : read_word(reader, text, bytes, is_all);
    if (event == MM_JSON_VALUE)
        reader->place = MM_JSON_COMMA;
    return event;
}

/* Reads the token at reader->at, which is not a space. After a comma or a colon, returns MM_JSON_WAIT. */
static enum mm_json_event read_here(struct mm_json_reader *reader, const char *text, size_t bytes,
                                    bool is_all) {
    const char first = text[reader->at];
    const enum mm_json_place place = reader->place;
    const bool may_close =
        place == MM_JSON_COMMA || place == MM_JSON_FIRST_NAME || place == MM_JSON_FIRST_ELEMENT;
    if (may_close && first == (in_object(reader) ? '}' : ']'))
        return close(reader);
    if (place == MM_JSON_BEFORE && first == '{')
        return open(reader, true);
    if (place == MM_JSON_COMMA && first == ',') {
        reader->place = in_object(reader) ? MM_JSON_NEXT_NAME : MM_JSON_NEXT_VALUE;
        reader->at++;
        return MM_JSON_WAIT;
    }
    if (place == MM_JSON_COLON && first == ':') {
        reader->place = MM_JSON_NEXT_VALUE;
        reader->at++;
        return MM_JSON_WAIT;
    }
    if (place == MM_JSON_FIRST_ELEMENT || place == MM_JSON_NEXT_VALUE)
        return read_value(reader, text, bytes, is_all);
    if ((place != MM_JSON_FIRST_NAME && place != MM_JSON_NEXT_NAME) || first != '"') {
        if (is_of_word(first) && !is_all && word_end(text + reader->at, text + bytes) == text + bytes)
            return wait_for_token(reader, bytes);
        return fail_here(reader, text, bytes, expectations[place]);
    }
    const enum mm_json_event event = read_string(reader, text, bytes, is_all);
    if (event != MM_JSON_VALUE)
        return event;
    reader->place = MM_JSON_COLON;
    return MM_JSON_NAME;
}

enum mm_json_event mm_json_next(struct mm_json_reader *reader, const char *text, size_t bytes, bool is_all) {
    enum mm_json_event event = MM_JSON_WAIT;
    size_t before;
    if (!is_all && bytes < reader->retry_bytes)
        return MM_JSON_WAIT;
    if (bytes == 0)
        text = "";
    if (reader->at == 0 && !is_all && bytes < sizeof MM_BYTE_ORDER_MARK - 1 &&
        memcmp(text, MM_BYTE_ORDER_MARK, bytes) == 0)
        return MM_JSON_WAIT;
    if (reader->at == 0)
        reader->at = (size_t)(mm_skip_mark(text, text + bytes) - text);
    do {
        reader->at = (size_t)(mm_json_skip_spaces(text + reader->at, text + bytes) - text);
        if (reader->at == bytes && !is_all)
            return MM_JSON_WAIT;
        if (reader->at == bytes)
            return reader->place == MM_JSON_BEHIND
                       ? MM_JSON_END
                       : fail_here(reader, text, bytes, expectations[reader->place]);
        before = reader->at;
        event = read_here(reader, text, bytes, is_all);
    } while (event == MM_JSON_WAIT && reader->at > before);
    return event;
}

void mm_json_locate(const char *text, struct mm_json_token token, struct mm_error *error) {
    if (error == NULL)
        return;
    error->line = error->column = 1;
    for (const char *at = mm_skip_mark(text, text + token.at); at < text + token.at; at++) {
        const bool begins = (*at & 0xC0) != 0x80; /* the byte begins a UTF-8 character */
        error->line += *at == '\n';
        error->column = *at == '\n' ? 1 : error->column + begins;
    }
}

enum mm_status mm_json_fail(const struct mm_json_reader *reader, const char *text, const char *example,
                            struct mm_error *error) {
    enum { SHOWN_MAX = 40 };
    struct mm_error place;
    char got[SHOWN_MAX + 16] = "ends";
    const struct mm_json_token token = reader->token;
    const char *at = text + token.at;
    if (token.bytes > 0 && *at >= ' ' && *at <= '~')
        snprintf(got, sizeof got, "has '%.*s'", token.bytes > SHOWN_MAX ? SHOWN_MAX : (int)token.bytes, at);
    else if (token.bytes > 0)
        snprintf(got, sizeof got, *at == '\0' ? "has a zero byte" : "has the byte 0x%02x",
                 (unsigned char)*at);
    mm_json_locate(text, token, &place);
    mm_fail(error, MM_BAD_REQUEST,
            "the JSON body %s at line %" PRIu64 ", column %" PRIu64 ", but must have %s%s there", got,
            place.line, place.column, reader->expected == NULL ? "an object like " : "",
            reader->expected == NULL ? example : reader->expected);
    if (error != NULL) {
        error->line = place.line;
        error->column = place.column;
    }
    return MM_BAD_REQUEST;
}

enum mm_status mm_json_fail_empty(const char *example, struct mm_error *error) {
    return mm_fail(error, MM_BAD_REQUEST, "the body is empty, but must be a JSON object like %s", example);
}

struct mm_value mm_json_value(const char *text, struct mm_json_token token, char buffer[MM_JSON_TEXT_MAX]) {
    struct mm_value value = {.kind = token.kind};
    if (token.kind == MM_VALUE_TEXT) {
        value.length = copy_string(text, token, buffer);
        value.text = buffer;
    } else if (token.kind == MM_VALUE_NUMBER) {
        (void)read_number(text + token.at, text + token.at + token.bytes, &value.number);
        value.number = fmin(fmax(value.number, -DBL_MAX), DBL_MAX);
        value.text = text + token.at;
        value.length = token.bytes;
    } else if (token.kind == MM_VALUE_ARRAY || token.kind == MM_VALUE_OBJECT) {
        value.text = text + token.at;
        const char *const end = value.text + token.bytes;
        const bool is_empty = mm_json_skip_spaces(value.text + 1, end) + 1 == end;
        value.length = is_empty ? 0 : token.bytes;
    }
    return value;
}
