/* A record of one request, for its log line and the metrics. */
#pragma once

#include "api/call.h"
#include "api/oip/oip.h"
#include "gpu/queue/job.h"
#include "server/auth/account.h"
#include "server/http/address.h"
#include "server/observe/log.h"

struct mm_request;

/* The stages of a request: the spans of gpu/clock.h, with the time to send instead of the total time. */
enum {
    MM_STAGE_SEND = MM_SPAN_TOTAL,
    MM_STAGE_COUNT = MM_SPAN_COUNT,
    MM_RECORD_METHOD_MAX = 16,
    MM_RECORD_PATH_MAX = 128,
    MM_CODE_LEFT = 499 /* the client left before the reply; other servers use this code too */
};

enum mm_store_op { MM_STORE_NONE, MM_STORE_PUT, MM_STORE_GET, MM_STORE_DELETE, MM_STORE_LIST, MM_STORE_OPS };

/* Returns a name such as "receive", "encode" or "send". Any thread may call it. */
const char *mm_stage_name(unsigned stage);

/* Texts are bytes from the client, truncated and not escaped. A number that does not apply is 0. */
struct mm_record {
    const char *request_id;                /* must live as long as the record */
    const char *traceparent;               /* must live as long as the record; NULL or "": none */
    const struct mm_address *client;       /* must live as long as the record */
    char key[MM_KEY_NAME_MAX + 1];         /* name of the API key's owner; "": no key */
    struct mm_account *account;            /* NULL: no key */
    char method[MM_RECORD_METHOD_MAX + 1]; /* as the client sent it */
    char path[MM_RECORD_PATH_MAX + 1];     /* decoded path if `route` is MM_ROUTE_OTHER; otherwise "" */
    size_t route;                          /* index of the route's label (mm_route_label_index) */
    unsigned code;                         /* HTTP status; MM_CODE_LEFT: no reply was sent */
    enum mm_status problem;                /* the error in the reply, or MM_OK */
    enum mm_busy busy;                     /* the cause if `problem` is MM_BUSY */
    enum mm_store_op store_op;
    uint64_t in_bytes;
    uint64_t out_bytes;
    uint64_t replied_ns;  /* when the reply was passed to MHD; 0: never */
    uint64_t duration_ns; /* time from the first callback until the response or the connection ended */
    uint64_t stage_ns[MM_STAGE_COUNT];
    bool has_shape;
    bool has_depth; /* `k` applies to this operation */
    size_t m, k, n;
    size_t products;                     /* products of this shape in a stack */
    const char *a, *b;                   /* where the operands come from (mm_source_word); NULL: no operand */
    char epilogue[MM_EPILOGUE_TEXT_MAX]; /* terms of the epilogue, or "" */
    struct mm_oip_stats *model;          /* counts of the model of an infer request; NULL: none */
    struct mm_work *work;                /* ended work; NULL: none, or a benchmark with figures */
    bool is_probe;                       /* a health check or a scrape that succeeded; MM_LOG_DEBUG */
    bool left;                           /* the client did not wait for the reply */
    bool cancelled;                      /* because of `left`, the deadline or the end of the process */
    unsigned cancelled_in;               /* stage */
};

/* Begins the record when the head has been read. Call it on the connection's thread. */
void mm_record_begin(struct mm_request *request, const char *method);

/* Records that the request was cancelled in this stage. Call it on the connection's thread, or on another
 * thread with server->mutex held. */
void mm_record_cancel(struct mm_record *record, unsigned stage);

/* Records that the error was sent without MHD, with out_bytes of its body. Only the thread that has moved the
 * connection to MM_PHASE_CUT may call it. Another thread than the connection's must hold server->mutex. */
void mm_record_cut(struct mm_request *request, const struct mm_error *error, size_t out_bytes);

/* Ends, counts and logs the record. `sent`: the whole reply was sent. Call it on the connection's thread. */
void mm_record_end(struct mm_request *request, bool sent);

/* Counts and logs a head that was late and so has no struct mm_request. Any thread may call it. */
void mm_record_cut_head(const char *request_id, const struct mm_address *client, const struct mm_error *error,
                        size_t out_bytes, uint64_t duration_ns);

enum { MM_REQUEST_LINE_MAX = 2048 };

/* Writes the log line of a record and returns its length. The line has no NUL, but ends with a newline.
 * `time` has MM_LOG_TIME_BYTES characters. The result is always one line, and in JSON one object, whatever
 * the client sent. Any thread may call it. */
size_t mm_request_line(char line[MM_REQUEST_LINE_MAX], enum mm_log_format format, const char *time,
                       const struct mm_record *record);
