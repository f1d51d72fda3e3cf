/* A request and its response, from MHD's first callback to its last. docs/architecture.md draws its states.
 * mm_request_abandon ends a wait early. The worker pool or the queue may still work for the request then
 * (`is_worked_on`). The request is freed once they and the connection are done. */
#pragma once

#include "server/http/connection.h"
#include "server/http/head.h"
#include "server/http/line.h"
#include "server/http/pace.h"
#include "server/http/pool.h"
#include "server/http/upload.h"
#include "server/observe/record.h"

#include <microhttpd.h>

enum { MM_REFUSAL_DRAIN_MAX = 1 << 20 };

/* MHD has suspended the connection in RESERVING, DECODING, QUEUED and ENCODING. */
enum mm_request_state {
    MM_RECEIVING, /* the connection's thread receives the head, then chunks of the body */
    MM_RESERVING, /* waits for memory (server/http/line.h): at the head, for its body, or complete */
    MM_DECODING,  /* the worker pool decodes the body */
    MM_QUEUED,    /* the queue and its workers have one job, or several in turn */
    MM_ENCODING,  /* the worker pool encodes the result */
    MM_ANSWERING, /* MHD calls the connection's thread, without data, after the resume */
    MM_SENDING,   /* MHD sends the response */
    MM_OVER       /* MHD has called mm_request_completed, from RECEIVING, ANSWERING or SENDING */
};

struct mm_route;

struct mm_request {
    struct mm_server *server;
    struct MHD_Connection *connection;
    struct mm_connection *peer;           /* state of `connection` */
    const char *headers[MM_HEADER_COUNT]; /* the first value of each; NULL: absent. They are MHD's */
    const char *path;                     /* of the target, decoded; it is MHD's */
    const struct mm_route *route;         /* NULL if no route was found */
    int state;                            /* enum mm_request_state; __atomic access only */
    bool closes;                          /* the reply closes the connection */
    bool accepted;                        /* counted in server->accepted */
    uint64_t space;                       /* namespace of its key's stored matrices; 0: without keys */
    char request_id[MM_REQUEST_ID_MAX + 1];
    struct mm_record record; /* complete at the end */
    uint64_t started_ns;     /* when MHD called first */
    /* When the body must be complete: by the process's limit, or by the query if that is sooner. Fixed before
     * MM_PHASE_BODY. */
    uint64_t deadline_ns;
    struct mm_error error; /* not MM_OK: it is the reply, once the body is read and dropped */
    struct mm_cors cors;   /* fixed by the head */

    struct mm_upload upload;
    struct mm_reservation memory;
    /* The reference to the stored value that the request reads or has stored, until the reply has its own;
     * NULL: none. __atomic access only. */
    struct mm_stored *value;

    void *own;                /* route->state->bytes, which begin as zeros; for the route's handlers */
    struct mm_work *work;     /* in `own`; set before any wait but MM_RESERVING; NULL: none */
    struct mm_pool_task task; /* for MM_DECODING and MM_ENCODING */

    /* Guarded by server->mutex. */
    bool is_worked_on;     /* by the worker pool or the queue, even after the request was abandoned */
    struct mm_place place; /* in its line, in MM_RESERVING */
    struct mm_pace pace;   /* of the upload, then of the reply */

    SLIST_ENTRY(mm_request) resumed; /* in a list of the thread that ended the wait, until the resume */
};

/* Callbacks of MHD (server/http/http.c). */
enum MHD_Result mm_request_handle(void *server, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload_data,
                                  size_t *upload_data_size, void **request);
void mm_request_completed(void *server, struct MHD_Connection *connection, void **request,
                          enum MHD_RequestTerminationCode why);

/* Joins the values of all headers of this name by commas (RFC 9110, 5.3). *is_cut: not all of them fit. NULL
 * if there is no such header. The connection's thread calls it. */
enum { MM_ACCEPT_BYTES = 4096 };
const char *mm_request_list(const struct mm_request *request, enum mm_header header,
                            char text[MM_ACCEPT_BYTES], bool *is_cut);

/* The values of all Accept headers, joined by commas and cut at MM_ACCEPT_BYTES. NULL without such a header.
 * The connection's thread. */
const char *mm_request_accept(const struct mm_request *request, char text[MM_ACCEPT_BYTES]);

/* Any thread may call it. Only while server->mutex is held does a waiting request keep waiting. */
enum mm_request_state mm_request_state(const struct mm_request *request);

/* Whether the connection is suspended. The thread that ends the wait resumes it. Call it with server->mutex
 * held. */
