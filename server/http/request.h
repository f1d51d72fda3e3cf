/* A request and its response, between MHD's first and last callback. docs/architecture.md shows the states.
 * mm_request_abandon ends a wait early, although the worker pool or the queue may still work on the request
 * (`is_worked_on`). The request is freed once this work has ended and MHD has made its last callback. */
#pragma once

#include "server/http/connection.h"
#include "server/http/head.h"
#include "server/http/line.h"
#include "server/http/pace.h"
#include "server/http/pool.h"
#include "server/http/traceparent.h"
#include "server/http/upload.h"
#include "server/observe/record.h"

#include <microhttpd.h>

enum { MM_REFUSAL_DRAIN_MAX = 1 << 20 };

/* While a request is RESERVING, INFLATING, DECODING, QUEUED or ENCODING, its connection is suspended. */
enum mm_request_state {
    MM_RECEIVING,
    MM_RESERVING, /* waits for memory (server/http/line.h) */
    MM_INFLATING, /* the worker pool inflates the compressed body, slice by slice */
    MM_DECODING,  /* the worker pool decodes the body */
    MM_QUEUED,    /* the queue or a device has the request's job */
    MM_ENCODING,  /* the worker pool encodes the result */
    MM_ANSWERING, /* no longer waits; MHD calls the handler to answer */
    MM_SENDING,
    MM_OVER /* MHD has made its last callback */
};

struct mm_route;

struct mm_request {
    struct mm_server *server;
    struct MHD_Connection *connection;
    struct mm_connection *peer;           /* state of `connection` */
    const char *headers[MM_HEADER_COUNT]; /* first value of each header, or NULL; points to MHD's memory */
    const char *path;                     /* decoded path of the URL; points to MHD's memory */
    const struct mm_route *route;         /* NULL if no route has this path */
    int state;                            /* enum mm_request_state; __atomic access only */
    bool closes;                          /* the connection closes after the reply */
    bool accepted;                        /* the request counts in server->accepted */
    uint64_t space;                       /* namespace of the client's matrices; 0 without API keys */
    struct mm_address client;             /* address of the client, which may be behind a trusted proxy */
    char request_id[MM_REQUEST_ID_MAX + 1];
    char traceparent[MM_TRACEPARENT_CHARS + 1]; /* "" if the request has no valid one */
    struct mm_record record;
    uint64_t started_ns; /* time of MHD's first callback */
    /* Deadline of the body. Does not change in MM_PHASE_BODY. */
    uint64_t deadline_ns;
    struct mm_error error; /* an error becomes the reply, after the body was read and dropped */
    struct mm_cors cors;

    struct mm_upload upload;
    struct mm_reservation memory;
    /* Reference to the stored value that the request reads or has stored; NULL if there is none. Released at
     * the latest when the request ends. __atomic access only. */
    struct mm_stored *value;

    void *own;                /* state of the route's handlers, zeros at first */
    struct mm_work *work;     /* points into `own`, or NULL; must be set in MM_QUEUED */
    struct mm_pool_task task; /* links the request into the tasks of the worker pool */

    /* server->mutex guards the next three members. */
    bool is_worked_on;     /* the worker pool or the queue still uses the request */
    struct mm_place place; /* place in a line of requests that wait for memory */
    struct mm_pace pace;   /* pace of the upload, later of the reply */

    SLIST_ENTRY(mm_request) resumed;
};

/* Callbacks of MHD (server/http/http.c). */
enum MHD_Result mm_request_handle(void *server, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload_data,
                                  size_t *upload_data_size, void **request);
void mm_request_completed(void *server, struct MHD_Connection *connection, void **request,
                          enum MHD_RequestTerminationCode why);

enum { MM_ACCEPT_BYTES = 4096 };

/* Joins the values of all headers of this name with commas (RFC 9110, 5.3). Leaves out values that do not
 * fit, and then sets *is_cut unless `is_cut` is NULL. Returns NULL if there is no such header. Call it on the
 * connection's thread. */
const char *mm_request_list(const struct mm_request *request, enum mm_header header,
                            char text[MM_ACCEPT_BYTES], bool *is_cut);

/* Any thread may call it. Without server->mutex, the state of a waiting request can change at any time. */
enum mm_request_state mm_request_state(const struct mm_request *request);

/* Whether the connection is suspended. Call it with server->mutex held. */
bool mm_request_waits(const struct mm_request *request);

