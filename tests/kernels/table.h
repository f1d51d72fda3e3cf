/* Writes a table as CSV or as Markdown, cell by cell. Each cell names its column in both formats. If the name
 * for a format is NULL, this format omits the column. The caller writes the first row twice: the first time,
 * the functions write the names of the columns instead of the cells. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

/* The caller sets out, is_csv and is_head. The functions set the other members. */
struct table {
    FILE *out;
    bool is_csv;
    bool is_head;   /* write names of columns instead of cells */
    unsigned cells; /* number of cells written in this row */
};

void table_text(struct table *table, const char *csv, const char *markdown, const char *text);

/* Writes a number with `digits` digits behind the point, or with -digits significant digits if `digits` is
 * negative. NaN makes an empty cell. */
void table_number(struct table *table, const char *csv, const char *markdown, int digits, double number);

static inline double table_known(double number, bool is_known) {
    return is_known ? number : (double)NAN;
}

/* Ends the row. If the functions wrote the names of the columns, returns true: the caller must write the row
 * again. */
bool table_end(struct table *table);
