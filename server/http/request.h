/* A request and its response, from MHD's first callback to its last. docs/architecture.md shows the states.
 * mm_request_abandon ends a wait early; the worker pool or the queue may then still work for the request
 * (`is_worked_on`). The request is freed once this work and the connection's use of it have ended. */
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

/* In RESERVING, DECODING, QUEUED and ENCODING the connection is suspended. */
enum mm_request_state {
    MM_RECEIVING,
    MM_RESERVING, /* waits for memory (server/http/line.h): before, during or after its body */
    MM_DECODING,  /* the worker pool decodes the body */
    MM_QUEUED,    /* the queue or a device worker has its job; a benchmark has several in turn */
    MM_ENCODING,  /* the worker pool encodes the result */
    MM_ANSWERING, /* the wait is over, and MHD calls the handler to answer */
    MM_SENDING,
    MM_OVER /* MHD has called mm_request_completed, from RECEIVING, ANSWERING or SENDING */
};

struct mm_route;

struct mm_request {
    struct mm_server *server;
    struct MHD_Connection *connection;
    struct mm_connection *peer;           /* state of `connection` */
    const char *headers[MM_HEADER_COUNT]; /* first value of each header, in MHD's memory; NULL: absent */
    const char *path;                     /* decoded path of the target; MHD's memory */
    const struct mm_route *route;         /* NULL if no route was found */
    int state;                            /* enum mm_request_state; __atomic access only */
    bool closes;                          /* the reply closes the connection */
    bool accepted;                        /* counted in server->accepted */
    uint64_t space;                       /* namespace of the client's stored matrices; 0: no API keys */
    char request_id[MM_REQUEST_ID_MAX + 1];
    struct mm_record record; /* complete at the end */
    uint64_t started_ns;     /* time of MHD's first callback */
    /* When the body must be complete. Fixed before MM_PHASE_BODY. */
    uint64_t deadline_ns;
    struct mm_error error; /* unless MM_OK, the reply after the body is read and dropped */
    struct mm_cors cors;   /* decided from the head */

    struct mm_upload upload;
    struct mm_reservation memory;
    /* Reference to the stored value that the request reads or has stored; NULL if there is none. Released
     * when the request ends, or earlier. __atomic access only. */
    struct mm_stored *value;

    void *own;                /* state of the route's handlers (route->state->bytes), zeros at first */
    struct mm_work *work;     /* points into `own`; NULL: none; set before any wait except MM_RESERVING */
    struct mm_pool_task task; /* for the worker pool in MM_DECODING and MM_ENCODING */

    /* server->mutex guards the next three members. */
    bool is_worked_on;     /* the worker pool or the queue uses the request, even if it was abandoned */
    struct mm_place place; /* in MM_RESERVING, the place in its line */
    struct mm_pace pace;   /* pace of the upload, then of the reply */

    SLIST_ENTRY(mm_request) resumed; /* link in the list for mm_request_resume */
};

/* Callbacks of MHD (server/http/http.c). */
enum MHD_Result mm_request_handle(void *server, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload_data,
                                  size_t *upload_data_size, void **request);
void mm_request_completed(void *server, struct MHD_Connection *connection, void **request,
                          enum MHD_RequestTerminationCode why);

/* Joins the values of all headers of this name with commas (RFC 9110, 5.3). *is_cut: not all values fit. NULL
 * if there is no such header. Call it on the connection's thread. */
enum { MM_ACCEPT_BYTES = 4096 };
const char *mm_request_list(const struct mm_request *request, enum mm_header header,
                            char text[MM_ACCEPT_BYTES], bool *is_cut);

/* Joins all Accept headers with commas, up to MM_ACCEPT_BYTES; NULL if there is none. Call it on the
 * connection's thread. */
const char *mm_request_accept(const struct mm_request *request, char text[MM_ACCEPT_BYTES]);

/* Any thread may call it. A waiting request can stop waiting at any time unless server->mutex is held. */
enum mm_request_state mm_request_state(const struct mm_request *request);

/* Whether the connection is suspended. Call it with server->mutex held. */
bool mm_request_waits(const struct mm_request *request);

/* Changes the state. Only the thread that works on the request may call it. It must hold server->mutex if the
 * connection is suspended in the old or the new state. */
