/* An exchange: one request and its reply, from MHD's first callback to its last. The states and who
 * may touch an exchange when:
 *
 *   RECEIVING  the connection's thread, called with the head and then pieces of the body
 *   WAITING    nobody: the connection is suspended, and the crew decodes, the queue has the job, or the crew
 *              encodes. It ends either by the last of these, or by mm_exchange_abandon, which answers
 *              without a result
 *   ANSWERING  the connection's thread again, called with no data after the resume
 *   ANSWERED   MHD sends; its completed callback ends the exchange
 *
 * An abandoned exchange has two holders, the connection and who works for it, and goes with the last. */
#ifndef MM_SERVER_EXCHANGE_H
#define MM_SERVER_EXCHANGE_H

#include "api/codec.h"
#include "server/connection.h"
#include "server/cors.h"
#include "server/crew.h"
#include "server/record.h"

#include <microhttpd.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MM_REFUSAL_DRAIN_MAX = 1 << 20 };

enum mm_exchange_state { MM_RECEIVING, MM_WAITING, MM_ANSWERING, MM_ANSWERED };

/* What an exchange waits for. */
enum mm_wait { MM_WAIT_DECODE, MM_WAIT_JOB, MM_WAIT_ENCODE };

struct mm_benchmark;
struct mm_benchmark_format;
struct mm_probe_task;
struct mm_route;

struct mm_exchange {
    struct mm_server *server;
    struct MHD_Connection *connection;
    struct mm_connection *peer;   /* the same, as we see it */
    const struct mm_route *route; /* NULL: none */
    enum mm_exchange_state state;
    bool last;     /* the reply closes the connection */
    bool accepted; /* counted in server->accepted */
    char request_id[MM_REQUEST_ID_MAX + 1];
    struct mm_record record; /* filled in on the way, told at the end */
    uint64_t started_ns;     /* the first callback */
    /* Of the body: the process's limit, or the query's where that is sooner. Fixed before MM_PHASE_BODY. */
    uint64_t deadline_ns;
    uint64_t span_ns[MM_SPAN_COUNT];
    struct mm_error error; /* not MM_OK: what is answered, once the body is read and dropped */
    char allow[48];        /* the Allow header where one is due; else "" */
    struct mm_cors cors;   /* fixed by the head */

    uint64_t content_length; /* MM_LENGTH_UNKNOWN: chunked */
    struct mm_buffer body;
    size_t body_bytes;     /* kept so far, as the decoder's reader has left it */
    size_t received_bytes; /* kept or dropped so far; __atomic access only */
    size_t dropped_bytes;  /* received after a refusal */

    /* A product's or a transposition's (server/operation.c). */
    struct mm_call call;
    const struct mm_codec *decoder; /* NULL while only the body can tell */
    const struct mm_codec *encoder;
    char *content_type; /* for the crew alone: a copy, owned; NULL: absent */
    void *reading;      /* of the decoder's reader, from the head to the decoding; NULL: none */
    struct mm_buffer result;
    struct mm_buffer check;     /* the job's verify_memory */
    struct mm_reply_body reply; /* its memory is taken before the job, so that no kernel runs in vain */
    struct mm_job job;
    bool encodes_long; /* the crew has to encode, once the job is over; fixed before that is submitted */
    bool encoded;      /* the reply is complete, and its spans */
    struct mm_crew_work work;

    /* Asked when `job` has ended, or the queue has refused it after another, and the caller still waits;
     * job.error tells. True where it was made another one, which is then submitted, and false where that was
     * the last. NULL: there is one. With server->mutex held. */
    bool (*next_job)(struct mm_exchange *exchange);

    /* A benchmark's (server/benchmark.c). */
    bool benchmarks;                /* it is the one that the process has at a time */
    struct mm_benchmark *benchmark; /* one of variants, or else */
    struct mm_probe_task *probe;    /* one of a device's memories; NULL: none */
    const struct mm_benchmark_format *format;
    size_t reserved_bytes; /* of the memory budget, for what it takes */

    /* Guarded by server->mutex. */
    unsigned holders; /* the connection, and the crew or the queue while it works */
    bool waiting;     /* suspended: whoever clears this resumes the connection */
    enum mm_wait waits_for;

    struct mm_exchange *next_resumed; /* of who cleared `waiting`, until the resume */
};

/* The callbacks that MHD gets (server/http.c). */
enum MHD_Result mm_exchange_handle(void *server, struct MHD_Connection *connection, const char *url,
                                   const char *method, const char *version, const char *upload_data,
                                   size_t *upload_data_size, void **exchange);
void mm_exchange_completed(void *server, struct MHD_Connection *connection, void **exchange,
                           enum MHD_RequestTerminationCode why);

/* The first value of a request's header, or NULL. It lives as long as the request. The connection's thread.
 */
const char *mm_exchange_header(const struct mm_exchange *exchange, const char *name);

/* Ends an exchange that has no holder any more. Any thread, no mutex held. */
void mm_exchange_free(struct mm_exchange *exchange);

/* The body's first character that is no space; 0 where there is none. The connection's thread. */
char mm_exchange_first_character(const struct mm_exchange *exchange);

/* When the request's time is over, whose caller asked for so many milliseconds (0: did not ask): what the
 * process allows is not passed. */
uint64_t mm_exchange_deadline_ns(const struct mm_exchange *exchange, uint64_t asked_ms);

/* Suspends the connection, and has the crew do mm_operation_decode for it and submit the job. Whatever comes
 * of it, the connection's handler is entered again, as below. The connection's thread. */
void mm_exchange_decode_by_crew(struct mm_exchange *exchange);

/* Suspends the connection and submits exchange->job, and one after the other those that next_job makes of it.
 * Whatever comes of it, the connection's handler
 * is entered again, with exchange->error or job.error telling. The connection's thread. */
void mm_exchange_submit(struct mm_exchange *exchange);

/* Ends the wait of an exchange that is `waiting`, with this error as its answer, or without one where it is
 * NULL, because the caller has left: the connection is closed then. What the crew does is dropped. A job that
 * still waits is taken back and never begun, the result of one that runs is dropped, a task ends after the
 * slice at hand. With server->mutex held; the caller then resumes it by mm_exchange_resume, without the
 * mutex. Any thread.
 */
void mm_exchange_abandon(struct mm_exchange *exchange, const struct mm_error *error);

/* Resumes the exchanges of a list by next_resumed; NULL ends it. Any thread, no mutex held. */
void mm_exchange_resume(struct mm_exchange *first);

/* Abandons and resumes all that wait. Any thread. */
void mm_exchange_abandon_all(struct mm_server *server, enum mm_status status, const char *detail);

#ifdef __cplusplus
}
#endif
#endif
