/* One row of a matrix in JSON on its way into memory: what the readers of each element type share. For
 * json_matrix.c, which has the table of them. */
#ifndef MM_API_JSON_ROW_H
#define MM_API_JSON_ROW_H

#include "api/json_matrix.h"

struct mm_json_row {
    const json_t *elements; /* an array of `cols` */
    const char *field;      /* the matrix, for errors */
    size_t index;           /* the row's */
    size_t cols;
    enum mm_json_bound bound;
    void *out;       /* where its elements go; NULL: they are judged and not kept */
    bool *undecided; /* as mm_json_matrix_read has it */
};

/* Each reads a row of its type as mm_json_matrix_read says. */
typedef enum mm_status mm_json_row_reader(const struct mm_json_row *row, struct mm_error *error);
mm_json_row_reader mm_json_read_float32; /* json_float.c */
mm_json_row_reader mm_json_read_float64;
mm_json_row_reader mm_json_read_int32; /* json_whole.c */
mm_json_row_reader mm_json_read_int64;

/* "an array", "null" and so on. Static. */
const char *mm_json_type_name(const json_t *value);

/* What is no number, in words for an error: the string itself, or the type. */
void mm_json_describe(const json_t *value, char *text, size_t text_bytes);

#endif
