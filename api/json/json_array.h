/* Arrays as JSON text, nested by their shape. Any thread may call these functions; helpers write on their own
 * threads. */
#pragma once

#include "gpu/product/shape.h"

struct mm_helpers; /* api/codec.h */

/* Most bytes that the text of such an array takes. False if they pass SIZE_MAX. */
bool mm_json_array_text_bytes(const struct mm_shape *shape, enum mm_dtype dtype, size_t *bytes);

/* Writes an array whose elements are in C order. Returns the length of the text; no NUL is added. The helpers
 * write parts of a large array; NULL: the calling thread writes all. */
size_t mm_json_array_write(const struct mm_shape *shape, enum mm_dtype dtype, void *elements,
                           struct mm_helpers *helpers, char *text);
