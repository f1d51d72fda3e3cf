/* Arrays as JSON text: nested by their shape. Any thread may call these functions; the helpers write on
 * threads of their own. */
#pragma once

#include "gpu/product/shape.h"

struct mm_helpers; /* api/codec.h */

/* The room that writing an array of this shape and type takes: false where that passes SIZE_MAX. */
bool mm_json_array_text_bytes(const struct mm_shape *shape, enum mm_dtype dtype, size_t *bytes);

/* Writes it, whose elements lie in C order, and returns the length of the text; no NUL is added. A large one
 * is written in parts, by the helpers as well, where that is not NULL. */
size_t mm_json_array_write(const struct mm_shape *shape, enum mm_dtype dtype, void *elements,
                           struct mm_helpers *helpers, char *text);
