/* POST /v1/benchmark: from a head to a judged request, from a body to a chain of jobs, one a backend, from
 * the figures to a reply. Knows no wire format: that is api/benchmark.h's. */
#include "api/benchmark.h"
#include "server/accept.h"
#include "server/reply.h"
#include "server/routes.h"

#include <stdlib.h>
#include <string.h>

static enum mm_status fail_busy(struct mm_exchange *exchange) {
    return mm_fail(&exchange->error, MM_BUSY, "a benchmark is under way, and there is one at a time");
}

/* MHD's visitor of the query's arguments, of which there are none to take. */
static enum MHD_Result refuse_argument(void *argument, enum MHD_ValueKind kind, const char *name,
                                       const char *value) {
    struct mm_exchange *exchange = argument;
    (void)kind;
    (void)value;
    mm_fail_field(&exchange->error, MM_BAD_REQUEST, name,
                  "'%.64s' stands in the query, but a benchmark's parameters are members of its body", name);
    return MHD_NO;
}

static enum mm_status judge_type(struct mm_exchange *exchange, bool body_seen, char first) {
    return mm_benchmark_judge_type(mm_exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_TYPE), body_seen,
                                   first, &exchange->error);
}

enum mm_status mm_benchmark_admit(struct mm_exchange *exchange) {
    struct mm_server *server = exchange->server;
    struct mm_accept accept;
    enum mm_status status = judge_type(exchange, false, 0);
    if (status == MM_OK)
        status = mm_benchmark_choose_format(mm_accept_read(exchange, &accept), &exchange->format,
                                            &exchange->error);
    if (status != MM_OK)
        return status;
    MHD_get_connection_values(exchange->connection, MHD_GET_ARGUMENT_KIND, refuse_argument, exchange);
    if (exchange->error.status != MM_OK)
        return exchange->error.status;
    status = mm_server_takes_jobs(server, &exchange->error);
    if (status == MM_OK && __atomic_load_n(&server->benchmarking, __ATOMIC_RELAXED) != 0)
        status = fail_busy(exchange);
    if (status == MM_OK && mm_queue_full(mm_engine_queue(mm_server_engine(server))))
        status = mm_fail(&exchange->error, MM_BUSY, "the queue is full");
    return status;
}

static enum mm_status decode(struct mm_exchange *exchange, struct mm_benchmark_call *call) {
    enum mm_status status = judge_type(exchange, true, mm_exchange_first_character(exchange));
    if (status != MM_OK)
        return status;
    return mm_benchmark_decode(exchange->body.data, exchange->body_bytes, &exchange->server->limits, call,
                               &exchange->error);
}

/* The subject that a name stands for. */
static enum mm_status choose(const struct mm_engine *engine, const struct mm_benchmark_request *request,
                             const char *backend, const char *variant, unsigned tile,
                             struct mm_benchmark_subject *subject, struct mm_error *error) {
    struct mm_job job = {.product = {.a = {.dtype = request->dtype}, .tile = tile}};
    enum mm_status status = mm_engine_choose(engine, request->op, backend, variant, &job, error);
    if (status == MM_OK)
        *subject =
            (struct mm_benchmark_subject){.backend = job.backend, .variant = job.variant, .tile = tile};
    return status;
}

/* Where the request names no rows: all variants of the default backend that are to be had and do this shape.
 */
static enum mm_status choose_all(const struct mm_engine *engine, struct mm_benchmark_request *request,
                                 struct mm_error *error) {
    const struct mm_backend *backend = mm_engine_backend(engine);
    const struct mm_product shape = {.m = request->m, .n = request->n, .k = request->k};
    for (size_t index = 0; index < backend->variant_count; index++) {
        const struct mm_variant *variant = &backend->variants[index];
        struct mm_benchmark_subject *subject = &request->subjects[request->subject_count];
        if (request->subject_count < MM_BENCHMARK_ROWS_MAX && variant->op == request->op &&
            mm_variant_takes(variant, &shape) &&
            choose(engine, request, backend->name, variant->name, 0, subject, NULL) == MM_OK)
            request->subject_count++;
    }
    if (request->subject_count == 0)
        return mm_fail_field(error, MM_UNSUPPORTED, "variants", "no variant of %s does this %s of %s",
                             backend->name, mm_op_name(request->op), mm_dtype_name(request->dtype));
    return MM_OK;
}

