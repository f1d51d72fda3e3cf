/* Writes the rows of a matrix as text: numbers with commas between them, and marks around each row. Any
 * thread may call these functions. */
#pragma once

#include "gpu/matrix/matrix.h"

struct mm_helpers; /* api/codec.h */

enum { MM_ROW_GROUPS_MAX = 8 };

/* The marks of a format around rows, such as brackets. Rows may form groups, and groups may form larger
 * groups. At the end of a group the writer adds one more `end` before `between`, and one more `begin` after
 * `between`. */
struct mm_row_marks {
    const char *between;
    const char *begin;
    const char *end;
    bool has_quotes; /* NaN and infinities are written in quotes */
    unsigned group_count;
    size_t group_rows[MM_ROW_GROUPS_MAX]; /* rows of a group at each level; each number divides the next */
};

/* Sets *bytes to the greatest length of a dense matrix's text. Returns false if it exceeds SIZE_MAX. */
bool mm_rows_text_bytes(const struct mm_matrix *matrix, const struct mm_row_marks *marks, size_t *bytes);

/* Writes the rows without a NUL, and returns the end. `helpers` are threads that write parts of a large
 * matrix; if NULL, the calling thread writes everything. */
char *mm_rows_text_write(const struct mm_matrix *matrix, const struct mm_row_marks *marks,
                         struct mm_helpers *helpers, char *text);
