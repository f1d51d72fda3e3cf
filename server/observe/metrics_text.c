/* Prometheus' text format, line by line. */
#include "server/observe/metrics_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* In a HELP line quotes stand for themselves. */
static void put_escaped(FILE *out, const char *text, const char *quote) {
    for (; *text != '\0'; text++) {
        if (*text == '\n')
            fputs("\\n", out);
        else if (*text == '\\' || *text == *quote)
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
    }
}

void mm_text_family(FILE *out, const char *name, const char *type, const char *help) {
    fprintf(out, "# HELP %s ", name);
    put_escaped(out, help, "");
    fprintf(out, "\n# TYPE %s %s\n", name, type);
}

/* name{label="value",…,le="bound"} and the space after it; `le` may be NULL. */
static void put_name(FILE *out, const char *name, const char *suffix, const struct mm_label *labels,
                     const char *le) {
    char before = '{';
    fprintf(out, "%s%s", name, suffix);
    for (size_t index = 0; labels != NULL && index < MM_LABELS_MAX && labels[index].value != NULL; index++) {
        fprintf(out, "%c%s=\"", before, labels[index].name);
        put_escaped(out, labels[index].value, "\"");
        fputc('"', out);
        before = ',';
    }
    if (le != NULL)
        fprintf(out, "%cle=\"%s\"", before, le);
    fputs(before == ',' || le != NULL ? "} " : " ", out);
}

void mm_text_count(FILE *out, const char *name, const struct mm_label *labels, uint64_t value) {
    put_name(out, name, "", labels, NULL);
    fprintf(out, "%" PRIu64 "\n", value);
}

void mm_text_number(FILE *out, const char *name, const struct mm_label *labels, double value) {
    put_name(out, name, "", labels, NULL);
    char text[32] = "NaN";
    if (isinf(value))
        snprintf(text, sizeof text, "%s", value > 0 ? "+Inf" : "-Inf");
    else if (!isnan(value)) {
        snprintf(text, sizeof text, "%.15g", value);
        if (strtod(text, NULL) != value) /* the longer form always reads back, but is hard to read */
            snprintf(text, sizeof text, "%.17g", value);
    }
    fprintf(out, "%s\n", text);
}

void mm_text_histogram(FILE *out, const char *name, const struct mm_label *labels, const uint64_t *bounds_ns,
                       const uint64_t *buckets, size_t bound_count, uint64_t sum_ns) {
    uint64_t count = 0;
    for (size_t bucket = 0; bucket <= bound_count; bucket++) {
        char le[32] = "+Inf";
        if (bucket < bound_count)
            snprintf(le, sizeof le, "%g", (double)bounds_ns[bucket] / 1e9);
        count += buckets[bucket];
        put_name(out, name, "_bucket", labels, le);
        fprintf(out, "%" PRIu64 "\n", count);
    }
    put_name(out, name, "_sum", labels, NULL);
    fprintf(out, "%" PRIu64 ".%09" PRIu64 "\n", sum_ns / 1000000000, sum_ns % 1000000000);
    put_name(out, name, "_count", labels, NULL);
    fprintf(out, "%" PRIu64 "\n", count);
}
