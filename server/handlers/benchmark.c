/* POST /v1/benchmark: checks the head, turns the body into tasks, runs them one after another, and replies
 * with the measurements. api/lab/benchmark.h has the formats. */
#include "api/lab/benchmark.h"
#include "api/parameter.h"
#include "server/handlers/input.h"
#include "server/http/upload.h"
#include "server/http/reply.h"
#include "server/http/routes.h"
#include "server/observe/metrics.h"

#include <stdlib.h>
#include <string.h>

struct mm_benchmark_run {
    const struct mm_benchmark_format *format;
    bool is_the_one; /* this request has set server->benchmarking */
    struct mm_references references;
    struct mm_benchmark *benchmark; /* NULL if the request is a probe */
    struct mm_probe *probe;         /* NULL if the request is not a probe */
    struct mm_task task;            /* the running task, or the next one */
};

_Static_assert(_Alignof(struct mm_benchmark_run) <= _Alignof(struct mm_request), "it lies behind that");

static struct mm_benchmark_run *run_of(const struct mm_request *request) {
    return request->own;
}

static enum mm_status fail_busy(struct mm_request *request) {
    return mm_fail_busy(&request->error, MM_BUSY_BENCHMARK,
                        "another benchmark is running, and the server runs one at a time; try again later");
}

static enum mm_status check_type(struct mm_request *request, bool body_seen, char first) {
    return mm_benchmark_check_type(request->headers[MM_HEADER_CONTENT_TYPE], body_seen, first,
                                   &request->error);
}

enum mm_status mm_benchmark_admit(struct mm_request *request) {
    struct mm_server *server = request->server;
    char accept[MM_ACCEPT_BYTES];
    struct mm_parameters query = {.table = &mm_parameters_none};
    if (check_type(request, false, 0) != MM_OK ||
        mm_benchmark_choose_format(mm_request_list(request, MM_HEADER_ACCEPT, accept, NULL),
                                   &run_of(request)->format, &request->error) != MM_OK ||
        mm_input_read_query(request, &query) != MM_OK ||
        mm_server_takes_jobs(server, &request->error) != MM_OK)
        return request->error.status;
    if (__atomic_load_n(&server->benchmarking, __ATOMIC_RELAXED) != 0)
        return fail_busy(request);
    return mm_queue_check_depth(mm_engine_queue(mm_server_engine(server)), request->memory.client,
                                &request->error);
}

static enum mm_status decode(struct mm_request *request, struct mm_benchmark_call *call) {
    enum mm_status status = check_type(request, true, mm_request_first_character(request));
    if (status != MM_OK)
        return status;
    struct mm_references *references = &run_of(request)->references;
    *references = (struct mm_references){.store = request->server->store, .space = request->space};
    return mm_benchmark_decode(request->upload.body.data, request->upload.body_bytes,
                               &request->server->limits, references, call, &request->error);
}

/* Finds a variant of a GPU backend without a device, if a model predicts its memory traffic. NULL if not. */
static const struct mm_variant *find_model(const struct mm_backend *closed, enum mm_op op,
                                           const char *variant, enum mm_dtype dtype) {
    const struct mm_variant *found =
        closed == NULL || closed->is_host ? NULL : mm_backend_variant(closed, op, variant);
    return found != NULL && found->traffic != NULL && mm_variant_has_dtype(found, dtype) ? found : NULL;
}

static enum mm_status choose(const struct mm_engine *engine, const struct mm_benchmark_request *spec,
                             const char *backend, const char *variant, unsigned tile,
                             struct mm_benchmark_subject *subject, struct mm_error *error) {
    const struct mm_backend *closed = mm_engine_closed_backend(engine, backend);
    const struct mm_variant *model = find_model(closed, spec->op, variant, spec->dtype);
    struct mm_job job = {.product = {.a = {.dtype = spec->dtype}, .tile = tile}};
    if (model != NULL) {
        *subject = (struct mm_benchmark_subject){closed, model, tile, .is_model = true};
        return mm_variant_check_tile(model, tile, error);
    }
    if (closed != NULL)
        return mm_fail_field(
            error, MM_UNSUPPORTED, "variants",
            "this server has no device for %s; it predicts the memory traffic of the kernels "
            "that have a model, but '%s' has none for %s",
            backend, variant, mm_dtype_name(spec->dtype));
    enum mm_status status = mm_engine_choose(engine, spec->op, backend, variant, &job, error);
    if (status == MM_OK)
        *subject =
            (struct mm_benchmark_subject){.backend = job.work.backend, .variant = job.variant, .tile = tile};
    return status;
}

