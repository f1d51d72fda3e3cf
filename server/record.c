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

void mm_record_cancel(struct mm_exchange *exchange, bool in_queue) {
    exchange->record.cancelled = true;
    exchange->record.cancelled_in = in_queue ? MM_SPAN_QUEUE : MM_SPAN_KERNEL;
}

/* Where a product was when it was given up, but for what mm_record_cancel was told. */
static void find_cancelled(struct mm_exchange *exchange, bool sent) {
    struct mm_record *record = &exchange->record;
    const struct mm_job *job = record->job;
    if (record->cancelled)
        return;
    if (exchange->state == MM_RECEIVING && exchange->error.status == MM_OK) {
        record->left = true; /* or was cut off by the end of the process: no reply went out */
        record->cancelled = true;
        record->cancelled_in = MM_SPAN_RECEIVE;
    } else if (job != NULL && job->error.status == MM_TIMEOUT) {
        mm_record_cancel(exchange, job->ran == NULL);
    } else if (job != NULL && job->error.status == MM_OK && !sent) {
        record->left = true;
        record->cancelled = true;
        record->cancelled_in = MM_STAGE_SEND;
    }
}

void mm_record_end(struct mm_exchange *exchange, bool sent) {
    struct mm_record *record = &exchange->record;
    uint64_t now_ns = mm_clock_ns();
    find_cancelled(exchange, sent);
    memcpy(record->stage_ns, exchange->span_ns, sizeof record->stage_ns);
    record->stage_ns[MM_STAGE_SEND] = record->replied_ns == 0 ? 0 : now_ns - record->replied_ns;
    record->duration_ns = now_ns - exchange->started_ns;
    record->in_bytes = exchange->body_bytes + exchange->dropped_bytes;
    if (record->left && record->cancelled_in != MM_STAGE_SEND)
        record->code = MM_CODE_LEFT;
    else
        record->problem = exchange->error.status;
    if (record->code == 0) /* refused, and closed before the refusal could be sent */
        record->code = mm_problem_http(record->problem);
    mm_metrics_end(exchange->server->metrics, record);
    mm_log_request(record);
}
