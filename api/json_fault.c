/* Where a body stops being JSON, and what a value is, in words and in numbers. */
#include "api/json_fault.h"

#include "api/call.h"
#include "api/json_row.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum mm_status fail_at(uint64_t line, uint64_t column, const char *what, struct mm_error *error) {
    mm_fail(error, MM_BAD_REQUEST,
            "the body is not the JSON expected: line %" PRIu64 ", column %" PRIu64 ": %s", line, column,
            what);
    if (error != NULL) {
        error->line = line;
        error->column = column;
    }
    return MM_BAD_REQUEST;
}

/* No JSON text holds a zero byte, but Jansson 2.14 passes over one behind a number or a word. */
enum mm_status mm_json_refuse_zero(const char *data, size_t bytes, struct mm_error *error) {
    const char *zero = memchr(data, '\0', bytes);
    uint64_t line = 1, column = 1;
    if (zero == NULL)
        return MM_OK;
    for (const char *text = data; text < zero; text++) {
        bool begins = (*text & 0xC0) != 0x80; /* a character, of which UTF-8 can take several bytes */
        line += *text == '\n';
        column = *text == '\n' ? 1 : column + begins;
    }
    return fail_at(line, column, "a zero byte", error);
}

/* Jansson tells the line and the column of the last character that it had read, which is the end of the
 * offending token; the column is 0 where that was a line's end. */
enum mm_status mm_json_fail_syntax(const json_error_t *fault, struct mm_error *error) {
    /* Where memory ran out within a string Jansson blames the text; malloc's errno knows better. */
    if (errno == ENOMEM || fault->text[0] == '\0' || json_error_code(fault) == json_error_out_of_memory)
        return mm_fail(error, MM_INTERNAL, "memory ran out while the body was parsed");
    return fail_at(fault->line > 0 ? (uint64_t)fault->line : 1,
                   fault->column > 0 ? (uint64_t)fault->column : 1, fault->text, error);
}

void mm_json_describe_value(const json_t *value, char *out, size_t out_bytes) {
    char number[32];
    mm_call_describe_number(json_number_value(value), number, sizeof number); /* 0 where it is none */
    if (json_is_string(value))
        snprintf(out, out_bytes, "the string '%.32s%s'", json_string_value(value),
                 json_string_length(value) > 32 ? "..." : "");
    else if (json_is_number(value))
        snprintf(out, out_bytes, "the number %s", number);
    else if (json_is_array(value) && json_array_size(value) == 0)
        snprintf(out, out_bytes, "an empty array");
    else
        snprintf(out, out_bytes, "%s", mm_json_type_name(value));
}

enum mm_status mm_json_fail_form(const char *name, const char *verb, const char *expected,
                                 const json_t *value, struct mm_error *error) {
    char got[64];
    mm_json_describe_value(value, got, sizeof got);
    mm_fail_field(error, MM_BAD_REQUEST, name, "%s must be %s, but %s %s", name, expected, verb, got);
    if (error != NULL) {
        snprintf(error->expected, sizeof error->expected, "%s", expected);
        snprintf(error->got, sizeof error->got, "%s", got);
    }
    return MM_BAD_REQUEST;
}