/* Chooses the variants for a request that names none: all variants of the default backend that support this
 * shape, except variants that are wrong on purpose. */
static enum mm_status choose_all(const struct mm_engine *engine, struct mm_benchmark_request *spec,
                                 struct mm_error *error) {
    const struct mm_backend *backend = mm_engine_backend(engine);
    const struct mm_product shape = {.m = spec->m, .n = spec->n, .k = spec->k, .a.dtype = spec->dtype};
    for (size_t index = 0; index < backend->variant_count; index++) {
        const struct mm_variant *variant = &backend->variants[index];
        struct mm_benchmark_subject *subject = &spec->subjects[spec->subject_count];
        if (spec->subject_count < MM_BENCHMARK_ROWS_MAX && variant->op == spec->op &&
            !variant->wrong_on_purpose && mm_variant_supports_shape(variant, &shape) &&
            choose(engine, spec, backend->name, variant->name, 0, subject, NULL) == MM_OK)
            spec->subject_count++;
    }
    if (spec->subject_count == 0)
        return mm_fail_field(error, MM_UNSUPPORTED, "variants",
                             "no variant of %s does this %s of %s; GET /v1/variants lists them",
                             backend->name, mm_op_name(spec->op), mm_dtype_name(spec->dtype));
    return MM_OK;
}

static enum mm_status choose_rows(const struct mm_engine *engine, struct mm_benchmark_call *call,
                                  struct mm_error *error) {
    struct mm_benchmark_request *spec = &call->request;
    if (call->name_count == 0)
        return choose_all(engine, spec, error);
    for (size_t index = 0; index < call->name_count; index++) {
        const struct mm_benchmark_name *name = &call->names[index];
        enum mm_status status =
            choose(engine, spec, name->backend, name->variant, name->tile, &spec->subjects[index], error);
        if (status != MM_OK) {
            strcpy(error->field, "variants");
            return status;
        }
        spec->subject_count++;
    }
    return MM_OK;
}

static enum mm_status check(struct mm_request *request, struct mm_benchmark_call *call) {
    const struct mm_options *options = request->server->options;
    const struct mm_benchmark_limits limits = {.matrices = &request->server->limits,
                                               .repeats_max = options->benchmark_repeats,
                                               .flops_max = options->benchmark_flops,
                                               .run_flops_max = options->benchmark_run_flops};
    call->request.kernel_ms_max = options->max_kernel_ms;
    if (mm_benchmark_check_size(&call->request, &limits, &request->error) != MM_OK ||
        choose_rows(mm_server_engine(request->server), call, &request->error) != MM_OK)
        return request->error.status;
    return mm_benchmark_check_work(&call->request, &limits, &request->error);
}

static void release(struct mm_request *request) {
    struct mm_server *server = request->server;
    struct mm_benchmark_run *run = run_of(request);
    mm_references_release(&run->references);
    if (!run->is_the_one)
        return;
    if (run->benchmark != NULL)
        mm_metrics_rows(run->benchmark);
    mm_benchmark_close(run->benchmark);
    free(run->probe);
    run->is_the_one = false;
    __atomic_store_n(&server->benchmarking, 0, __ATOMIC_RELEASE);
}

/* Whether a task's error ends the whole request. A timeout and the end of the process do. */
static bool ends_all(const struct mm_error *error) {
    return error->status == MM_TIMEOUT || error->status == MM_STOPPING;
}

