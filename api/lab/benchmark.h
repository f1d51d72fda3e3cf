/* Reads benchmark requests from JSON, and writes replies as JSON or tables. Does not run the benchmarks.
 *
 * Any thread that owns the arguments may call these functions. `error` may be NULL. No other pointer may be
 * NULL, unless a comment allows it. */
#pragma once

#include "api/lab/occupancy.h"
#include "api/call.h"
#include "gpu/lab/benchmark.h"
#include "gpu/lab/probe.h"

enum { MM_BENCHMARK_BODY_BYTES_MAX = 64 << 10, MM_BENCHMARK_REPEATS = 20 /* the default of `repeats` */ };

/* A valid body, which errors show as an example. */
#define MM_BENCHMARK_EXAMPLE "{\"m\": 1024, \"k\": 1024, \"n\": 1024}"

/* A variant to measure, which the client writes as [BACKEND:]VARIANT[/TILE]. Names are cut to fit. */
struct mm_benchmark_name {
    char backend[MM_PARAMETER_NAME_MAX + 1]; /* "auto" if none was given */
    char variant[MM_PARAMETER_NAME_MAX + 1];
    unsigned tile; /* 0 if none was given */
};

/* What an operation does: it measures variants, measures accesses to a device's memories, or computes how
 * many blocks fit on a multiprocessor. */
enum mm_benchmark_kind { MM_BENCHMARK_OF_VARIANTS, MM_BENCHMARK_OF_ACCESSES, MM_BENCHMARK_OF_OCCUPANCY };

/* An operation that a request can name. Only MM_BENCHMARK_OF_VARIANTS uses the members after `kind`.
 * `yardstick` is the name of the variant that the other variants are compared with. */
struct mm_benchmark_op {
    const char *name;
    enum mm_benchmark_kind kind;
    enum mm_op op;
    const char *rate; /* the JSON member for mm_benchmark_rate */
    const char *rate_unit;
    const char *of_yardstick; /* the JSON member for the speed relative to the yardstick */
    const char *yardstick;
};

/* Returns the static table of operations. The first operation is the default. */
const struct mm_benchmark_op *mm_benchmark_ops(size_t *count);

const struct mm_benchmark_op *mm_benchmark_op_of(const struct mm_benchmark *benchmark);

/* A decoded request. `op` decides which of the later members are used. */
struct mm_benchmark_call {
    const struct mm_benchmark_op *op;
    uint64_t timeout_ms; /* 0 if none was given */

    /* For MM_BENCHMARK_OF_VARIANTS. */
    struct mm_benchmark_request request; /* the server sets request.subjects later */
    size_t name_count;                   /* 0 if the server chooses the variants */
    struct mm_benchmark_name names[MM_BENCHMARK_ROWS_MAX];

    /* For MM_BENCHMARK_OF_ACCESSES. */
    char backend[MM_PARAMETER_NAME_MAX + 1]; /* "auto" if none was given */
    struct mm_probe probe;                   /* has no accesses for other operations */

    /* For MM_BENCHMARK_OF_OCCUPANCY. The compute capability may be missing. */
    struct mm_occupancy_request occupancy;
};

/* Fails with MM_UNSUPPORTED_MEDIA_TYPE if the body is not JSON. Arguments are as in mm_codec_for_request. */
enum mm_status mm_benchmark_check_type(const char *content_type, bool body_seen, char first,
                                       struct mm_error *error);

/* Reads a complete body. Fails with MM_BAD_REQUEST (with line, column and field if known), MM_TOO_LARGE,
 * MM_UNSUPPORTED, MM_NO_SUCH_MATRIX, or MM_BAD_SHAPE (stored operands do not fit together). On failure *call
 * is undefined. Adds stored operands to *references, even on failure. The caller releases the references. If
 * `references` is NULL, stored operands are not supported. */
enum mm_status mm_benchmark_decode(const void *body, size_t bytes, const struct mm_limits *limits,
                                   struct mm_references *references, struct mm_benchmark_call *call,
                                   struct mm_error *error);

/* A format of replies. The functions return malloc'ed text, which the caller frees, or NULL if memory runs
 * out. *length does not count the NUL at the end. */
struct mm_benchmark_format {
    const char *media_type; /* matched with Accept */
    const char *reply_type;
    char *(*encode)(const struct mm_benchmark *benchmark, size_t *length);
    char *(*encode_probe)(const struct mm_probe *probe, size_t *length);
    char *(*encode_occupancy)(const struct mm_occupancy_request *request, size_t *length);
};

/* Chooses the format by Accept (NULL if absent); JSON is preferred. Fails with MM_NOT_ACCEPTABLE. */
enum mm_status mm_benchmark_choose_format(const char *accept, const struct mm_benchmark_format **format,
                                          struct mm_error *error);

/* Writes the names of the devices that rows ran on. Each name occurs once. Cuts the list to fit. */
void mm_benchmark_devices(const struct mm_benchmark *benchmark, char *text, size_t bytes);

/* Both functions write a reply as malloc'ed text, which the caller frees. They return NULL if memory runs
 * out. */
char *mm_benchmark_json(const struct mm_benchmark *benchmark, size_t *length);
char *mm_benchmark_text(const struct mm_benchmark *benchmark, size_t *length);
