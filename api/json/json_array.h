/* Arrays as JSON text, nested by their shape. Any thread may call these functions; helpers write on their own
 * threads. */
#pragma once

#include "gpu/product/shape.h"

struct mm_helpers; /* api/codec.h */

/* Sets *bytes to the most bytes that the text of such an array takes. False if they exceed SIZE_MAX. */
bool mm_json_array_text_bytes(const struct mm_shape *shape, enum mm_dtype dtype, size_t *bytes);

/* Writes an array whose elements are in C order. Returns the length of the text, without a NUL. The helpers
 * write parts of a large array; helpers NULL: the calling thread writes everything. */
size_t mm_json_array_write(const struct mm_shape *shape, enum mm_dtype dtype, void *elements,
                           struct mm_helpers *helpers, char *text);
