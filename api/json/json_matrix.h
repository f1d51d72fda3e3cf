/* Matrices as JSON text: nested rows. Any thread may call these functions; the helpers write on threads of
 * their own. */
#pragma once

#include "gpu/matrix.h"

struct mm_helpers; /* api/codec.h */

/* The room that writing a dense matrix of this type and shape takes: false where that passes SIZE_MAX. */
bool mm_json_matrix_text_bytes(const struct mm_matrix *matrix, size_t *bytes);

/* Writes it as nested rows and returns the length of that; no NUL is added. A large one is written in parts,
 * by the helpers as well, where that is not NULL. */
size_t mm_json_matrix_write(const struct mm_matrix *matrix, struct mm_helpers *helpers, char *text);
