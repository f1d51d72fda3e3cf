/* Reads CSV files of numbers. Each line is a row of the matrix; there is no header line. The reader accepts
 * what NumPy's savetxt and spreadsheets write. Any thread may call these functions. */
#pragma once

#include "gpu/matrix/matrix.h"
#include "gpu/status.h"

#define MM_CSV_TYPE "text/csv"

/* A file whose shape is known. The caller owns the text, and keeps it until the last mm_csv_read. */
struct mm_csv {
    const char *field; /* name of the file for errors; static */
    const char *text;  /* begins after a byte order mark */
    const char *end;   /* excludes blanks and newlines at the end of the file */
    char separator;    /* comma or semicolon */
    enum mm_dtype dtype;
    size_t rows;
    size_t cols;
};

/* Finds the shape: the number of lines, and the number of fields in the first line. An empty file is 0×0.
 * rows·cols is at most bytes + 1. text must not be NULL. Fails with MM_BAD_REQUEST if lines have different
 * numbers of fields. */
enum mm_status mm_csv_open(const char *field, const char *text, size_t bytes, enum mm_dtype dtype,
                           struct mm_csv *csv, struct mm_error *error);

/* Reads all elements, row by row. `elements` must be aligned to the element size. Fails with MM_BAD_REQUEST
 * if the type cannot represent a field; *elements is then undefined. */
enum mm_status mm_csv_read(const struct mm_csv *csv, void *elements, struct mm_error *error);
