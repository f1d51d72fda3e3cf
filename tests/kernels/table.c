/* What was timed, as Markdown for people and as CSV for programs. It times nothing. */
#include "tests/kernels/harness.h"

#include <string.h>

static double gflops(const struct timed_row *row, struct shape shape) {
    const struct mm_product product = {.m = shape.m, .n = shape.n, .k = shape.k};
    return row->median_ns > 0.0 ? mm_product_flops(&product) / row->median_ns : 0.0;
}

/* Of bytes read and written, which per nanosecond are gigabytes per second. */
static double gigabytes(const struct timed_row *row, struct shape shape, enum mm_dtype dtype) {
    const double bytes = 2.0 * (double)shape.m * (double)shape.n * (double)mm_dtype_bytes(dtype);
    return row->median_ns > 0.0 ? bytes / row->median_ns : 0.0;
}

static double rate(const struct timed_row *row, struct shape shape, const struct timing *timing) {
    return timing->op == MM_MATMUL ? gflops(row, shape) : gigabytes(row, shape, timing->dtype);
}

static bool is_yardstick(const struct timed_row *row) {
    return row->variant->op == MM_MATMUL ? strcmp(row->variant->name, "blas") == 0 : row->copies;
}

static const char *name_of(const struct timed_row *row) {
    return row->copies ? "copy" : row->variant->name;
}

/* The row's speed in hundredths of that of its own device's yardstick; 0 where that is not among the rows. */
static double percent_of_yardstick(const struct timed_row *row, const struct timed_row *rows, size_t count) {
    for (size_t index = 0; index < count; index++) {
        const struct timed_row *yardstick = &rows[index];
        if (yardstick->device == row->device && is_yardstick(yardstick) && row->median_ns > 0.0)
            return 100.0 * yardstick->median_ns / row->median_ns;
    }
    return 0.0;
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

void table_markdown(FILE *out, const struct timed_row *rows, size_t count, struct shape shape,
                    const struct timing *timing) {
    fprintf(out,
            "| backend | variant | tile | min ms | median ms | max ms | repeats | %s | "
            "registers | shared bytes | blocks per multiprocessor | remark |\n"
            "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n",
            timing->op == MM_MATMUL ? "GFLOP/s | % of blas" : "GB/s | % of copy");
    for (size_t index = 0; index < count; index++) {
        const struct timed_row *row = &rows[index];
        const struct mm_attributes *uses = &row->attributes;
        const bool timed = row->repeats > 0;
        const double percent = percent_of_yardstick(row, rows, count);
        fprintf(out, "| %s | %s ", row->device->backend->name, name_of(row));
        print_count(out, "| ", row->tile);
        print_number(out, " | ", 4, row->min_ns * 1e-6, timed);
        print_number(out, " | ", 4, row->median_ns * 1e-6, timed);
        print_number(out, " | ", 4, row->max_ns * 1e-6, timed);
        print_count(out, " | ", row->repeats);
        print_number(out, " | ", 1, rate(row, shape, timing), timed);
        print_number(out, " | ", 1, percent, percent > 0.0);
        print_count(out, " | ", uses->registers_per_thread);
        /* None is an answer too, where the device tells of the kernel at all. */
        print_number(out, " | ", 0, (double)(uses->static_shared_bytes + uses->dynamic_shared_bytes),
                     uses->threads_per_block > 0);
        print_count(out, " | ", uses->blocks_per_multiprocessor);
        if (!timed)
            fprintf(out, " | %s: %s |\n", mm_status_name(row->status), row->error.detail);
        else if (row->ran != row->variant)
            fprintf(out, " | ran %s |\n", row->ran->name);
        else
            fputs(" | |\n", out);
    }
}

void table_csv_head(FILE *out) {
    fputs("op,dtype,m,k,n,transpose_a,transpose_b,backend,variant,ran,tile,status,repeats,min_ms,median_ms,"
          "max_ms,"
          "gflops,percent_of_blas,gigabytes_per_second,percent_of_copy,"
          "threads_per_block,registers_per_thread,static_shared_bytes,dynamic_shared_bytes,local_bytes,"
          "blocks_per_multiprocessor,device\n",
          out);
}

/* In quotes, so that commas may be in it; its own quotes are written twice (RFC 4180). */
static void print_text(FILE *out, const char *text) {
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
        const bool timed = row->repeats > 0;
        const bool told = uses->threads_per_block > 0;
        const bool multiplies = timing->op == MM_MATMUL;
        const double percent = percent_of_yardstick(row, rows, count);
        fprintf(out, "%s,%s,%zu,%zu,%zu,%d,%d,%s,%s,%s", mm_op_name(row->variant->op),
                mm_dtype_name(timing->dtype), shape.m, shape.k, shape.n, timing->transpose_a,
                timing->transpose_b, row->device->backend->name, name_of(row),
                row->copies ? name_of(row) : row->ran->name);
        print_count(out, ",", row->tile);
        fprintf(out, ",%s,%u", mm_status_name(row->status), row->repeats);
        print_number(out, ",", 6, row->min_ns * 1e-6, timed);
        print_number(out, ",", 6, row->median_ns * 1e-6, timed);
        print_number(out, ",", 6, row->max_ns * 1e-6, timed);
        print_number(out, ",", 3, gflops(row, shape), timed && multiplies);
        print_number(out, ",", 3, percent, percent > 0.0 && multiplies);
        print_number(out, ",", 3, gigabytes(row, shape, timing->dtype), timed && !multiplies);
        print_number(out, ",", 3, percent, percent > 0.0 && !multiplies);
        const double counts[] = {
            (double)uses->threads_per_block,   (double)uses->registers_per_thread,
            (double)uses->static_shared_bytes, (double)uses->dynamic_shared_bytes,
            (double)uses->local_bytes,         (double)uses->blocks_per_multiprocessor,
        };
        for (size_t which = 0; which < sizeof counts / sizeof *counts; which++)
            print_number(out, ",", 0, counts[which], told);
        fputc(',', out);
        print_text(out, row->device->name);
        fputc('\n', out);
    }
}
