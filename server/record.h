/* A record: what is told of one request once it is over. Its line in the log and its counts are made of
 * this alone. */
#ifndef MM_SERVER_RECORD_H
#define MM_SERVER_RECORD_H

#include "gpu/job.h"

#ifdef __cplusplus
extern "C" {
#endif

struct mm_exchange;
struct mm_server;

/* The stages of a request: the spans of gpu/clock.h, with sending the reply in the place of `total`. */
enum {
    MM_STAGE_SEND = MM_SPAN_TOTAL,
    MM_STAGE_COUNT = MM_SPAN_COUNT,
    MM_RECORD_METHOD_MAX = 16,
    MM_RECORD_PATH_MAX = 128,
    MM_CODE_LEFT = 499 /* as other servers write it: the caller left before the reply */
};

/* "receive" … "encode", "send". Any thread. */
const char *mm_stage_name(unsigned stage);

/* Texts are the caller's bytes, cut to fit and not escaped; numbers are 0 where they do not apply. */
struct mm_record {
    const char *request_id;                /* lives as long as the record */
    char method[MM_RECORD_METHOD_MAX + 1]; /* as it came */
    char path[MM_RECORD_PATH_MAX + 1];     /* as it came, %XX decoded; "" where the route tells it */
    size_t route;                          /* mm_route_label_index */
    unsigned code;                         /* HTTP; MM_CODE_LEFT where no reply went out */
    enum mm_status problem;                /* that the reply told; else MM_OK */
    uint64_t in_bytes;                     /* of the body, as received */
    uint64_t out_bytes;                    /* of the reply's body */
    uint64_t replied_ns;                   /* when the reply was handed over; 0: never */
    uint64_t duration_ns; /* from the first callback to the last, or to when it was cut off */
    uint64_t stage_ns[MM_STAGE_COUNT];
    bool has_shape;
    bool has_depth; /* k is one of its dimensions */
    size_t m, k, n;
    const struct mm_job *job; /* of a product that is over, whatever came of it; else NULL */
    bool left;                /* the caller did not wait for the reply */
    bool cancelled;           /* with `left`, by its deadline, or by the end of the process */
    unsigned cancelled_in;    /* the stage that it was in then */
};

/* The head is here. The connection's thread. */
void mm_record_begin(struct mm_exchange *exchange, const char *method, const char *path);

/* The product is given up in this stage: by the crew, in the queue or on the device. With server->mutex held.
 */
void mm_record_cancel(struct mm_exchange *exchange, unsigned stage);

/* The error was told past MHD, as the last reply, of which so many bytes of body went out. Who has moved the
 * connection to be cut: its thread, or another with server->mutex held. */
void mm_record_cut(struct mm_exchange *exchange, const struct mm_error *error, size_t out_bytes);

/* The request is over; `sent` tells whether all of a reply was. Counts it and logs it. The connection's
 * thread. */
void mm_record_end(struct mm_exchange *exchange, bool sent);

/* A head that never came to its end was answered and cut off: there is no exchange to tell of. Any thread. */
void mm_record_cut_head(struct mm_server *server, const char *request_id, const struct mm_error *error,
                        size_t out_bytes, uint64_t duration_ns);

#ifdef __cplusplus
}
#endif
#endif
