/* What is said of a body that is no JSON. For the files of api/ alone: it shows Jansson. */
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

#endif