static enum mm_status choose_rows(const struct mm_engine *engine, struct mm_benchmark_call *call,
                                  struct mm_error *error) {
    struct mm_benchmark_request *request = &call->request;
    if (call->name_count == 0)
        return choose_all(engine, request, error);
    for (size_t index = 0; index < call->name_count; index++) {
        const struct mm_benchmark_name *name = &call->names[index];
        enum mm_status status = choose(engine, request, name->backend, name->variant, name->tile,
                                       &request->subjects[index], error);
        if (status != MM_OK) {
            strcpy(error->field, "variants"); /* the member at fault, whichever part of a name it was */
            return status;
        }
        request->subject_count++;
    }
    return MM_OK;
}

static enum mm_status judge(struct mm_exchange *exchange, struct mm_benchmark_call *call) {
    const struct mm_options *options = exchange->server->options;
    const struct mm_benchmark_limits limits = {.matrices = &exchange->server->limits,
                                               .repeats_max = options->benchmark_repeats,
                                               .flops_max = options->benchmark_flops,
                                               .run_flops_max = options->benchmark_run_flops};
    enum mm_status status = mm_benchmark_judge_size(&call->request, &limits, &exchange->error);
    if (status == MM_OK)
        status = choose_rows(mm_server_engine(exchange->server), call, &exchange->error);
    if (status == MM_OK)
        status = mm_benchmark_judge_work(&call->request, &limits, &exchange->error);
    return status;
}

void mm_benchmark_release(struct mm_exchange *exchange) {
    struct mm_server *server = exchange->server;
    if (!exchange->benchmarks)
        return;
    mm_benchmark_close(exchange->benchmark);
    exchange->benchmark = NULL;
    free(exchange->probe);
    exchange->probe = NULL;
    mm_buffers_unreserve(server->buffers, exchange->reserved_bytes);
    exchange->reserved_bytes = 0;
    exchange->benchmarks = false;
    __atomic_store_n(&server->benchmarking, 0, __ATOMIC_RELEASE);
}

/* Whether a job's error ends the request: its time is over, or the process's. */
static bool ends_all(const struct mm_error *error) {
    return error->status == MM_TIMEOUT || error->status == MM_STOPPING;
}

/* The jobs wait one after the other, which is told as one wait. One that there is no room or no device for
 * any more costs its own rows alone. */
static bool next_job(struct mm_exchange *exchange) {
    struct mm_job *job = &exchange->job;
    exchange->span_ns[MM_SPAN_QUEUE] += job->span_ns[MM_SPAN_QUEUE];
    if (exchange->benchmark == NULL || ends_all(&job->error))
        return false;
    if (job->error.status != MM_OK)
        mm_benchmark_refuse(exchange->benchmark, &job->error);
    return mm_benchmark_next(exchange->benchmark, job);
}

static enum mm_status fail_memory(struct mm_exchange *exchange) {
    return mm_fail(&exchange->error, MM_INTERNAL, "the system has no memory for the benchmark");
}

/* Makes the first job of a benchmark of variants. */
static enum mm_status begin_rows(struct mm_exchange *exchange, const struct mm_benchmark_request *request) {
    struct mm_server *server = exchange->server;
    struct mm_record *record = &exchange->record;
    exchange->benchmark = mm_benchmark_open(request, server->limits.memory_bytes_max);
    if (exchange->benchmark == NULL)
        return fail_memory(exchange);
    const size_t bytes = mm_benchmark_host_bytes(exchange->benchmark);
    enum mm_status status = mm_buffers_reserve(server->buffers, bytes, &exchange->error);
    if (status != MM_OK)
        return status;
    exchange->reserved_bytes = bytes;
    (void)mm_benchmark_next(exchange->benchmark, &exchange->job);
    record->has_shape = true;
    record->has_depth = request->op == MM_MATMUL;
    record->m = request->m;
    record->k = request->k;
    record->n = request->n;
    return MM_OK;
}

