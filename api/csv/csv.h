/* CSV files of numbers, without a header line: a row a line. The reader takes what NumPy's savetxt and
 * spreadsheets write; it knows no requests. Any thread may call these functions. */
#pragma once

#include "gpu/matrix/matrix.h"
#include "gpu/status.h"

#define MM_CSV_TYPE "text/csv"

/* A file whose shape is known. The text is the caller's, who keeps it. */
struct mm_csv {
    const char *field; /* its name in errors: a or b; static */
    const char *text;  /* without a byte order mark */
    const char *end;   /* without blank lines, and without the last newline */
    char separator;    /* a comma or a semicolon, as the first line has it */
    enum mm_dtype dtype;
    size_t rows;
    size_t cols;
};

/* Finds the shape: as many columns as the first line has. A file without lines is 0×0. There are no more
 * fields than bytes, and one; text is not NULL. MM_BAD_REQUEST, with the line, if the lines have different
 * numbers of fields. */
enum mm_status mm_csv_open(const char *field, const char *text, size_t bytes, enum mm_dtype dtype,
                           struct mm_csv *csv, struct mm_error *error);

/* Reads all elements, row after row, into memory that is aligned to their size. MM_BAD_REQUEST, with line and
 * column, if a field is no number, or none that the type holds; *elements is undefined then. */
enum mm_status mm_csv_read(const struct mm_csv *csv, void *elements, struct mm_error *error);
