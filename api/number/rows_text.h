/* The rows of a matrix as text: numbers with commas between them, and a format's own marks around each row.
 * Any thread may call these functions; the helpers write on threads of their own. */
#pragma once

#include "gpu/matrix/matrix.h"

struct mm_helpers; /* api/codec.h */

enum { MM_ROW_GROUPS_MAX = 8 };

/* What stands between two rows, and before and behind each. Rows may be in groups, and those in larger ones:
 * `end` and `begin` stand at each seam once more for every group that ends there, around `between`. */
struct mm_row_marks {
    const char *between;
    const char *begin;
    const char *end;
    bool has_quotes; /* around the words for NaN and the infinities */
    unsigned group_count;
    size_t group_rows[MM_ROW_GROUPS_MAX]; /* of a group, the smallest first; each divides the next */
};

/* The room that writing a dense matrix of this type and shape takes: false where that passes SIZE_MAX. */
bool mm_rows_text_bytes(const struct mm_matrix *matrix, const struct mm_row_marks *marks, size_t *bytes);

/* Writes the rows and returns their end; no NUL is added. A large matrix is written in parts, by the helpers
 * as well, where that is not NULL. */
char *mm_rows_text_write(const struct mm_matrix *matrix, const struct mm_row_marks *marks,
                         struct mm_helpers *helpers, char *text);