/* Changes the state. Only the thread that works on the request may call it. It must hold server->mutex if the
 * connection is suspended in the old or the new state. */
void mm_request_move(struct mm_request *request, enum mm_request_state to);

/* Frees a request in MM_OVER that is not is_worked_on. Any thread may call it, with no mutex held. */
void mm_request_free(struct mm_request *request);

/* The body's first character after a byte order mark and spaces, or 0. For the connection's thread. */
char mm_request_first_character(const struct mm_request *request);

/* Returns the deadline for the client's timeout asked_ms (0 if not given), which --timeout-ms limits. */
uint64_t mm_request_deadline_ns(const struct mm_request *request, uint64_t asked_ms);

/* Whether the client's timeout set this deadline. If false, --timeout-ms set it. Any thread may call it. */
bool mm_request_chose_deadline(const struct mm_request *request, uint64_t deadline_ns);

/* Returns static advice for an error about a missed deadline. Any thread may call it. */
const char *mm_request_deadline_advice(const struct mm_request *request, uint64_t deadline_ns);

/* Whether a refused body is too long to read and drop. Then the connection must be closed. */
bool mm_request_is_large(const struct mm_request *request);

/* Fails with MM_TOO_LARGE: the request can never get `bytes` bytes. Any thread may call it. */
enum mm_status mm_request_fail_memory(const struct mm_request *request, size_t bytes, struct mm_error *error);

/* Bytes of host memory of stored matrices, which no waiting request can get. Any thread may call it. */
size_t mm_request_stored_bytes(const struct mm_request *request);

/* Releases request->value, if any. Only the thread that works on the request may call it. */
void mm_request_release_value(struct mm_request *request);

/* Releases unused reserved memory. Only the thread that works on the request may call it. Hold no mutex. */
void mm_request_trim(struct mm_request *request);

/* Describes the reply to an error. The result points into both arguments. Call it on the connection's thread,
 * or on the thread that has moved the connection to MM_PHASE_CUT. */
struct mm_problem_reply mm_request_problem(const struct mm_request *request, const struct mm_error *error);

/* Sends request->error without MHD, because the client still sends the body. Moves the connection to
 * MM_PHASE_CUT. Call it on the connection's thread in MM_PHASE_HANDLED. */
void mm_request_refuse_unread(struct mm_request *request);

/* Lets a request that has failed with MM_BUSY wait for memory. Suspends the connection until
 * request->error.needed_bytes are reserved and unused; then MHD calls the failed handler again. Returns false
 * if the request did not fail for lack of memory, or if no wait can help. Then request->error is the reply.
 * Call it on the connection's thread in MM_PHASE_HANDLED. */
bool mm_request_wait_for_memory(struct mm_request *request);

/* Ends a wait. If `error` is not NULL, the request continues with this error. If the body still arrives, the
 * error is sent at once and the connection closed. Call it with server->mutex held, and call
 * mm_request_resume afterwards. */
void mm_request_end_wait(struct mm_request *request, const struct mm_error *error);

/* Suspends the connection, and lets the worker pool work on the request. `state` is MM_INFLATING,
 * MM_DECODING, or MM_ENCODING if the request has no job. After the wait MHD calls the handler again: to
 * complete an inflated body, to answer, or to report request->error. Call it on the connection's thread. */
void mm_request_leave_to_pool(struct mm_request *request, enum mm_request_state state);

/* Suspends the connection, and submits request->work. The caller has prepared the work (gpu/queue/queue.h).
 * After the wait MHD calls the handler again. Call it on the connection's thread. */
void mm_request_submit(struct mm_request *request);

/* Ends a request's wait early. `error` is the reply; if NULL, the client has left and the connection closes.
 * A waiting job is cancelled. A running job continues, but its result is dropped. Any thread may call it with
 * server->mutex held. Then call mm_request_resume without the mutex. */
void mm_request_abandon(struct mm_request *request, const struct mm_error *error);

/* Resumes the requests of a list, and empties the list. Any thread may call it, with no mutex held. */
SLIST_HEAD(mm_resumed, mm_request);
void mm_request_resume(struct mm_resumed *list);

/* Ends the waits of all waiting requests with an error. Any thread may call it, with no mutex held. */
void mm_request_abandon_all(struct mm_server *server, enum mm_status status, const char *detail);