/* Makes the job of a probe. */
static enum mm_status begin_probe(struct mm_exchange *exchange, const struct mm_probe *probe) {
    const struct mm_backend *backend = mm_engine_backend(mm_server_engine(exchange->server));
    if (backend->probe == NULL)
        return mm_fail_field(&exchange->error, MM_UNSUPPORTED, "op",
                             "op is 'shared_access', but the devices of %s have no shared memory in banks",
                             backend->name);
    exchange->probe = malloc(sizeof *exchange->probe);
    if (exchange->probe == NULL)
        return fail_memory(exchange);
    exchange->probe->probe = *probe;
    mm_probe_task_init(exchange->probe);
    exchange->job.task = &exchange->probe->task;
    exchange->job.backend = backend;
    return MM_OK;
}

/* From here on the exchange has the one benchmark that there is at a time. */
static enum mm_status begin(struct mm_exchange *exchange, const struct mm_benchmark_call *call) {
    if (__atomic_exchange_n(&exchange->server->benchmarking, 1, __ATOMIC_ACQUIRE) != 0)
        return fail_busy(exchange);
    exchange->benchmarks = true;
    enum mm_status status =
        call->op->has_variants ? begin_rows(exchange, &call->request) : begin_probe(exchange, &call->probe);
    if (status != MM_OK)
        mm_benchmark_release(exchange);
    return status;
}

enum mm_status mm_benchmark_complete(struct mm_exchange *exchange) {
    struct mm_benchmark_call call;
    uint64_t begun_ns = mm_clock_ns();
    enum mm_status status = decode(exchange, &call);
    if (status == MM_OK && call.op->has_variants)
        status = judge(exchange, &call);
    mm_buffers_release(exchange->server->buffers, &exchange->body);
    if (status == MM_OK)
        status = begin(exchange, &call);
    if (status != MM_OK)
        return status;
    exchange->job.deadline_ns = mm_exchange_deadline_ns(exchange, call.timeout_ms);
    exchange->next_job = next_job;
    exchange->span_ns[MM_SPAN_DECODE] = mm_clock_ns() - begun_ns;
    mm_exchange_submit(exchange);
    return MM_OK;
}

static bool has_figures(const struct mm_benchmark *benchmark) {
    size_t row = 0;
    const size_t count = mm_benchmark_request(benchmark)->subject_count;
    while (row < count && mm_benchmark_rows(benchmark)[row].error.status != MM_OK)
        row++;
    return row < count;
}

/* Whether the last job's error is told by its rows, beside the figures of others, or is all that there is. */
static bool has_failed(const struct mm_exchange *exchange) {
    const struct mm_error *error = &exchange->job.error;
    return error->status != MM_OK &&
           (exchange->benchmark == NULL || ends_all(error) || !has_figures(exchange->benchmark));
}

enum mm_status mm_benchmark_answer(struct mm_exchange *exchange) {
    const struct mm_job *job = &exchange->job;
    size_t length = 0;
    if (has_failed(exchange)) {
        exchange->record.job = job;
        exchange->error = job->error;
        mm_benchmark_release(exchange);
        return job->error.status;
    }
    uint64_t begun_ns = mm_clock_ns();
    const struct mm_benchmark_format *format = exchange->format;
    char *text = exchange->probe != NULL ? format->encode_probe(exchange->probe, &length)
                                         : format->encode(exchange->benchmark, &length);
    exchange->span_ns[MM_SPAN_ENCODE] = mm_clock_ns() - begun_ns;
    mm_benchmark_release(exchange);
    return mm_reply_text(exchange, text, length, format->reply_type);
}
