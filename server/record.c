/* Completes a request's record from its exchange, and hands it to the counts and the log. */
#include "server/record.h"

#include "api/problem.h"
#include "server/exchange.h"
#include "server/metrics.h"
#include "server/request_log.h"
#include "server/routes.h"

#include <assert.h>
#include <string.h>

_Static_assert((unsigned)MM_SPAN_TOTAL == (unsigned)MM_SPAN_COUNT - 1, "the spans before it are stages");

const char *mm_stage_name(unsigned stage) {
    assert(stage < MM_STAGE_COUNT);
    return stage == MM_STAGE_SEND ? "send" : mm_span_name((enum mm_span)stage);
}

/* At most size − 1 bytes; the rest of `to` is 0 already. */
static void copy_text(char *to, const char *from, size_t size) {
    memcpy(to, from, strnlen(from, size - 1));
}

void mm_record_begin(struct mm_exchange *exchange, const char *method, const char *path) {
    struct mm_record *record = &exchange->record;
    record->request_id = exchange->request_id;
    record->route = mm_route_label_index(path);
    copy_text(record->method, method, sizeof record->method);
    if (record->route == MM_ROUTE_OTHER)
        copy_text(record->path, path, sizeof record->path);
    mm_metrics_begin(exchange->server->metrics);
}

static void cancel(struct mm_record *record, unsigned stage) {
    record->cancelled = true;
    record->cancelled_in = stage;
}

/* Who leaves gets no reply, or not all of one. So it is, too, where the process ends while a body comes. */
static void find_left(struct mm_record *record, unsigned stage) {
    record->left = true;
    cancel(record, stage);
}

void mm_record_cancel(struct mm_exchange *exchange, unsigned stage) {
    cancel(&exchange->record, stage);
}

void mm_record_cut(struct mm_exchange *exchange, const struct mm_error *error, size_t out_bytes) {
    struct mm_record *record = &exchange->record;
    record->problem = error->status;
    record->code = mm_problem_http(error->status);
    record->out_bytes = out_bytes;
    record->replied_ns = mm_clock_ns();
}

/* Where the request was when it was given up, but for what mm_record_cancel was told. */
static void find_cancelled(struct mm_exchange *exchange, bool sent) {
    struct mm_record *record = &exchange->record;
    const struct mm_job *job = record->job;
    if (record->cancelled)
        return;
    if (mm_connection_phase(exchange->peer) == MM_PHASE_CUT) {
        if (exchange->error.status == MM_OK) /* else it was refused before */
            cancel(record, MM_SPAN_RECEIVE);
    } else if (exchange->state == MM_RECEIVING && exchange->dropped_bytes <= MM_REFUSAL_DRAIN_MAX) {
        find_left(record, MM_SPAN_RECEIVE);
    } else if (job != NULL && job->error.status == MM_TIMEOUT) {
        cancel(record, job->ran == NULL ? MM_SPAN_QUEUE : MM_SPAN_KERNEL);
    } else if (job != NULL && job->error.status == MM_OK && !sent) {
        find_left(record, MM_STAGE_SEND);
    }
}

/* The HTTP status: that of the reply, or of the one that could not be sent. */
static unsigned find_code(const struct mm_record *record) {
    if (record->left && record->cancelled_in != MM_STAGE_SEND)
        return MM_CODE_LEFT;
    return record->code != 0 ? record->code : mm_problem_http(record->problem);
}

static void tell(struct mm_server *server, const struct mm_record *record) {
    mm_metrics_end(server->metrics, record);
    mm_log_request(record);
}

void mm_record_end(struct mm_exchange *exchange, bool sent) {
    struct mm_record *record = &exchange->record;
    const bool was_cut = mm_connection_phase(exchange->peer) == MM_PHASE_CUT;
    uint64_t end_ns = was_cut ? record->replied_ns : mm_clock_ns(); /* what was dropped since is no request */
    find_cancelled(exchange, sent);
    if (record->problem == MM_OK && !record->left)
        record->problem = exchange->error.status;
    record->code = find_code(record);
    if (record->code == MM_CODE_LEFT)
        record->out_bytes = 0; /* what was put together reached nobody */
    memcpy(record->stage_ns, exchange->span_ns, sizeof record->stage_ns);
    record->stage_ns[MM_STAGE_SEND] = record->replied_ns == 0 ? 0 : end_ns - record->replied_ns;
    record->duration_ns = end_ns - exchange->started_ns;
    record->in_bytes = __atomic_load_n(&exchange->received_bytes, __ATOMIC_RELAXED);
    tell(exchange->server, record);
}

void mm_record_cut_head(struct mm_server *server, const char *request_id, const struct mm_error *error,
                        size_t out_bytes, uint64_t duration_ns) {
    const struct mm_record record = {.request_id = request_id,
                                     .route = MM_ROUTE_OTHER,
                                     .code = mm_problem_http(error->status),
                                     .problem = error->status,
                                     .out_bytes = out_bytes,
                                     .duration_ns = duration_ns};
    mm_metrics_begin(server->metrics);
    tell(server, &record);
}
