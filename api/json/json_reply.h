/* Members of JSON replies. Each function returns the end of the text, which has no NUL. */
#pragma once

#include "api/codec.h"

/* Writes a string member. `key` ends with the opening quote. No character of `name` may need an escape. */
char *mm_json_put_name(char *end, const char *key, const char *name);

/* Writes a key and a number, or a string such as "Infinity". */
char *mm_json_put_real(char *end, const char *key, double number);

/* Writes the member `shape`, and a comma. */
char *mm_json_put_shape(char *end, const struct mm_shape *shape);

/* Writes what computed the result: variant, backend, device, rate, batch and path. */
char *mm_json_put_run(char *end, const struct mm_answer *answer);