void mm_request_move(struct mm_request *request, enum mm_request_state to);

/* Frees a request that is MM_OVER and not worked on. Any thread may call it, with no mutex held. */
void mm_request_free(struct mm_request *request);

/* First character of the body after a byte order mark and spaces; 0 if none. For the connection's thread. */
char mm_request_first_character(const struct mm_request *request);

/* The deadline for a timeout of asked_ms milliseconds (0: the client gave none), at most --timeout-ms. */
uint64_t mm_request_deadline_ns(const struct mm_request *request, uint64_t asked_ms);

/* Whether the client chose this deadline, not the process. Any thread may call it. */
bool mm_request_chose_deadline(const struct mm_request *request, uint64_t deadline_ns);

/* Advice to the client, for an error about this missed deadline. Static text. Any thread may call it. */
const char *mm_request_deadline_advice(const struct mm_request *request, uint64_t deadline_ns);

/* Whether a refused body is too long to be read and dropped, so the connection must be closed. */
bool mm_request_is_large(const struct mm_request *request);

/* MM_TOO_LARGE in *error: the request needs more memory than it can ever have. Any thread may call it. */
enum mm_status mm_request_fail_memory(const struct mm_request *request, size_t bytes, struct mm_error *error);

/* Host memory of stored matrices, in bytes, which waiting requests never get. Any thread may call it. */
size_t mm_request_stored_bytes(const struct mm_request *request);

/* Releases request->value, if there is one. The thread that works on the request calls it. */
void mm_request_release_value(struct mm_request *request);

/* Releases reserved but unused memory. The thread that works on the request calls it, with no mutex held. */
void mm_request_trim(struct mm_request *request);

/* Describes the reply to this error. It points into both arguments. The connection's thread calls it, or a
 * thread that has moved the connection to MM_PHASE_CUT. */
struct mm_problem_reply mm_request_problem(const struct mm_request *request, const struct mm_error *error);

/* Sends request->error without MHD, because the client still sends the body. Moves the connection to
 * MM_PHASE_CUT. The connection's thread calls it in MM_PHASE_HANDLED. */
void mm_request_refuse_unread(struct mm_request *request);

/* Lets a request that has failed with MM_BUSY wait: suspends the connection until request->error.needed_bytes
 * are reserved and unused. Then MHD calls the failed handler again. False if the request failed for another
 * reason than memory, or if no wait would help; then request->error is the reply. The connection's thread
 * calls it in MM_PHASE_HANDLED. */
bool mm_request_wait_for_memory(struct mm_request *request);

/* Ends a wait. If `error` is not NULL, the request continues with this error. If the body waited for memory,
 * the error is sent at once and closes the connection. Call it with server->mutex held, and call
 * mm_request_resume afterwards. */
void mm_request_end_wait(struct mm_request *request, const struct mm_error *error);

/* Suspends the connection, and lets the worker pool run the route's decoding. After the wait MHD calls the
 * handler again, to answer or with request->error set. Call it on the connection's thread. */
void mm_request_decode_on_pool(struct mm_request *request);

/* Suspends the connection of a request without a job, and lets the worker pool run the route's encoding.
 * After the wait MHD calls the handler again, to answer or with request->error set. Call it on the
 * connection's thread. */
void mm_request_encode_on_pool(struct mm_request *request);

/* Suspends the connection, and submits request->work, which must be prepared (gpu/queue/queue.h). After the
 * wait MHD calls the handler again. Call it on the connection's thread. */
void mm_request_submit(struct mm_request *request);

/* Ends a request's wait early. `error` is the reply; NULL if the client has disconnected, and the connection
 * is closed. A job in the queue is cancelled. A running job continues, and its result is dropped. Any thread
 * may call it with server->mutex held, and must call mm_request_resume afterwards, without the mutex. */
void mm_request_abandon(struct mm_request *request, const struct mm_error *error);

/* Resumes all requests of a list and empties it. Any thread may call it, with no mutex held. */
SLIST_HEAD(mm_resumed, mm_request);
void mm_request_resume(struct mm_resumed *list);

/* Abandons and resumes all waiting requests. Any thread may call it, with no mutex held. */
void mm_request_abandon_all(struct mm_server *server, enum mm_status status, const char *detail);
