/* The table of routes, with a row for each method of a path. */
#pragma once

#include "server/http/request.h"

/* Whether requests need an API key. They also need an allowed Host header, except for MM_ENTRY_HEALTH. */
enum mm_entry {
    MM_ENTRY_KEY,     /* an API key; the default */
    MM_ENTRY_METRICS, /* an API key unless --open-metrics is given */
    MM_ENTRY_OPEN,
    MM_ENTRY_HEALTH /* no key and any Host, because probes use any server name */
};

enum mm_body_use {
    MM_BODY_NONE, /* if a body arrives, it is read and dropped */
    MM_BODY_OPTIONAL,
    MM_BODY_REQUIRED, /* the body has a Content-Length or is chunked */
    MM_BODY_SIZED     /* the body has a Content-Length; `admit` checks the limit */
};

/* What the server calls and stores for a route whose requests wait for the worker pool or for jobs. */
struct mm_route_state {
    size_t bytes;

    /* Decodes in MM_DECODING or encodes in MM_ENCODING, on the worker pool and with no lock held. Must not
     * call MHD, and may write only to `own` and the body, because the request may be abandoned meanwhile.
     * NULL if the route does not use the worker pool. */
    enum mm_status (*work)(struct mm_request *request, enum mm_request_state state, struct mm_error *error);

    /* Decides what follows after `work` has succeeded or request->work has ended, even with an error. Returns
     * MM_QUEUED to submit request->work, which must be prepared; MM_ENCODING to call `work` again; or
     * MM_ANSWERING. Called with server->mutex held, but not for an abandoned request. NULL if
     * MM_ANSWERING always follows. */
    enum mm_request_state (*next)(struct mm_request *request, enum mm_request_state ended);

    /* Sets upload.mode to decide whether to stream a body. While the mode is MM_UPLOAD_UNDECIDED, the
     * connection's thread calls it with each new chunk; earlier bytes are in the buffer. Sets request->error
     * on failure. */
    void (*decide_to_stream)(struct mm_request *request, const char *chunk, size_t bytes);

    /* Processes the MM_UPLOAD_CHUNK_BYTES buffered bytes of a streamed body. `complete` processes the bytes
     * after the last full buffer. Also sets request->error to the status. Called on the connection's
     * thread. */
    enum mm_status (*stream)(struct mm_request *request);

    /* Whether the store gave the space of a streamed body to other requests. If so, sets *error. Called with
     * server->mutex held. */
    bool (*has_lost_space)(const struct mm_request *request, struct mm_error *error);

    /* Releases the memory and the store space of `own`; NULL if `own` has neither. Called with server->mutex
     * held if the request is refused while it waits for memory or receives its body. */
    void (*drop_memory)(struct mm_request *request);

    /* Releases everything in `own`, which may be all zeros. Called with no lock held, after a failure and
     * when the request ends, but never while a thread works on the request. */
    void (*release)(struct mm_request *request);
};

struct mm_route {
    const char *method; /* "GET" includes HEAD */
    const char *path; /* "{name}" matches any text, even with slashes; the first path that matches is used */
    enum mm_entry entry;
    enum mm_body_use body;
    size_t body_bytes_max; /* limit of this route; 0: only --max-body */
    bool inflates;         /* the body may be compressed; if so, the handlers get it inflated */

    /* Checks the head before the body arrives: MM_OK or an error in request->error. NULL: no check. */
    enum mm_status (*admit)(struct mm_request *request);

    /* Called when the whole body is there, or was dropped. `complete` queues a reply or begins a wait. After
     * the wait, `answer` is called. Errors go into request->error. */
    enum mm_status (*complete)(struct mm_request *request);
    enum mm_status (*answer)(struct mm_request *request);
    const struct mm_route_state *state; /* NULL: requests do not wait for the pool or jobs */
    const char *example;                /* a valid JSON body, for error messages; NULL: none */

    /* Returns the option that switches the route off, or NULL if the route is on. The pointer is NULL if no
     * option can switch the route off. */
    const char *(*switched_off)(const struct mm_options *options);
};

/* Returns the size of the largest state of a route (route->state->bytes). */
size_t mm_route_state_bytes_max(void);

/* Returns the path within a request target, which may be a whole URL (RFC 9112, 3.2.2). */
const char *mm_route_path(const char *target);

/* Returns the format of error replies for a path. The path need not have a route. Any thread may call it. */
const struct mm_problem_form *mm_route_problems(const char *path);

/* Writes the methods of a path, as in "GET, HEAD, OPTIONS". Any thread may call it. */
void mm_route_methods(const char *path, char methods[MM_ALLOW_MAX]);

/* Sets request->route. Fails in request->error: with MM_NOT_FOUND if there is no route or an option switches
 * it off, or with MM_METHOD_NOT_ALLOWED. Call it on the connection's thread. */
enum mm_status mm_route_find(struct mm_request *request, const char *method);

/* Labels for metrics and the log: the paths of the table, and "other" for all other paths, because clients
 * must not invent labels. mm_route_label returns NULL if no path has the index. */
enum { MM_ROUTE_LABELS = 32, MM_ROUTE_OTHER = MM_ROUTE_LABELS - 1 };
size_t mm_route_label_index(const char *path);
const char *mm_route_label(size_t index);

/* GET /metrics (server/observe/scrape.c). */
enum mm_status mm_scrape(struct mm_request *request);

/* POST /v1/matmul and POST /v1/transpose (server/handlers/operation.c). */
enum mm_status mm_matmul_admit(struct mm_request *request);
enum mm_status mm_transpose_admit(struct mm_request *request);
enum mm_status mm_operation_complete(struct mm_request *request);
enum mm_status mm_operation_answer(struct mm_request *request);
extern const struct mm_route_state mm_operation_state;

/* The Open Inference Protocol (server/handlers/models.c). POST /v2/models/NAME/infer shares the functions of
 * products after `admit`. */
enum mm_status mm_infer_admit(struct mm_request *request);
enum mm_status mm_models_describe(struct mm_request *request);

/* PUT /v1/matrices/NAME (server/handlers/matrix_put.c). */
enum mm_status mm_matrix_put_admit(struct mm_request *request);
enum mm_status mm_matrix_put_complete(struct mm_request *request);
enum mm_status mm_matrix_put_answer(struct mm_request *request);
extern const struct mm_route_state mm_matrix_put_state;

/* GET, DELETE /v1/matrices/NAME and GET /v1/matrices (server/handlers/matrix.c). */
enum mm_status mm_matrix_get(struct mm_request *request);
enum mm_status mm_matrix_get_answer(struct mm_request *request);
extern const struct mm_route_state mm_matrix_get_state;
enum mm_status mm_matrix_delete(struct mm_request *request);
enum mm_status mm_matrix_list(struct mm_request *request);

/* GET /v1/variants/NAME/source (server/handlers/source_file.c). */
enum mm_status mm_source_file_get(struct mm_request *request);

/* GET /, /docs and /page/NAME (server/handlers/page.c). */
enum mm_status mm_page_get(struct mm_request *request);

/* POST /v1/benchmark (server/handlers/benchmark.c). */
enum mm_status mm_benchmark_admit(struct mm_request *request);
enum mm_status mm_benchmark_complete(struct mm_request *request);
enum mm_status mm_benchmark_answer(struct mm_request *request);
extern const struct mm_route_state mm_benchmark_state;
