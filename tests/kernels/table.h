/* Writes a table as CSV or as Markdown, cell by cell. Each cell gives its column's name for both formats;
 * NULL leaves the column out. The caller writes the first row twice, once as the head. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

/* The caller sets out, is_csv and is_head. */
struct table {
    FILE *out;
    bool is_csv;
    bool is_head;   /* write the columns' names instead of the cells */
    unsigned cells; /* cells written in the current row */
};

void table_text(struct table *table, const char *csv, const char *markdown, const char *text);

/* Writes a number with `digits` digits behind the point, or with -digits significant digits if negative. NaN
 * makes an empty cell. */
void table_number(struct table *table, const char *csv, const char *markdown, int digits, double number);

static inline double table_known(double number, bool is_known) {
    return is_known ? number : (double)NAN;
}

/* Ends the row. Returns true if it was the head, so the caller writes the row again with its values. */
bool table_end(struct table *table);
