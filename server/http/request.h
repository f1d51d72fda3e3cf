/* A request and its response, from MHD's first callback to its last. docs/architecture.md draws its states.
 * mm_request_abandon moves a waiting request to MM_ANSWERING early. The worker pool or the queue may still
 * work for it then (`is_worked_on`); it is freed once they and the connection are done. */
#pragma once

#include "api/codec.h"
#include "server/http/connection.h"
#include "server/http/head.h"
#include "server/http/line.h"
#include "server/http/pace.h"
#include "server/http/pool.h"
#include "server/observe/record.h"

#include <microhttpd.h>

enum { MM_REFUSAL_DRAIN_MAX = 1 << 20 };

/* MHD has suspended the connection in RESERVING, DECODING, QUEUED and ENCODING. */
enum mm_request_state {
    MM_RECEIVING, /* the connection's thread, with the head and then with chunks of the body */
    MM_RESERVING, /* waits for memory (server/http/line.h): at the head, for its body, or complete */
    MM_DECODING,  /* the worker pool */
    MM_QUEUED,    /* the queue and its workers, with one job or several in turn */
    MM_ENCODING,  /* the worker pool */
    MM_ANSWERING, /* the connection's thread, called without data after the resume */
    MM_SENDING,   /* MHD sends the response */
    MM_OVER       /* MHD's completed callback has come, from RECEIVING, ANSWERING or SENDING */
};

struct mm_route;

struct mm_request {
    struct mm_server *server;
    struct MHD_Connection *connection;
    struct mm_connection *peer;             /* the same, as ours */
    const char *headers[MM_HEADER_COUNT];   /* the first value of each; NULL: absent. MHD's */
    const char *path;                       /* of the target, decoded; MHD's */
    const struct mm_route *route;           /* NULL: none */
    const struct mm_problem_form *problems; /* the form of errors at this path */
    int state;                              /* enum mm_request_state; __atomic access only */
    bool last;                              /* the reply closes the connection */
    bool accepted;                          /* counted in server->accepted */
    uint64_t space;                         /* the namespace of its key's stored matrices; 0: without keys */
    char request_id[MM_REQUEST_ID_MAX + 1];
    struct mm_record record; /* complete at the end */
    uint64_t started_ns;     /* the first callback */
    /* For the body: from the process, or from the query if that is sooner. Fixed before MM_PHASE_BODY. */
    uint64_t deadline_ns;
    uint64_t span_ns[MM_SPAN_COUNT];
    struct mm_error error; /* not MM_OK: the reply, once the body is read and dropped */
    char allow[48];        /* the Allow header of a 405 or of OPTIONS; else "" */
    struct mm_cors cors;   /* fixed by the head */

    uint64_t content_length; /* MM_LENGTH_UNKNOWN: chunked */
    struct mm_buffer body;
    size_t body_bytes;     /* kept so far; the decoder's reader may drop some again */
    size_t received_bytes; /* kept or dropped so far; __atomic access only */
    size_t passed_bytes;   /* that the route took, and are kept no more */
    bool may_pass;         /* the route takes a body like this as it arrives: it has not seen enough yet */
    bool passes_on;        /* and so it does: body has room for MM_BODY_PASSED_BYTES; __atomic access where
                            * the sweep may read it */
    size_t dropped_bytes;  /* received after a refusal */
    bool has_begun;        /* its head was accepted, and its first step reserved */
    bool is_complete;      /* all of its body has come */
    size_t need_bytes;     /* beside the body, as far as the head tells; 0: it does not */
    struct mm_reservation memory;
    struct mm_stored *value; /* a reference: the stored value that the request reads or has stored, until its
                              * reply is complete elsewhere; NULL: none. __atomic access only */

    /* Reads the body as it arrives; NULL `reading`: nothing does. */
    const struct mm_body_reader *reader;
    void *reading;

    void *own;                /* route->state->bytes, zeroed; for the route's handlers */
    struct mm_work *work;     /* in `own`; set before any wait but MM_RESERVING; NULL: none */
    struct mm_pool_task task; /* of MM_DECODING and MM_ENCODING */

    /* Guarded by server->mutex. */
    bool is_worked_on;     /* by the worker pool or the queue, even after it was abandoned */
    struct mm_place place; /* in the line, in MM_RESERVING */
    struct mm_pace pace;   /* of the upload, then of the reply */

    SLIST_ENTRY(mm_request) resumed; /* in the list of the thread that ended the wait, until the resume */
};

/* Callbacks of MHD (server/http/http.c). */
enum MHD_Result mm_request_handle(void *server, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload_data,
                                  size_t *upload_data_size, void **request);
void mm_request_completed(void *server, struct MHD_Connection *connection, void **request,
                          enum MHD_RequestTerminationCode why);

/* The values of all headers of this name joined by commas (RFC 9110, 5.3), as far as they fit, else *is_cut;
 * NULL if there is no such header. The connection's thread. */
