/* Prometheus' text format 0.0.4: families of samples, written one after another to a stream. Knows no metric.
 * The connection thread that answers GET /metrics calls these functions.
 * https://prometheus.io/docs/instrumenting/exposition_formats/ */
#ifndef MM_SERVER_OBSERVE_METRICS_TEXT_H
#define MM_SERVER_OBSERVE_METRICS_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MM_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct mm_label {
    const char *name;  /* [a-z_]+ */
    const char *value; /* any UTF-8; NULL ends a list of labels */
};

enum { MM_LABELS_MAX = 3 };

/* The lines that go before a family's samples. `type` is "counter", "gauge" or "histogram". */
void mm_text_family(FILE *out, const char *name, const char *type, const char *help);

/* One sample. labels: up to MM_LABELS_MAX, or to the first without a value; NULL: none. */
void mm_text_count(FILE *out, const char *name, const struct mm_label *labels, uint64_t value);
void mm_text_number(FILE *out, const char *name, const struct mm_label *labels, double value);

/* A histogram in seconds: `buckets` has a count, not cumulative, per rising bound, and one more without a
 * bound. */
void mm_text_histogram(FILE *out, const char *name, const struct mm_label *labels, const uint64_t *bounds_ns,
                       const uint64_t *buckets, size_t bound_count, uint64_t sum_ns);

#endif
