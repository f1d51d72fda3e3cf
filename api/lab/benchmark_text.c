/* Writes a benchmark's reply for a terminal: a title, a table of times, and a table of predicted traffic. */
#include "api/lab/benchmark.h"

#include "api/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum column {
    VARIANT,
    BACKEND,
    REPEATS,
    MIN,
    MEDIAN,
    MAX,
    RATE,
    RATIO,
    RELATIVE_ERROR,
    MAX_ERROR,
    LOADS,
    COLUMN_COUNT
};

/* The traffic table has the columns up to BACKEND, then a column for each figure of mm_traffic except the
 * loads, then the intensity. */
enum { TRAFFIC_FIRST = BACKEND + 1, INTENSITY = TRAFFIC_FIRST + MM_TRAFFIC_COUNT - 1 };
static_assert((unsigned)INTENSITY < COLUMN_COUNT, "a line of traffic is no longer than one of times");

/* A line of a table. A failed row's error follows the row's cells. Columns with an empty head are not
 * written. */
enum { CELL_BYTES = 80 };
struct line {
    char cells[COLUMN_COUNT][CELL_BYTES];
    const struct mm_error *error; /* NULL if the row succeeded */
};

/* Writes about four significant digits, or more for large numbers. */
static void write_number(char *cell, double value) {
    const int decimals = fabs(value) >= 1000.0 ? 0 : fabs(value) >= 100.0 ? 1 : fabs(value) >= 10.0 ? 2 : 3;
    snprintf(cell, CELL_BYTES, "%.*f", decimals, value);
}

static void write_head(struct line *line, const struct mm_benchmark_op *op) {
    static const char *const names[COLUMN_COUNT] = {
        [VARIANT] = "variant",  [BACKEND] = "backend", [REPEATS] = "repeats",     [MIN] = "min ms",
        [MEDIAN] = "median ms", [MAX] = "max ms",      [MAX_ERROR] = "max error", [LOADS] = "global loads"};
    memset(line, 0, sizeof *line);
    for (unsigned column = 0; column < COLUMN_COUNT; column++)
        if (names[column] != NULL)
            snprintf(line->cells[column], CELL_BYTES, "%s", names[column]);
    snprintf(line->cells[RATE], CELL_BYTES, "%s", op->rate_unit);
    snprintf(line->cells[RATIO], CELL_BYTES, "of %s", op->yardstick);
    if (op->op == MM_MATMUL)
        snprintf(line->cells[RELATIVE_ERROR], CELL_BYTES, "relative error");
}

static void write_names(struct line *line, const struct mm_benchmark_subject *subject,
                        const struct mm_benchmark_row *row) {
    char *cell = line->cells[VARIANT];
    if (subject->tile > 0)
        snprintf(cell, CELL_BYTES, "%.40s/%u", subject->variant->name, subject->tile);
    else if (row->error.status == MM_OK && row->ran != NULL && row->ran != subject->variant)
        snprintf(cell, CELL_BYTES, "%.30s (%.30s)", subject->variant->name, row->ran->name);
    else
        snprintf(cell, CELL_BYTES, "%.50s%s", subject->variant->name,
                 subject->variant->wrong_on_purpose ? " (wrong on purpose)" : "");
    snprintf(line->cells[BACKEND], CELL_BYTES, "%.60s", subject->backend->name);
}

static void write_figure(char *cell, const struct mm_traffic *traffic, enum mm_traffic_figure figure) {
    if (traffic->figures[figure] != MM_TRAFFIC_UNKNOWN)
        snprintf(cell, CELL_BYTES, "%" PRIu64, traffic->figures[figure]);
}

static void write_row(struct line *line, const struct mm_benchmark *benchmark, size_t index,
                      const struct mm_traffic *traffic) {
    const struct mm_benchmark_row *row = &mm_benchmark_rows(benchmark)[index];
    memset(line, 0, sizeof *line);
    write_names(line, &mm_benchmark_request(benchmark)->subjects[index], row);
    for (unsigned column = REPEATS; column < COLUMN_COUNT; column++)
        snprintf(line->cells[column], CELL_BYTES, "-");
    if (row->error.status != MM_OK)
        line->error = &row->error;
    write_figure(line->cells[LOADS], traffic, MM_GLOBAL_LOADS);
    if (row->error.status != MM_OK || row->ran == NULL)
        return;
    snprintf(line->cells[REPEATS], CELL_BYTES, "%u", row->repeats);
    snprintf(line->cells[MIN], CELL_BYTES, "%.4f", row->min_ns / 1e6);
    snprintf(line->cells[MEDIAN], CELL_BYTES, "%.4f", row->median_ns / 1e6);
    snprintf(line->cells[MAX], CELL_BYTES, "%.4f", row->max_ns / 1e6);
    write_number(line->cells[RATE], mm_benchmark_rate(benchmark, row));
    if (row->of_yardstick > 0.0)
        write_number(line->cells[RATIO], row->of_yardstick);
    if (!isnan(row->relative_error))
        snprintf(line->cells[RELATIVE_ERROR], CELL_BYTES, "%.3g", row->relative_error);
    if (!isnan(row->max_error))
        snprintf(line->cells[MAX_ERROR], CELL_BYTES, "%.3g", row->max_error);
}

