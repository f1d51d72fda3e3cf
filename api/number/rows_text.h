/* Writes the rows of a matrix as text: numbers with commas between them, and a format's own marks around each
 * row. Any thread may call these functions; helpers write on their own threads. */
#pragma once

#include "gpu/matrix/matrix.h"

struct mm_helpers; /* api/codec.h */

enum { MM_ROW_GROUPS_MAX = 8 };

/* What a format writes between two rows, and before and after each row. Rows may be in groups, and groups in
 * larger groups. Where a group ends, the writer adds one more `end` before `between` and one more `begin`
 * after it. */
struct mm_row_marks {
    const char *between;
    const char *begin;
    const char *end;
    bool has_quotes; /* whether the words for NaN and infinities are in quotes */
    unsigned group_count;
    size_t group_rows[MM_ROW_GROUPS_MAX]; /* rows of a group at each level, smallest first; each divides the
                                             next */
};

/* Sets *bytes to the most bytes that the text of a dense matrix takes. False if they exceed SIZE_MAX. */
bool mm_rows_text_bytes(const struct mm_matrix *matrix, const struct mm_row_marks *marks, size_t *bytes);

/* Writes the rows and returns where they end; no NUL is added. The helpers write parts of a large matrix;
 * helpers NULL: the calling thread writes everything. */
char *mm_rows_text_write(const struct mm_matrix *matrix, const struct mm_row_marks *marks,
                         struct mm_helpers *helpers, char *text);