enum { MM_ACCEPT_BYTES = 4096 };
const char *mm_request_list(const struct mm_request *request, enum mm_header header,
                            char text[MM_ACCEPT_BYTES], bool *is_cut);

/* The values of all Accept headers joined by commas, as far as they fit; NULL if there is none. The
 * connection's thread. */
const char *mm_request_accept(const struct mm_request *request, char text[MM_ACCEPT_BYTES]);

/* Any thread. Only with server->mutex held does a waiting request keep waiting. */
enum mm_request_state mm_request_state(const struct mm_request *request);

/* Whether the connection is suspended. The thread that ends this state resumes it. With server->mutex
 * held. */
bool mm_request_waits(const struct mm_request *request);

/* Only the thread that works on the request calls this. With server->mutex held if either state is
 * suspended. */
void mm_request_move(struct mm_request *request, enum mm_request_state to);

/* Frees a request that is MM_OVER and not worked on. Any thread, no mutex held. */
void mm_request_free(struct mm_request *request);

/* The first character of the body behind a byte order mark and spaces; 0 if there is none. The connection's
 * thread. */
char mm_request_first_character(const struct mm_request *request);

/* The deadline if the client asked for so many milliseconds (0: it did not), within the process's limit. */
uint64_t mm_request_deadline_ns(const struct mm_request *request, uint64_t asked_ms);

/* Whether the client chose this deadline; else the process did. Any thread. */
bool mm_request_chose_deadline(const struct mm_request *request, uint64_t deadline_ns);

/* What a client can do if this deadline has passed, for an error. Static; any thread. */
const char *mm_request_deadline_advice(const struct mm_request *request, uint64_t deadline_ns);

/* Whether the refused body is too long to read and drop; the connection is closed then. */
bool mm_request_is_large(const struct mm_request *request);

/* MM_TOO_LARGE: the request needs so many bytes, more than it can ever have. Any thread. */
enum mm_status mm_request_fail_memory(const struct mm_request *request, size_t bytes, struct mm_error *error);

/* Bytes of host memory that stored matrices hold, for which no request waits. Any thread. */
size_t mm_request_stored_bytes(const struct mm_request *request);

/* Releases request->value, if there is one. The thread that works on the request. */
void mm_request_release_value(struct mm_request *request);

/* Releases the memory that the request has reserved but does not use. The thread that works on the request,
 * no mutex held. */
void mm_request_trim(struct mm_request *request);

/* The reply to this error. Borrows both arguments. For the thread that has the connection to itself or has
 * moved it to MM_PHASE_CUT. */
struct mm_problem_reply mm_request_problem(const struct mm_request *request, const struct mm_error *error);

/* Sends request->error past MHD to a client that still sends the body, and moves the connection to
 * MM_PHASE_CUT. The connection's thread, which has it to itself. */
void mm_request_refuse_unread(struct mm_request *request);

/* Lets a request wait that has failed with MM_BUSY: suspends the connection until request->error.needed_bytes
 * are reserved and unused. The handler that failed is then called again. Returns false if the request failed
 * for another reason than memory, or if no wait would help; request->error is then the reply. The
 * connection's thread, which has the connection to itself. */
bool mm_request_wait_for_memory(struct mm_request *request);

/* Ends a wait: the request goes on, with this error unless it is NULL. If the body waited for memory, the
 * error is sent at once and closes the connection. The caller resumes the request by mm_request_resume. With
 * server->mutex held. */
void mm_request_end_wait(struct mm_request *request, const struct mm_error *error);

/* Suspends the connection, and adds the route's work of MM_DECODING to the worker pool. After the wait MHD
 * calls the handler again, to answer or with request->error set. The connection's thread. */
void mm_request_decode_on_pool(struct mm_request *request);

/* Suspends the connection of a request without a job, and adds the route's work of MM_ENCODING to the worker
 * pool. After the wait MHD calls the handler again, to answer or with request->error set. The connection's
 * thread. */
void mm_request_encode_on_pool(struct mm_request *request);

/* Suspends the connection, and submits request->work, which is prepared (gpu/queue/queue.h), to the queue.
 * After the wait MHD calls the handler again. The connection's thread. */
void mm_request_submit(struct mm_request *request);

/* Ends the wait of a request early. error: the reply; NULL: the client has disconnected, and the connection
 * is closed. A job that waits in the queue is cancelled; what runs goes on, and its result is dropped. The
 * caller then resumes the request by mm_request_resume, without the mutex. With server->mutex held, any
 * thread. */
void mm_request_abandon(struct mm_request *request, const struct mm_error *error);

/* Resumes all of a list, linked by `resumed`, and empties it. Any thread, no mutex held. */
SLIST_HEAD(mm_resumed, mm_request);
void mm_request_resume(struct mm_resumed *list);

/* Abandons and resumes all waiting requests. Any thread. */
void mm_request_abandon_all(struct mm_server *server, enum mm_status status, const char *detail);
