/* Benchmarks on the wire: a JSON request, and the reply as JSON or as a table. Knows no queue.
 *
 * Any thread that owns the arguments may call these functions. No pointer may be NULL, except `error` and
 * where a comment allows NULL. */
#pragma once

#include "api/lab/occupancy.h"
#include "api/call.h"
#include "gpu/lab/benchmark.h"
#include "gpu/lab/probe.h"

enum { MM_BENCHMARK_BODY_BYTES_MAX = 64 << 10, MM_BENCHMARK_REPEATS = 20 /* the default of `repeats` */ };

/* A body that works, for the details of errors. */
#define MM_BENCHMARK_EXAMPLE "{\"m\": 1024, \"k\": 1024, \"n\": 1024}"

/* A row as the client wrote it: [BACKEND:]VARIANT[/TILE]. Names are cut to fit. */
struct mm_benchmark_name {
    char backend[MM_PARAMETER_NAME_MAX + 1]; /* "auto" if none was given */
    char variant[MM_PARAMETER_NAME_MAX + 1];
    unsigned tile; /* 0: none was given */
};

/* The kinds of operations: timing variants on matrices, timing accesses to a device's memories, and counting
 * the blocks of a multiprocessor. */
enum mm_benchmark_kind { MM_BENCHMARK_OF_VARIANTS, MM_BENCHMARK_OF_ACCESSES, MM_BENCHMARK_OF_OCCUPANCY };

/* Only MM_BENCHMARK_OF_VARIANTS uses the members after `kind`. */
struct mm_benchmark_op {
    const char *name;
    enum mm_benchmark_kind kind;
    enum mm_op op;
    const char *rate; /* name of the JSON member with mm_benchmark_rate */
    const char *rate_unit;
    const char *of_yardstick; /* name of the JSON member that holds of_yardstick */
    const char *yardstick;
};

/* Returns the static table of operations; the first one is the default. */
const struct mm_benchmark_op *mm_benchmark_ops(size_t *count);

/* Finds a benchmark's row in the table of operations. */
const struct mm_benchmark_op *mm_benchmark_op_of(const struct mm_benchmark *benchmark);

/* A decoded request. `op` decides which members are used. */
struct mm_benchmark_call {
    const struct mm_benchmark_op *op;
    uint64_t timeout_ms; /* 0: none was given */

    /* MM_BENCHMARK_OF_VARIANTS. */
    struct mm_benchmark_request request; /* without subjects */
    size_t name_count;                   /* 0: the server chooses the rows */
    struct mm_benchmark_name names[MM_BENCHMARK_ROWS_MAX];

    /* MM_BENCHMARK_OF_ACCESSES. */
    char backend[MM_PARAMETER_NAME_MAX + 1]; /* "auto" if none was given */
    struct mm_probe probe;                   /* no accesses if op is of another kind */

    /* MM_BENCHMARK_OF_OCCUPANCY; the compute capability may be missing. */
    struct mm_occupancy_request occupancy;
};

/* Checks that a body of this Content-Type is JSON. mm_codec_for_request explains the arguments.
 * MM_UNSUPPORTED_MEDIA_TYPE. */
enum mm_status mm_benchmark_check_type(const char *content_type, bool body_seen, char first,
                                       struct mm_error *error);

/* Reads a complete body, which may hold any bytes. MM_BAD_REQUEST (with line, column, field if they help),
 * MM_TOO_LARGE (a dimension, or the number of rows), MM_UNSUPPORTED (the op, the dtype), MM_NO_SUCH_MATRIX,
 * MM_BAD_SHAPE (stored operands do not fit). *call is undefined on failure. The function adds the
 * stored operands to *references, also on failure, and the caller releases them. If `references` is NULL,
 * stored operands are not supported. */
enum mm_status mm_benchmark_decode(const void *body, size_t bytes, const struct mm_limits *limits,
                                   struct mm_references *references, struct mm_benchmark_call *call,
                                   struct mm_error *error);

/* A format of the reply. Its functions return malloc'ed text, which ends by NUL and which the caller frees,
 * or NULL if memory runs out. */
struct mm_benchmark_format {
    const char *media_type; /* as Accept names it */
    const char *reply_type;
    char *(*encode)(const struct mm_benchmark *benchmark, size_t *length);
    char *(*encode_probe)(const struct mm_probe *probe, size_t *length);
    char *(*encode_occupancy)(const struct mm_occupancy_request *request, size_t *length);
};

/* Chooses the format by Accept (NULL: absent) through mm_media_choose; JSON if Accept leaves the choice.
 * MM_NOT_ACCEPTABLE. */
enum mm_status mm_benchmark_choose_format(const char *accept, const struct mm_benchmark_format **format,
                                          struct mm_error *error);

/* Writes the names of the devices that rows ran on, each once, with ", " between them; cut to fit. */
void mm_benchmark_devices(const struct mm_benchmark *benchmark, char *text, size_t bytes);

/* Write a benchmark's reply as JSON, and as tables. Both return malloc'ed text, which ends by NUL and which
 * the caller frees, or NULL if memory runs out. */
char *mm_benchmark_json(const struct mm_benchmark *benchmark, size_t *length);
char *mm_benchmark_text(const struct mm_benchmark *benchmark, size_t *length);
