/* What was timed, as Markdown for people and as CSV for programs. It times nothing. */
#include "tests/kernels/harness.h"

#include <math.h>

static const char *name_of(const struct timed_row *row) {
    return row->copies ? "copy" : row->variant->name;
}

/* Whether there are errors to tell, as there are not of the copy. */
static bool is_judged(const struct timed_row *row) {
    return row->figures.error.status == MM_OK && !row->copies;
}

/* Numbers that there may not be: such a cell stays empty. */
static void print_count(FILE *out, const char *between, size_t value) {
    fputs(between, out);
    if (value > 0)
        fprintf(out, "%zu", value);
}

static void print_number(FILE *out, const char *between, int digits, double value, bool there) {
    fputs(between, out);
    if (there)
        fprintf(out, "%.*f", digits, value);
}

/* An error that is not known is empty. */
static void print_error(FILE *out, const char *between, double error, bool there) {
    fputs(between, out);
    if (there && !isnan(error))
        fprintf(out, "%.3g", error);
}

static void print_remark(FILE *out, const struct timed_row *row) {
    const struct mm_benchmark_row *figures = &row->figures;
    const char *wrong = row->wrong ? "wrong" : "";
    if (figures->error.status != MM_OK)
        fprintf(out, " | %s: %s |\n", mm_status_name(figures->error.status), figures->error.detail);
    else if (!row->copies && figures->ran != row->variant)
        fprintf(out, " | %s%sran %s |\n", wrong, row->wrong ? "; " : "", figures->ran->name);
    else
        fprintf(out, " | %s%s|\n", wrong, row->wrong ? " " : "");
}

void table_markdown(FILE *out, const struct timed_row *rows, size_t count, const struct timing *timing) {
    const bool multiplies = timing->op == MM_MATMUL;
    fprintf(out,
            "| backend | variant | tile | min ms | median ms | max ms | repeats | %s | "
            "registers | shared bytes | blocks per multiprocessor | remark |\n"
            "|---|---|--:|--:|--:|--:|--:|%s--:|--:|--:|--:|--:|---|\n",
            multiplies ? "GFLOP/s | % of blas | relative error | max error" : "GB/s | % of copy",
            multiplies ? "--:|--:|" : "");
    for (size_t index = 0; index < count; index++) {
        const struct timed_row *row = &rows[index];
        const struct mm_attributes *uses = &row->attributes;
        const struct mm_benchmark_row *figures = &row->figures;
        const bool timed = figures->error.status == MM_OK;
        fprintf(out, "| %s | %s ", row->device->backend->name, name_of(row));
        print_count(out, "| ", row->tile);
        print_number(out, " | ", 4, figures->min_ns * 1e-6, timed);
        print_number(out, " | ", 4, figures->median_ns * 1e-6, timed);
        print_number(out, " | ", 4, figures->max_ns * 1e-6, timed);
        print_count(out, " | ", timed ? figures->repeats : 0);
        print_number(out, " | ", 1, row->rate, timed);
        print_number(out, " | ", 1, 100.0 * figures->of_yardstick, figures->of_yardstick > 0.0);
        if (multiplies) {
            print_error(out, " | ", figures->relative_error, is_judged(row));
            print_error(out, " | ", figures->max_error, is_judged(row));
        }
        print_count(out, " | ", uses->registers_per_thread);
        /* None is an answer too, where the device tells of the kernel at all. */
        print_number(out, " | ", 0, (double)(uses->static_shared_bytes + uses->dynamic_shared_bytes),
                     uses->threads_per_block > 0);
        print_count(out, " | ", uses->blocks_per_multiprocessor);
        print_remark(out, row);
    }
}

void table_csv_head(FILE *out) {
    fputs("op,dtype,m,k,n,transpose_a,transpose_b,backend,variant,ran,tile,status,repeats,min_ms,median_ms,"
          "max_ms,"
          "gflops,percent_of_blas,gigabytes_per_second,percent_of_copy,max_error,relative_error,"
          "threads_per_block,registers_per_thread,static_shared_bytes,dynamic_shared_bytes,local_bytes,"
          "blocks_per_multiprocessor,device\n",
          out);
}

void table_text(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

void table_csv(FILE *out, const struct timed_row *rows, size_t count, struct shape shape,
               const struct timing *timing) {
    for (size_t index = 0; index < count; index++) {
        const struct timed_row *row = &rows[index];
        const struct mm_attributes *uses = &row->attributes;
        const struct mm_benchmark_row *figures = &row->figures;
        const bool timed = figures->error.status == MM_OK;
        const bool told = uses->threads_per_block > 0;
        const bool multiplies = timing->op == MM_MATMUL;
        const double percent = 100.0 * figures->of_yardstick;
        fprintf(out, "%s,%s,%zu,%zu,%zu,%d,%d,%s,%s,%s", mm_op_name(row->variant->op),
                mm_dtype_name(timing->dtype), shape.m, shape.k, shape.n, timing->transpose_a,
                timing->transpose_b, row->device->backend->name, name_of(row),
                row->copies || figures->ran == NULL ? name_of(row) : figures->ran->name);
        print_count(out, ",", row->tile);
        fprintf(out, ",%s,%u", row->wrong ? "wrong" : mm_status_name(figures->error.status),
                timed ? figures->repeats : 0);
        print_number(out, ",", 6, figures->min_ns * 1e-6, timed);
        print_number(out, ",", 6, figures->median_ns * 1e-6, timed);
        print_number(out, ",", 6, figures->max_ns * 1e-6, timed);
        print_number(out, ",", 6, row->rate, timed && multiplies);
        print_number(out, ",", 3, percent, percent > 0.0 && multiplies);
        print_number(out, ",", 6, row->rate, timed && !multiplies);
        print_number(out, ",", 3, percent, percent > 0.0 && !multiplies);
        print_error(out, ",", figures->max_error, is_judged(row));
        print_error(out, ",", figures->relative_error, is_judged(row) && multiplies);
        const double counts[] = {
            (double)uses->threads_per_block,   (double)uses->registers_per_thread,
            (double)uses->static_shared_bytes, (double)uses->dynamic_shared_bytes,
            (double)uses->local_bytes,         (double)uses->blocks_per_multiprocessor,
        };
        for (size_t which = 0; which < sizeof counts / sizeof *counts; which++)
            print_number(out, ",", 0, counts[which], told);
        fputc(',', out);
        table_text(out, row->device->name);
        fputc('\n', out);
    }
}
