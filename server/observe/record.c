#include "server/observe/record.h"

#include "api/problem.h"
#include "server/http/request.h"
#include "server/observe/metrics.h"
#include "server/http/routes.h"

#include <assert.h>
#include <string.h>

_Static_assert((unsigned)MM_SPAN_TOTAL == (unsigned)MM_SPAN_COUNT - 1, "the spans before it are stages");

const char *mm_stage_name(unsigned stage) {
    assert(stage < MM_STAGE_COUNT);
    return stage == MM_STAGE_SEND ? "send" : mm_span_name((enum mm_span)stage);
}

/* Copies at most size − 1 bytes. The caller has filled `to` with zeros. */
static void copy_text(char *to, const char *from, size_t size) {
    memcpy(to, from, strnlen(from, size - 1));
}

void mm_record_begin(struct mm_request *request, const char *method) {
    struct mm_record *record = &request->record;
    record->request_id = request->request_id;
    record->traceparent = request->traceparent;
    record->client = &request->client;
    record->route = mm_route_label_index(request->path);
    copy_text(record->method, method, sizeof record->method);
    if (record->route == MM_ROUTE_OTHER)
        copy_text(record->path, request->path, sizeof record->path);
    mm_metrics_begin();
}

void mm_record_cancel(struct mm_record *record, unsigned stage) {
    record->cancelled = true;
    record->cancelled_in = stage;
}

void mm_record_cut(struct mm_request *request, const struct mm_error *error, size_t out_bytes) {
    struct mm_record *record = &request->record;
    record->problem = error->status;
    record->busy = error->busy;
    record->code = mm_problem_http(error->status);
    record->out_bytes = out_bytes;
    record->replied_ns = mm_clock_ns();
}

/* Finds the stage in which the request was cancelled, unless the stage is recorded already. If the process
 * ends while a body arrives, the record says that the client left. */
static void find_cancelled(struct mm_request *request, bool sent) {
    struct mm_record *record = &request->record;
    const struct mm_work *work = record->work;
    if (record->cancelled)
        return;
    if (mm_connection_phase(request->peer) == MM_PHASE_CUT) {
        if (request->error.status == MM_OK) /* otherwise the request was refused before */
            mm_record_cancel(record, MM_SPAN_RECEIVE);
    } else if (mm_request_state(request) == MM_RECEIVING &&
               request->upload.dropped_bytes <= MM_REFUSAL_DRAIN_MAX) {
        record->left = true;
        mm_record_cancel(record, MM_SPAN_RECEIVE);
    } else if (mm_request_state(request) == MM_ANSWERING && request->error.status == MM_OK) {
        record->left = true;
        mm_record_cancel(record, MM_SPAN_ENCODE);
    } else if (work != NULL && work->error.status == MM_TIMEOUT) {
        mm_record_cancel(record, work->device == NULL ? MM_SPAN_QUEUE : MM_SPAN_KERNEL);
    } else if (work != NULL && work->error.status == MM_OK && !sent) {
        record->left = true;
        mm_record_cancel(record, MM_STAGE_SEND);
    }
}

/* Returns the HTTP status for the record, even if the reply could not be sent. */
static unsigned find_code(const struct mm_record *record) {
    if (record->left && record->cancelled_in != MM_STAGE_SEND)
        return MM_CODE_LEFT;
    return record->code != 0 ? record->code : mm_problem_http(record->problem);
}

/* Whether the request was a health check or a scrape that succeeded. */
static bool is_probe(const struct mm_request *request, bool sent) {
    const struct mm_route *route = request->route;
    return sent && request->record.code / 100 == 2 && route != NULL &&
           (route->entry == MM_ENTRY_HEALTH || route->entry == MM_ENTRY_METRICS);
}

static void pass_on(const struct mm_record *record) {
    char line[MM_REQUEST_LINE_MAX];
    char time[MM_LOG_TIME_BYTES];
    mm_metrics_end(record);
    if (!mm_log_shows(record->is_probe ? MM_LOG_DEBUG : MM_LOG_INFO))
        return;
    mm_log_time(time);
    mm_log_put(line, mm_request_line(line, mm_log_format(), time, record), true);
}

void mm_record_end(struct mm_request *request, bool sent) {
    struct mm_record *record = &request->record;
    const bool was_cut = mm_connection_phase(request->peer) == MM_PHASE_CUT;
    uint64_t end_ns = was_cut ? record->replied_ns : mm_clock_ns();
    find_cancelled(request, sent);
    if (record->problem == MM_OK && !record->left) {
        record->problem = request->error.status;
        record->busy = request->error.busy;
    }
    record->code = find_code(record);
    if (record->code == MM_CODE_LEFT)
        record->out_bytes = 0;
    record->stage_ns[MM_STAGE_SEND] = record->replied_ns == 0 ? 0 : end_ns - record->replied_ns;
    record->duration_ns = end_ns - request->started_ns;
    record->in_bytes = __atomic_load_n(&request->upload.received_bytes, __ATOMIC_RELAXED);
    record->is_probe = is_probe(request, sent);
    pass_on(record);
}

void mm_record_cut_head(const char *request_id, const struct mm_address *client, const struct mm_error *error,
                        size_t out_bytes, uint64_t duration_ns) {
    const struct mm_record record = {.request_id = request_id,
                                     .client = client,
                                     .route = MM_ROUTE_OTHER,
                                     .code = mm_problem_http(error->status),
                                     .problem = error->status,
                                     .out_bytes = out_bytes,
                                     .duration_ns = duration_ns};
    mm_metrics_begin();
    pass_on(&record);
}
