/* CSV files of numbers without a header line, one row a line. The reader accepts what NumPy's savetxt and
 * spreadsheets write. Knows nothing of requests. Any thread may call these functions. */
#pragma once

#include "gpu/matrix/matrix.h"
#include "gpu/status.h"

#define MM_CSV_TYPE "text/csv"

/* A file whose shape is known. The caller owns the text and keeps it until the last mm_csv_read. */
struct mm_csv {
    const char *field; /* name of the file in errors; static */
    const char *text;  /* without a byte order mark */
    const char *end;   /* without the blanks and newlines at the end */
    char separator;    /* comma or semicolon, as in the first line */
    enum mm_dtype dtype;
    size_t rows;
    size_t cols;
};

/* Finds the shape. The first line has the number of columns; a file without lines is 0×0. rows·cols is at
 * most bytes + 1. text is not NULL. MM_BAD_REQUEST, with the line, if two lines have different numbers of
 * fields.
 */
enum mm_status mm_csv_open(const char *field, const char *text, size_t bytes, enum mm_dtype dtype,
                           struct mm_csv *csv, struct mm_error *error);

/* Reads all elements, row by row, into memory that is aligned to their size. MM_BAD_REQUEST, with line and
 * column, if the type cannot represent a field; *elements is undefined then. */
enum mm_status mm_csv_read(const struct mm_csv *csv, void *elements, struct mm_error *error);
