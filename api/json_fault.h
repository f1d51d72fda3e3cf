/* What is said of a body that is no JSON, and of a value that is not what it should be. For the files of api/
 * alone: it shows Jansson. */
#ifndef MM_API_JSON_FAULT_H
#define MM_API_JSON_FAULT_H

#include "gpu/status.h"

#include <jansson.h>

/* Judges a body (not empty) before it is parsed: MM_BAD_REQUEST, with line and column, where it holds a zero
 * byte, which Jansson overlooks in some places. */
enum mm_status mm_json_refuse_zero(const char *data, size_t bytes, struct mm_error *error);

/* Fills in the error of a body that Jansson did not parse, errno having been 0 before: MM_BAD_REQUEST with
 * line and column, or MM_INTERNAL where memory was out. */
enum mm_status mm_json_fail_syntax(const json_error_t *fault, struct mm_error *error);

/* A member's value in words, cut where it is long. */
void mm_json_describe_value(const json_t *value, char *out, size_t out_bytes);

/* MM_BAD_REQUEST: the member `name` must be `expected`, but `verb` ("is" or "has") the value. */
enum mm_status mm_json_fail_form(const char *name, const char *verb, const char *expected,
                                 const json_t *value, struct mm_error *error);

#endif
