/* Writes arrays as nested JSON text. Any thread may call these functions. */
#pragma once

#include "gpu/product/shape.h"

struct mm_helpers; /* api/codec.h */

/* Sets *bytes to the greatest length of the array's text. Returns false if that length exceeds SIZE_MAX. */
bool mm_json_array_text_bytes(const struct mm_shape *shape, enum mm_dtype dtype, size_t *bytes);

/* Writes an array whose elements are in C order. Returns the length of the text, which has no NUL. `helpers`
 * are threads that write parts of a large array; if NULL, the calling thread writes everything. */
size_t mm_json_array_write(const struct mm_shape *shape, enum mm_dtype dtype, void *elements,
                           struct mm_helpers *helpers, char *text);