static void write_traffic_head(struct line *line, const struct mm_benchmark_op *op) {
    memset(line, 0, sizeof *line);
    snprintf(line->cells[VARIANT], CELL_BYTES, "variant");
    snprintf(line->cells[BACKEND], CELL_BYTES, "backend");
    for (enum mm_traffic_figure figure = MM_GLOBAL_LOADS + 1; figure < MM_TRAFFIC_COUNT; figure++)
        snprintf(line->cells[TRAFFIC_FIRST + figure - 1], CELL_BYTES, "%s", mm_traffic_title(figure));
    if (op->op == MM_MATMUL)
        snprintf(line->cells[INTENSITY], CELL_BYTES, "FLOP/byte");
}

/* Returns false if the row's traffic is not known. */
static bool write_traffic(struct line *line, const struct mm_benchmark *benchmark, size_t index,
                          const struct mm_traffic *traffic) {
    const struct mm_benchmark_row *row = &mm_benchmark_rows(benchmark)[index];
    if (traffic->figures[MM_GLOBAL_LOAD_SECTORS] == MM_TRAFFIC_UNKNOWN)
        return false;
    memset(line, 0, sizeof *line);
    write_names(line, &mm_benchmark_request(benchmark)->subjects[index], row);
    for (unsigned column = TRAFFIC_FIRST; column < INTENSITY; column++)
        snprintf(line->cells[column], CELL_BYTES, "-");
    for (enum mm_traffic_figure figure = MM_GLOBAL_LOADS + 1; figure < MM_TRAFFIC_COUNT; figure++)
        write_figure(line->cells[TRAFFIC_FIRST + figure - 1], traffic, figure);
    write_number(line->cells[INTENSITY], mm_benchmark_intensity(benchmark, traffic));
    return true;
}

/* Writes a line with names aligned left and numbers right. */
static void print_line(FILE *out, const struct line *line, const size_t *widths) {
    for (unsigned column = 0; column < COLUMN_COUNT; column++)
        if (widths[column] > 0)
            fprintf(out, column < REPEATS ? "%s%-*s" : "%s%*s", column > 0 ? "  " : "", (int)widths[column],
                    line->cells[column]);
    if (line->error != NULL)
        fprintf(out, "  %s: %s", mm_status_name(line->error->status), line->error->detail);
    fputc('\n', out);
}

/* Writes a table. The first line is the head. */
static void print_table(FILE *out, const struct line *lines, size_t count) {
    size_t widths[COLUMN_COUNT] = {0};
    for (size_t row = 0; row < count; row++)
        for (unsigned column = 0; column < COLUMN_COUNT; column++)
            if (lines[0].cells[column][0] != '\0' && strlen(lines[row].cells[column]) > widths[column])
                widths[column] = strlen(lines[row].cells[column]);
    for (size_t row = 0; row < count; row++)
        print_line(out, &lines[row], widths);
}

static void print_title(FILE *out, const struct mm_benchmark *benchmark) {
    const struct mm_benchmark_op *op = mm_benchmark_op_of(benchmark);
    const struct mm_benchmark_request *request = mm_benchmark_request(benchmark);
    char devices[512];
    mm_benchmark_devices(benchmark, devices, sizeof devices);
    fprintf(out, "%s m=%zu", op->name, request->m);
    if (op->op == MM_MATMUL)
        fprintf(out, " k=%zu", request->k);
    fprintf(out, " n=%zu %s", request->n, mm_dtype_name(request->dtype));
    if (op->op == MM_MATMUL && request->c_dtype != request->dtype)
        fprintf(out, " result_dtype=%s", mm_dtype_name(request->c_dtype));
    fprintf(out, "%s%s%s%s%s\n\n", request->transpose_a ? " transpose_a" : "",
            request->transpose_b ? " transpose_b" : "", request->epilogue.is_set ? " epilogue" : "",
            devices[0] == '\0' ? ", predicted" : " on ", devices);
}

char *mm_benchmark_text(const struct mm_benchmark *benchmark, size_t *length) {
    const size_t count = mm_benchmark_request(benchmark)->subject_count;
    struct mm_traffic
        traffic[MM_BENCHMARK_ROWS_MAX]; /* predicted only once, because a prediction takes up to 1 ms */
    char *made = NULL;
    struct mm_text text;
    struct line *lines = malloc((1 + count) * sizeof *lines);
    FILE *out = lines == NULL ? NULL : mm_text_open(&text);
    if (out != NULL) {
        size_t known = 0;
        print_title(out, benchmark);
        write_head(&lines[0], mm_benchmark_op_of(benchmark));
        for (size_t row = 0; row < count; row++) {
            traffic[row] = mm_benchmark_traffic(benchmark, row);
            write_row(&lines[1 + row], benchmark, row, &traffic[row]);
        }
        print_table(out, lines, 1 + count);
        write_traffic_head(&lines[0], mm_benchmark_op_of(benchmark));
        for (size_t row = 0; row < count; row++)
            known += write_traffic(&lines[1 + known], benchmark, row, &traffic[row]);
        if (known > 0) {
            fputs("\npredicted memory traffic\n\n", out);
            print_table(out, lines, 1 + known);
        }
        made = mm_text_close(out, &text, length);
    }
    free(lines);
    return made;
}
