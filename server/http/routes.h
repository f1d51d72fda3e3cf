/* The routes, one row each. */
#pragma once

#include "server/http/request.h"

/* Whether a route needs an API key, and whether its Host is checked. */
enum mm_entry {
    MM_ENTRY_KEY,     /* an API key; the default */
    MM_ENTRY_METRICS, /* a key, unless --open-metrics was given */
    MM_ENTRY_OPEN,
    MM_ENTRY_HEALTH /* no key, and any Host, because probes name the server as they like */
};

enum mm_body_use {
    MM_BODY_NONE, /* a body that comes anyway is read and dropped */
    MM_BODY_OPTIONAL,
    MM_BODY_REQUIRED, /* with Content-Length, or chunked */
    MM_BODY_SIZED     /* with Content-Length; the route's `admit` checks the limit */
};

/* The state of a route whose requests wait for the worker pool or for jobs. */
struct mm_route_state {
    size_t bytes;

    /* Does the work of MM_DECODING or MM_ENCODING on the worker pool, with no lock held. Must not call MHD,
     * and may write only to `own` and the body, because the request may be abandoned meanwhile. NULL if the
     * route needs no worker pool. */
    enum mm_status (*work)(struct mm_request *request, enum mm_request_state state, struct mm_error *error);

    /* Called with server->mutex held, after `work` has succeeded or request->work has ended, even with an
     * error. Not called for an abandoned request. Returns the next state: MM_QUEUED to submit request->work,
     * which must be prepared; MM_ENCODING to call `work` again; or MM_ANSWERING. */
    enum mm_request_state (*next)(struct mm_request *request, enum mm_request_state ended);

    /* Decides whether to stream a body, and then changes upload.mode. Called with the buffered bytes and each
     * next chunk while the mode is MM_UPLOAD_UNDECIDED. Sets request->error on failure. Call it on the
     * connection's thread. */
    void (*decide_to_stream)(struct mm_request *request, const char *chunk, size_t bytes);

    /* Processes the buffered bytes of a streamed body, MM_UPLOAD_CHUNK_BYTES each time; `complete` processes
     * the last ones. The status is also in request->error. Call it on the connection's thread. */
    enum mm_status (*stream)(struct mm_request *request);

    /* Whether the store gave a streamed body's space to other requests; *error is then set. Called with
     * server->mutex held. */
    bool (*has_lost_space)(const struct mm_request *request, struct mm_error *error);

    /* Releases what `own` holds of the memory budget and the store; NULL if it holds nothing. Called with
     * server->mutex held, when the request is refused while its body arrives or while it waits for memory. */
    void (*drop_memory)(struct mm_request *request);

    /* Releases everything in `own`, which may be all zeros. Called with no lock held, when the request has
     * failed and when it ends, once no thread works on it. */
    void (*release)(struct mm_request *request);
};

struct mm_route {
    const char *method; /* "GET" answers HEAD too */
    const char *path;   /* "{name}" matches any text, slashes included */
    enum mm_entry entry;
    enum mm_body_use body;
    size_t body_bytes_max; /* limit of this route; 0: only the process's limit */

    /* Checks the head before the body: MM_OK, or an error in request->error. NULL accepts all. */
    enum mm_status (*admit)(struct mm_request *request);

    /* `complete` is called once the body is complete, or dropped. It queues a reply, or begins a wait, after
     * which `answer` is called. Errors go into request->error. */
    enum mm_status (*complete)(struct mm_request *request);
    enum mm_status (*answer)(struct mm_request *request);
    const struct mm_route_state *state; /* NULL: requests need no worker pool and no jobs */
    const char *example; /* a valid JSON body, shown in errors; NULL: the route has no JSON body */

    /* Returns the option that switches the route off, or NULL if the route is on. The function is NULL if no
     * option can switch the route off. */
    const char *(*switched_off)(const struct mm_options *options);
};

/* The largest request->own of all routes, in bytes. */
size_t mm_route_state_bytes_max(void);

/* The path in a request target, which may be in absolute form (RFC 9112, 3.2.2). Points into the target. */
const char *mm_route_path(const char *target);

/* The format of error replies at a path, even without a route. Any thread may call it. */
const struct mm_problem_form *mm_route_problems(const char *path);

/* Writes the methods of a path and OPTIONS, as in "GET, HEAD, OPTIONS". Any thread may call it. */
void mm_route_methods(const char *path, char methods[MM_ALLOW_MAX]);

/* Sets request->route by request->path. Sets request->error to MM_NOT_FOUND if there is no route or an option
 * switches it off, or to MM_METHOD_NOT_ALLOWED. Call it on the connection's thread. */
enum mm_status mm_route_find(struct mm_request *request, const char *method);

/* Labels for metrics and the log: the paths of the table, and "other" for all other paths, because clients
 * must not create labels. mm_route_label returns NULL for an index without a label. */
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
enum mm_status mm_page_index(struct mm_request *request);
enum mm_status mm_page_docs(struct mm_request *request);
enum mm_status mm_page_file(struct mm_request *request);

/* POST /v1/benchmark (server/handlers/benchmark.c). */
enum mm_status mm_benchmark_admit(struct mm_request *request);
enum mm_status mm_benchmark_complete(struct mm_request *request);
enum mm_status mm_benchmark_answer(struct mm_request *request);
extern const struct mm_route_state mm_benchmark_state;