/* Prepares the next task. If the previous task failed, marks only the rows of that task as failed. */
static enum mm_request_state next(struct mm_request *request, enum mm_request_state ended) {
    struct mm_benchmark_run *run = run_of(request);
    struct mm_work *work = &run->task.work;
    request->record.stage_ns[MM_SPAN_QUEUE] += work->waited_ns;
    if (run->benchmark == NULL || ends_all(&work->error))
        return MM_ANSWERING;
    if (work->error.status != MM_OK)
        mm_benchmark_fail_rows(run->benchmark, &work->error);
    if (!mm_benchmark_next_task(run->benchmark, &run->task))
        return MM_ANSWERING;
    mm_queue_prepare(mm_engine_queue(mm_server_engine(request->server)), work);
    return MM_QUEUED;
}

const struct mm_route_state mm_benchmark_state = {
    .bytes = sizeof(struct mm_benchmark_run), .next = next, .release = release};

static enum mm_status fail_memory(struct mm_request *request) {
    return mm_fail(&request->error, MM_INTERNAL, "the system has no memory for the benchmark");
}

static enum mm_status begin_rows(struct mm_request *request, const struct mm_benchmark_request *spec) {
    struct mm_server *server = request->server;
    struct mm_record *record = &request->record;
    struct mm_benchmark_run *run = run_of(request);
    const size_t most = server->budget.part_bytes[MM_BUDGET_MAIN];
    run->benchmark = mm_benchmark_open(spec, most - mm_size_min(most, mm_request_stored_bytes(request)));
    if (run->benchmark == NULL)
        return fail_memory(request);
    const size_t bytes = mm_benchmark_host_bytes(run->benchmark);
    if (mm_reservation_ensure(&request->memory, bytes, &request->error) != MM_OK) {
        mm_benchmark_close(run->benchmark);
        run->benchmark = NULL;
        release(request); /* lets another benchmark run while this request waits for memory */
        return request->error.status;
    }
    (void)mm_benchmark_next_task(run->benchmark, &run->task);
    record->has_shape = true;
    record->has_depth = spec->op == MM_MATMUL;
    record->m = spec->m;
    record->k = spec->k;
    record->n = spec->n;
    if (spec->sources[MM_OPERAND_A].kind != MM_SOURCE_HOST) {
        record->a = mm_source_word(spec->sources[MM_OPERAND_A].kind);
        record->b = record->has_depth ? mm_source_word(spec->sources[MM_OPERAND_B].kind) : NULL;
    }
    return MM_OK;
}

/* Chooses the probe's backend, and its first device. The probe can run on another device of the backend. */
static enum mm_status choose_device(struct mm_request *request, struct mm_benchmark_call *call) {
    const struct mm_engine *engine = mm_server_engine(request->server);
    struct mm_job job = {.product = {.a = {.dtype = MM_FLOAT32}}};
    const enum mm_status status =
        mm_engine_choose(engine, MM_MATMUL, call->backend, "auto", &job, &request->error);
    size_t index = 0, count;
    struct mm_device *const *devices = mm_engine_devices(engine, &count);
    if (status != MM_OK)
        return status;
    while (devices[index]->backend != job.work.backend)
        index++;
    call->probe.device = devices[index];
    return MM_OK;
}

static enum mm_status begin_probe(struct mm_request *request, const struct mm_probe *probe) {
    struct mm_benchmark_run *run = run_of(request);
    run->probe = mm_probe_copy(probe);
    if (run->probe == NULL)
        return fail_memory(request);
    run->task = mm_probe_task(run->probe, probe->device->backend);
    return MM_OK;
}

/* After success, no other request can begin a benchmark until this request calls release(). */
static enum mm_status begin(struct mm_request *request, const struct mm_benchmark_call *call) {
    if (__atomic_exchange_n(&request->server->benchmarking, 1, __ATOMIC_ACQUIRE) != 0)
        return fail_busy(request);
    run_of(request)->is_the_one = true;
    return call->op->kind == MM_BENCHMARK_OF_ACCESSES ? begin_probe(request, &call->probe)
                                                      : begin_rows(request, &call->request);
}