bool mm_request_waits(const struct mm_request *request);

/* Changes the state. Only the thread that works on the request may call it, with server->mutex held if the
 * connection is suspended in either state. */
void mm_request_move(struct mm_request *request, enum mm_request_state to);

/* Frees a request that is MM_OVER and not worked on. Any thread may call it, with no mutex held. */
void mm_request_free(struct mm_request *request);

/* The first character of the body behind a byte order mark and spaces; 0 if there is none. The connection's
 * thread calls it. */
char mm_request_first_character(const struct mm_request *request);

/* The deadline if the client asked for so many milliseconds (0: it did not), within the process's limit. */
uint64_t mm_request_deadline_ns(const struct mm_request *request, uint64_t asked_ms);

/* Whether the client chose this deadline; else the process did. Any thread. */
bool mm_request_chose_deadline(const struct mm_request *request, uint64_t deadline_ns);

/* What a client can do if this deadline has passed, for an error. Static; any thread. */
const char *mm_request_deadline_advice(const struct mm_request *request, uint64_t deadline_ns);

/* Whether a refused body is too long to be read and dropped; then the connection is closed. */
bool mm_request_is_large(const struct mm_request *request);

/* Sets *error to MM_TOO_LARGE: the request needs so many bytes, more than it can ever have. Any thread may
 * call it. */
enum mm_status mm_request_fail_memory(const struct mm_request *request, size_t bytes, struct mm_error *error);

/* Bytes of host memory of stored matrices, for which no request waits. Any thread may call it. */
size_t mm_request_stored_bytes(const struct mm_request *request);

/* Releases request->value, if there is one. The thread that works on the request calls it. */
void mm_request_release_value(struct mm_request *request);

/* Releases the memory that the request has reserved but does not use. The thread that works on the request,
 * no mutex held. */
void mm_request_trim(struct mm_request *request);

/* The reply to this error. It points into both arguments. The connection's thread calls it, or a thread that
 * has moved the connection to MM_PHASE_CUT. */
struct mm_problem_reply mm_request_problem(const struct mm_request *request, const struct mm_error *error);

/* Sends request->error without MHD to a client that still sends the body, and moves the connection to
 * MM_PHASE_CUT. The connection's thread calls it in MM_PHASE_HANDLED. */
void mm_request_refuse_unread(struct mm_request *request);

/* Lets a request that has failed with MM_BUSY wait: suspends the connection until request->error.needed_bytes
 * are reserved and unused. Then MHD calls the handler that failed again. False if the request failed for
 * another reason than memory, or if no wait would help; request->error is then the reply. The connection's
 * thread calls it in MM_PHASE_HANDLED. */
bool mm_request_wait_for_memory(struct mm_request *request);

/* Ends a wait. The request goes on, with this error unless it is NULL. If the body waited for memory, the
 * error is sent at once and closes the connection. The caller must then call mm_request_resume. Call it with
 * server->mutex held. */
void mm_request_end_wait(struct mm_request *request, const struct mm_error *error);

/* Suspends the connection, and adds the route's work of MM_DECODING to the worker pool. After the wait MHD
 * calls the handler again, to answer or with request->error set. The connection's thread calls it. */
void mm_request_decode_on_pool(struct mm_request *request);

/* Suspends the connection of a request without a job, and adds the route's work of MM_ENCODING to the worker
 * pool. After the wait MHD calls the handler again, to answer or with request->error set. The connection's
 * thread. */
void mm_request_encode_on_pool(struct mm_request *request);

/* Suspends the connection, and submits request->work, which is prepared (gpu/queue/queue.h), to the queue.
 * After the wait MHD calls the handler again. The connection's thread calls it. */
void mm_request_submit(struct mm_request *request);

/* Ends the wait of a request early. error is the reply; NULL: the client has disconnected, and the connection
 * is closed. A job that waits in the queue is cancelled; a job that runs goes on, and its result is dropped.
 * Call it with server->mutex held, from any thread, and then mm_request_resume without the mutex. */
void mm_request_abandon(struct mm_request *request, const struct mm_error *error);

/* Resumes all requests of a list, linked by `resumed`, and empties the list. Any thread may call it, with no
 * mutex held. */
SLIST_HEAD(mm_resumed, mm_request);
void mm_request_resume(struct mm_resumed *list);

/* Abandons and resumes all waiting requests. Any thread may call it, with no mutex held. */
void mm_request_abandon_all(struct mm_server *server, enum mm_status status, const char *detail);
