#include "tests/kernels/table.h"

#include <math.h>
#include <string.h>

/* Begins a cell, or writes the column's name. Returns whether the caller must write the cell's content. */
static bool begin(struct table *table, const char *csv, const char *markdown) {
    const char *name = table->is_csv ? csv : markdown;
    if (name == NULL)
        return false;
    if (table->is_csv)
        fputs(table->cells++ > 0 ? "," : "", table->out);
    else
        fputs(table->cells++ > 0 ? " | " : "| ", table->out);
    if (table->is_head)
        fputs(name, table->out);
    return !table->is_head;
}

/* Quotes a text with commas, spaces or quotes, as RFC 4180 demands. */
static void print_csv_text(FILE *out, const char *text) {
    const bool is_quoted = strpbrk(text, " ,\"") != NULL;
    fputs(is_quoted ? "\"" : "", out);
    for (; *text != '\0'; text++) {
        fputs(*text == '"' ? "\"" : "", out);
        fputc(*text, out);
    }
    fputs(is_quoted ? "\"" : "", out);
}

void table_text(struct table *table, const char *csv, const char *markdown, const char *text) {
    if (!begin(table, csv, markdown))
        return;
    if (table->is_csv)
        print_csv_text(table->out, text);
    else
        fputs(text, table->out);
}

void table_number(struct table *table, const char *csv, const char *markdown, int digits, double number) {
    if (!begin(table, csv, markdown) || isnan(number))
        return;
    if (digits < 0)
        fprintf(table->out, "%.*g", -digits, number);
    else
        fprintf(table->out, "%.*f", digits, number);
}

bool table_end(struct table *table) {
    const bool was_head = table->is_head;
    fputs(table->is_csv ? "\n" : " |\n", table->out);
    if (was_head && !table->is_csv) {
        while (table->cells-- > 0)
            fputs("|--:", table->out);
        fputs("|\n", table->out);
    }
    table->cells = 0;
    table->is_head = false;
    return was_head;
}