/* If the request gives no compute capability, uses the first GPU with known limits, or else 9.0. */
static void choose_capability(const struct mm_engine *engine, struct mm_occupancy_request *request) {
    static const struct mm_block_use least = {.threads = 1};
    struct mm_occupancy ignored;
    size_t count;
    struct mm_device *const *devices = mm_engine_devices(engine, &count);
    unsigned *capability = request->values[MM_OCCUPANCY_CAPABILITY];
    if (request->counts[MM_OCCUPANCY_CAPABILITY] > 0)
        return;
    request->counts[MM_OCCUPANCY_CAPABILITY] = 1;
    *capability = 90;
    for (size_t index = count; index-- > 0;)
        if (mm_occupancy_predict(devices[index]->compute_capability, &least, &ignored))
            *capability = devices[index]->compute_capability;
}

/* Replies at once if the request can be answered without a device; otherwise returns false. */
static bool reply_predictions(struct mm_request *request, struct mm_benchmark_call *call) {
    const struct mm_benchmark_format *format = run_of(request)->format;
    const bool is_probe = call->op->kind == MM_BENCHMARK_OF_ACCESSES;
    size_t length = 0;
    if (call->op->kind == MM_BENCHMARK_OF_VARIANTS ||
        (is_probe && mm_probe_can_time(&call->probe, call->probe.device)))
        return false;
    if (!is_probe)
        choose_capability(mm_server_engine(request->server), &call->occupancy);
    const uint64_t begun_ns = mm_clock_ns();
    char *text = is_probe ? format->encode_probe(&call->probe, &length)
                          : format->encode_occupancy(&call->occupancy, &length);
    request->record.stage_ns[MM_SPAN_ENCODE] = mm_clock_ns() - begun_ns;
    (void)mm_reply_text(request, text, length, format->reply_type);
    return true;
}

enum mm_status mm_benchmark_complete(struct mm_request *request) {
    struct mm_benchmark_call call;
    uint64_t begun_ns = mm_clock_ns();
    enum mm_status status = decode(request, &call);
    if (status == MM_OK && call.op->kind == MM_BENCHMARK_OF_VARIANTS)
        status = check(request, &call);
    if (status == MM_OK && call.op->kind == MM_BENCHMARK_OF_ACCESSES)
        status = choose_device(request, &call);
    request->record.stage_ns[MM_SPAN_DECODE] = mm_clock_ns() - begun_ns;
    if (status == MM_OK && reply_predictions(request, &call))
        return request->error.status;
    if (status == MM_OK)
        status = begin(request, &call);
    if (status != MM_OK)
        return status;
    mm_reservation_free(&request->memory, &request->upload.body);
    if (run_of(request)->task.run == NULL) /* models predict all rows, so nothing runs */
        return mm_benchmark_answer(request);
    request->work = &run_of(request)->task.work;
    request->work->deadline_ns = mm_request_deadline_ns(request, call.timeout_ms);
    mm_queue_prepare(mm_engine_queue(mm_server_engine(request->server)), request->work);
    mm_request_submit(request);
    return MM_OK;
}

static bool has_figures(const struct mm_benchmark *benchmark) {
    size_t row = 0;
    const size_t count = mm_benchmark_request(benchmark)->subject_count;
    while (row < count && mm_benchmark_rows(benchmark)[row].error.status != MM_OK)
        row++;
    return row < count;
}

/* Whether to reply with the last task's error. Otherwise the reply has rows, which can show errors. */
static bool has_failed(const struct mm_benchmark_run *run) {
    const struct mm_error *error = &run->task.work.error;
    return error->status != MM_OK &&
           (run->benchmark == NULL || ends_all(error) || !has_figures(run->benchmark));
}

enum mm_status mm_benchmark_answer(struct mm_request *request) {
    struct mm_benchmark_run *run = run_of(request);
    const struct mm_benchmark_format *format = run->format;
    size_t length = 0;
    if (has_failed(run)) {
        request->record.work = &run->task.work;
        request->error = run->task.work.error;
        release(request); /* before the reply, because the client may then send the next benchmark */
        return request->error.status;
    }
    uint64_t begun_ns = mm_clock_ns();
    char *text = run->probe != NULL ? format->encode_probe(run->probe, &length)
                                    : format->encode(run->benchmark, &length);
    request->record.stage_ns[MM_SPAN_ENCODE] = mm_clock_ns() - begun_ns;
    release(request);
    mm_request_trim(request);
    return mm_reply_text(request, text, length, format->reply_type);
}
