/* Tables of figures, as CSV or as Markdown: a row is written cell by cell. A cell is given its column's name
 * in either form; NULL: the column is not shown there. The first row is written twice, since a table begins
 * with a head of names. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

/* To be set by the caller, with is_head. */
struct table {
    FILE *out;
    bool is_csv;
    bool is_head;   /* the names of the row that is written, and not its figures */
    unsigned cells; /* of this row, so far */
};

void table_text(struct table *table, const char *csv, const char *markdown, const char *text);

/* So many digits behind the point, or, where negative, so many that count. NaN: not known, and empty. */
void table_number(struct table *table, const char *csv, const char *markdown, int digits, double number);

static inline double table_known(double number, bool is_known) {
    return is_known ? number : (double)NAN;
}

/* Ends the row. Whether it was the head: the figures are then still to be written. */
bool table_end(struct table *table);
