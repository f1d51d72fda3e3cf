/* Benchmarks on the wire: a JSON request, and the reply as JSON or as a table. It knows no queue.
 *
 * The functions keep no state: any thread that owns the arguments. No pointer may be NULL, unless it says so;
 * `error` may be NULL. Texts and tables that are returned without a size are static. */
#pragma once

#include "api/lab/occupancy.h"
#include "api/call.h"
#include "gpu/lab/benchmark.h"
#include "gpu/lab/probe.h"

enum { MM_BENCHMARK_BODY_BYTES_MAX = 64 << 10, MM_BENCHMARK_REPEATS = 20 /* the default */ };

/* A body that works, for the details of errors. */
#define MM_BENCHMARK_EXAMPLE "{\"m\": 1024, \"k\": 1024, \"n\": 1024}"

/* A row as the client wrote it: [BACKEND:]VARIANT[/TILE]. Names are cut to fit. */
struct mm_benchmark_name {
    char backend[MM_PARAMETER_NAME_MAX + 1]; /* "auto" if none was given */
    char variant[MM_PARAMETER_NAME_MAX + 1];
    unsigned tile; /* 0: none was given */
};

/* What an operation on the wire is: it times variants on matrices, or accesses to a device's memories, or it
 * only counts blocks. */
enum mm_benchmark_kind { MM_BENCHMARK_OF_VARIANTS, MM_BENCHMARK_OF_ACCESSES, MM_BENCHMARK_OF_OCCUPANCY };

/* All but the name and the kind belong to MM_BENCHMARK_OF_VARIANTS. */
struct mm_benchmark_op {
    const char *name;
    enum mm_benchmark_kind kind;
    enum mm_op op;
    const char *rate; /* the JSON member with mm_benchmark_rate */
    const char *rate_unit;
    const char *of_yardstick; /* the JSON member with a row's of_yardstick */
    const char *yardstick;
};

/* The table of operations, the first of them the default, and the row of a benchmark. */
const struct mm_benchmark_op *mm_benchmark_ops(size_t *count);
const struct mm_benchmark_op *mm_benchmark_op_of(const struct mm_benchmark *benchmark);

struct mm_benchmark_call {
    const struct mm_benchmark_op *op;
    uint64_t timeout_ms; /* 0: none was given */

    /* Of variants. */
    struct mm_benchmark_request request; /* without subjects */
    size_t name_count;                   /* 0: the server chooses the rows */
    struct mm_benchmark_name names[MM_BENCHMARK_ROWS_MAX];

    /* Of accesses. */
    char backend[MM_PARAMETER_NAME_MAX + 1]; /* "auto" if none was given */
    struct mm_probe probe;                   /* else without accesses */

    struct mm_occupancy_request occupancy; /* perhaps without a compute capability */
};

/* Whether a body of this Content-Type is JSON; the arguments as of mm_codec_for_request.
 * MM_UNSUPPORTED_MEDIA_TYPE. */
enum mm_status mm_benchmark_check_type(const char *content_type, bool body_seen, char first,
                                       struct mm_error *error);

/* Reads a complete body, of any bytes. MM_BAD_REQUEST (with line, column, field if they help), MM_TOO_LARGE
 * (a dimension, or the number of rows), MM_UNSUPPORTED (the op, the dtype); MM_NO_SUCH_MATRIX, and
 * MM_BAD_SHAPE of stored operands. *call is undefined on failure. The stored operands are in `held` then and
 * now, and the caller releases them; NULL: there are none. */
enum mm_status mm_benchmark_decode(const void *body, size_t bytes, const struct mm_limits *limits,
                                   struct mm_held *held, struct mm_benchmark_call *call,
                                   struct mm_error *error);

/* A format of the reply. Its functions write a finished benchmark, a probe or a table: malloc'ed, ended by
 * NUL, the caller frees; NULL if memory runs out. */
struct mm_benchmark_format {
    const char *media_type; /* as Accept names it */
    const char *reply_type;
    char *(*encode)(const struct mm_benchmark *benchmark, size_t *length);
    char *(*encode_probe)(const struct mm_probe *probe, size_t *length);
    char *(*encode_occupancy)(const struct mm_occupancy_request *request, size_t *length);
};

/* By Accept (NULL: absent), as mm_media_choose; JSON if it leaves the choice. MM_NOT_ACCEPTABLE. */
enum mm_status mm_benchmark_choose_format(const char *accept, const struct mm_benchmark_format **format,
                                          struct mm_error *error);

/* The names of the devices that rows ran on, each once, with ", " between them; cut to fit. */
void mm_benchmark_devices(const struct mm_benchmark *benchmark, char *text, size_t bytes);

/* The formats' functions for a benchmark. */
char *mm_benchmark_json(const struct mm_benchmark *benchmark, size_t *length);
char *mm_benchmark_text(const struct mm_benchmark *benchmark, size_t *length);
