/* POST /v1/matmul, POST /v1/transpose and infer requests, after the body has arrived: turns the body into a
 * job and the result into a reply. The codecs know the wire formats. */
#include "server/handlers/operation.h"

#include "server/http/reply.h"
#include "server/http/routes.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"

#include <stdlib.h>
#include <string.h>

/* Below both limits, encoding a reply takes less than a millisecond, so the connection's thread does it. */
enum { LONG_ELEMENTS = 16 << 10, LONG_REPLY_BYTES = 1 << 20 };

_Static_assert(_Alignof(struct mm_operation) <= _Alignof(struct mm_request), "it lies behind that");

struct mm_operation *mm_operation_of(const struct mm_request *request) {
    return request->own;
}

/* A reply with figures or without elements must be JSON. If Accept excludes JSON, figures are refused. */
static enum mm_status choose_reply(struct mm_operation *operation, struct mm_error *error) {
    const bool reduces = operation->call.selection.figures != 0;
    if (operation->input.decoder == &mm_oip_codec)
        operation->encoder = mm_oip_reply(&operation->infer);
    if (reduces && !operation->accepts_facts)
        return mm_codec_fail_figures(error);
    if (reduces || !mm_selection_has_matrix(&operation->call.selection))
        operation->encoder = operation->accepts_facts ? &mm_json_codec : NULL;
    return MM_OK;
}

size_t mm_operation_part_bytes(const struct mm_operation *operation) {
    return mm_window_elements(&operation->part) * mm_dtype_bytes(operation->job.product.c.dtype);
}

static enum mm_status check_result(struct mm_request *request, struct mm_error *error) {
    struct mm_operation *operation = mm_operation_of(request);
    const struct mm_call *call = &operation->call;
    struct mm_job *job = &operation->job;
    const bool is_host = job->work.backend->is_host;
    size_t c_bytes = mm_matrix_bytes(&job->product.c);
    if (mm_selection_cut(&call->selection, &operation->shape, &operation->part, error) != MM_OK)
        return error->status;
    job->part = mm_selection_is_part(&call->selection) ? &operation->part : NULL;
    job->reduces = call->selection.figures != 0;
    job->keeps_c = is_host && call->out[0] != '\0';
    job->stores_c = !is_host && call->out[0] != '\0';
    if (!is_host)
        c_bytes = mm_selection_has_matrix(&call->selection) ? mm_operation_part_bytes(operation) : 0;
    operation->result_bytes = c_bytes;
    if (operation->encoder != NULL &&
        mm_codec_check_reply(operation->encoder, &operation->shape, error) != MM_OK)
        return error->status;
    return mm_call_check_memory(call, &job->product, is_host, c_bytes, &request->server->limits, error);
}

enum mm_status mm_operation_check(struct mm_request *request, struct mm_error *error) {
    struct mm_operation *operation = mm_operation_of(request);
    const struct mm_call *call = &operation->call;
    struct mm_engine *engine = mm_server_engine(request->server);
    const struct mm_shape *shapes[MM_OPERANDS_MAX] = {NULL};
    const enum mm_op op = call->operands.kind->op;
    operation->job.product = mm_call_product(call);
    operation->job.verify = call->verify;
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++) {
        const struct mm_operand *operand = &call->operands.of[index];
        operation->job.sources[index] = operand->source;
        shapes[index] = mm_operand_is_absent(operand) ? NULL : &operand->shape;
    }
    operation->shape = mm_operands_result(&call->operands);
    if (choose_reply(operation, error) != MM_OK ||
        mm_call_epilogue(call, &operation->job.product, error) != MM_OK ||
        mm_engine_choose(engine, op, call->backend, call->variant, &operation->job, error) != MM_OK ||
        mm_shape_conform(op, shapes, &operation->job.product, &operation->stack, error) != MM_OK)
        return error->status;
    if (operation->job.product.addend.rows == 0)
        operation->job.sources[MM_OPERAND_ADDEND] = (struct mm_source){.kind = MM_SOURCE_HOST}; /* not read */
    if (check_result(request, error) != MM_OK ||
        mm_engine_divide(engine, call->devices, &operation->job, error) != MM_OK ||
        mm_engine_check(engine, &operation->job, error) != MM_OK)
        return error->status;
    return mm_operation_check_verify(request, error);
}

static enum mm_status check(struct mm_request *request, struct mm_error *error) {
    struct mm_operation *operation = mm_operation_of(request);
    const struct mm_call *call = &operation->call;
    if (mm_operands_check_elements(&call->operands, error) != MM_OK ||
        mm_operation_check(request, error) != MM_OK)
        return error->status;
    mm_call_apply_layout(call, &operation->job.product);
    return mm_operation_reserve_out(request, error);
}

static bool is_locked(const struct mm_buffer *buffer) {
    return buffer->data == NULL || buffer->is_locked;
}

/* Turns the complete body into a job. The job has no memory for its output yet. */
static enum mm_status decode_job(struct mm_request *request, struct mm_error *error) {
    struct mm_operation *operation = mm_operation_of(request);
    struct mm_reservation *memory = &request->memory;
    mm_reservation_shrink(memory, &request->upload.body, request->upload.body_bytes);
    if (mm_input_decode(request, &operation->input, error) != MM_OK || check(request, error) != MM_OK)
        return error->status;
    if (operation->call.operands.views_body)
        mm_reservation_settle(memory, &request->upload.body);
    else
        mm_reservation_free(memory, &request->upload.body);
    operation->input.is_decoded = true;
    memory->expected_bytes = 0;
    return MM_OK;
}

/* Turns the complete body into a prepared job with all its memory. After MM_BUSY the caller may call it
 * again. Runs on the connection's thread or on the worker pool. */
static enum mm_status make_job(struct mm_request *request, struct mm_error *error) {
    struct mm_operation *operation = mm_operation_of(request);
    struct mm_buffer *storage = &operation->call.operands.storage;
    const uint64_t begun_ns = mm_clock_ns();
    enum mm_status status = operation->input.is_decoded ? MM_OK : decode_job(request, error);
    if (status == MM_OK)
        status = mm_operation_acquire_need(request, error);
    operation->decode_ns += mm_clock_ns() - begun_ns;
    if (status != MM_OK) {
        mm_operation_release_need(request);
        return status;
    }
    mm_reservation_settle(&request->memory, storage);
    operation->job.is_locked = is_locked(&request->upload.body) && is_locked(storage) &&
                               is_locked(&operation->result) && is_locked(&operation->output);
    mm_queue_prepare(mm_engine_queue(mm_server_engine(request->server)), &operation->job.work);
    return MM_OK;
}

/* Copies the job's shape into the request's record now, because this thread must not read the job while a
 * worker runs it. For a stack of products it records one product's shape, for a transposition the
 * shape of A. */
static void record_job(struct mm_request *request) {
    struct mm_operation *operation = mm_operation_of(request);
    const struct mm_product *product = &operation->job.product;
    struct mm_record *record = &request->record;
    const bool is_product = operation->call.operands.kind->op == MM_MATMUL;
    const size_t count = operation->stack.count; /* product->m may count the rows of all products */
    const size_t m = count > 1 && product->stack == NULL ? product->m / count : product->m;
    record->has_shape = true;
    record->has_depth = is_product;
    record->products = count;
    record->m = is_product ? m : product->n;
    record->k = product->k;
    record->n = is_product ? product->n : m;
    record->a = mm_source_word(operation->job.sources[MM_OPERAND_A].kind);
    mm_call_epilogue_text(&operation->call, record->epilogue);
    record->b = is_product ? mm_source_word(operation->job.sources[MM_OPERAND_B].kind) : NULL;
    request->record.stage_ns[MM_SPAN_DECODE] = operation->decode_ns;
}

static void record_spans(struct mm_request *request) {
    const struct mm_job *job = &mm_operation_of(request)->job;
    request->record.stage_ns[MM_SPAN_QUEUE] = job->work.waited_ns;
    for (unsigned span = MM_SPAN_UPLOAD; span <= MM_SPAN_DOWNLOAD; span++)
        request->record.stage_ns[span] = job->outcome.span_ns[span];
}

/* Whether encoding takes long. It can for an empty result too, because the text has brackets for each row. */
static bool encodes_long(const struct mm_operation *operation) {
    const struct mm_window *part = &operation->part;
    return operation->encoder != NULL && operation->encoder->reply_bytes_max != NULL &&
           mm_selection_has_matrix(&operation->call.selection) &&
           (mm_window_elements(part) > LONG_ELEMENTS || operation->reply_bytes > LONG_REPLY_BYTES);
}

enum mm_status mm_operation_complete(struct mm_request *request) {
    struct mm_operation *operation = mm_operation_of(request);
    enum mm_status status = mm_operation_settle(request);
    operation->job.work.deadline_ns =
        mm_operation_deadline_ns(request); /* the body's timeout is not decoded yet */
    if (status == MM_OK && mm_input_decode_on_pool(request, &operation->input))
        return MM_OK;
    if (status == MM_OK)
        status = make_job(request, &request->error);
    operation->job.work.deadline_ns = mm_operation_deadline_ns(request);
    if (status != MM_OK)
        return status;
    record_job(request);
    if (encodes_long(operation) ||
        !mm_queue_run(mm_engine_queue(mm_server_engine(request->server)), &operation->job)) {
        mm_request_submit(request);
        return MM_OK;
    }
    record_spans(request);
    mm_metrics_work(&operation->job.work, request->record.account);
    return mm_operation_answer(request);
}

/* Lets the encoder use idle threads of the worker pool. */
struct pool_helpers {
    struct mm_helpers head; /* must be first, because share_with_pool casts it */
    struct mm_pool *pool;
};

static void share_with_pool(struct mm_helpers *helpers, unsigned count,
                            void (*one)(void *data, unsigned index), void *data) {
    mm_pool_share(((struct pool_helpers *)helpers)->pool, count, one, data);
}

/* Sets the job's C to the wanted part, and returns the address of this part, in the result or in a copy. */
static void *select_part(struct mm_operation *operation) {
    const struct mm_window *part = &operation->part;
    struct mm_matrix *c = &operation->job.product.c;
    void *data = c->data;
    if (mm_operation_copies_part(operation)) {
        data = mm_operation_copy(operation);
        mm_window_pack(part, c->dtype, c->data, data);
    } else if (operation->job.keeps_c) {
        data = mm_window_elements(part) == 0 ? NULL : mm_window_item(part, c->dtype, c->data, 0).data;
    }
    *c = mm_matrix_dense(c->dtype, part->count * part->rows, part->cols, data);
    return data;
}

/* Releases the operands after the job, so the memory is free while the client reads the result. */
static void release_operands(struct mm_request *request) {
    struct mm_operation *operation = mm_operation_of(request);
    mm_operands_release(&operation->call.operands, &request->memory);
    mm_reservation_free(&request->memory, &request->upload.body);
    mm_reservation_free(&request->memory, &operation->scratch);
    mm_references_release(&operation->references);
    mm_request_trim(request);
}

static void encode(struct mm_request *request, struct mm_buffer *view) {
    struct mm_operation *operation = mm_operation_of(request);
    const struct mm_codec *encoder = operation->encoder;
    uint64_t *span_ns = operation->span_ns;
    struct pool_helpers helpers = {{share_with_pool}, request->server->pool};
    const bool is_text = operation->reply_bytes > 0, is_output = view->data == operation->output.data;
    if (is_text) {
        operation->reply.buffer = operation->output;
        operation->output = (struct mm_buffer){0};
    }
    const struct mm_answer answer = {.call = &operation->call,
                                     .outcome = &operation->job.outcome,
                                     .device = operation->job.work.device,
                                     .operand_dtype = operation->job.product.a.dtype,
                                     .matrix = operation->job.product.c,
                                     .reduction = &operation->job.outcome.reduction,
                                     .figures = operation->call.selection.figures,
                                     .has_matrix = mm_selection_has_matrix(&operation->call.selection),
                                     .shape = &operation->shape,
                                     .result = is_output && !is_text ? &operation->output : view,
                                     .span_ns = span_ns,
                                     .helpers = &helpers.head};
    memcpy(span_ns, request->record.stage_ns, sizeof operation->span_ns);
    const uint64_t begun_ns = mm_clock_ns();
    if (encoder != NULL)
        encoder->encode(&answer, &operation->reply);
    const uint64_t ended_ns = mm_clock_ns();
    span_ns[MM_SPAN_ENCODE] = ended_ns - begun_ns;
    span_ns[MM_SPAN_TOTAL] = ended_ns - request->started_ns;
    operation->is_encoded = true;
    if (encoder != NULL && encoder->finish != NULL)
        encoder->finish(&answer, &operation->reply);
}

static void make_reply(struct mm_request *request) {
    struct mm_operation *operation = mm_operation_of(request);
    struct mm_buffer view = {.data = operation->job.product.c.data}; /* does not own its memory */
    if (operation->job.part != NULL)
        view.data = select_part(operation);
    release_operands(request);
    encode(request, &view);
}

static bool is_abandoned(struct mm_request *request) {
    pthread_mutex_lock(&request->server->mutex);
    const bool is_abandoned = !mm_request_waits(request);
    pthread_mutex_unlock(&request->server->mutex);
    return is_abandoned;
}

/* Sets the job's deadline with the mutex held, because the sweep reads the deadline. */
static enum mm_status make_job_on_pool(struct mm_request *request, struct mm_error *error) {
    struct mm_operation *operation = mm_operation_of(request);
    const enum mm_status status = make_job(request, error);
    pthread_mutex_lock(&request->server->mutex);
    operation->job.work.deadline_ns = mm_operation_deadline_ns(request);
    pthread_mutex_unlock(&request->server->mutex);
    return status;
}

/* Decodes or encodes. After encoding, also stores the result, except for an abandoned request. */
static enum mm_status work(struct mm_request *request, enum mm_request_state state, struct mm_error *error) {
    if (state == MM_DECODING)
        return make_job_on_pool(request, error);
    make_reply(request);
    return is_abandoned(request) ? MM_OK : mm_operation_store_out(request, error);
}

static enum mm_request_state next(struct mm_request *request, enum mm_request_state ended) {
    const struct mm_operation *operation = mm_operation_of(request);
    if (ended == MM_DECODING) {
        record_job(request);
        return MM_QUEUED;
    }
    if (ended == MM_QUEUED) {
        record_spans(request);
        if (operation->job.work.error.status == MM_OK && encodes_long(operation))
            return MM_ENCODING;
    }
    return MM_ANSWERING;
}

static void drop_memory(struct mm_request *request) {
    struct mm_operation *operation = mm_operation_of(request);
    if (operation->reply.buffer.bytes == 0)
        operation->reply.buffer = (struct mm_buffer){0}; /* it pointed to the stored result */
    if (operation->slot.is_reserved)
        mm_store_unreserve(request->server->store, &operation->slot);
    mm_operation_release_need(request);
    mm_operands_release(&operation->call.operands, &request->memory);
    mm_device_copy_release(operation->job.stored_c);
    operation->job.stored_c = NULL;
}

static void release(struct mm_request *request) {
    struct mm_operation *operation = mm_operation_of(request);
    drop_memory(request);
    mm_references_release(&operation->references);
}

const struct mm_route_state mm_operation_state = {.bytes = sizeof(struct mm_operation),
                                                  .work = work,
                                                  .next = next,
                                                  .drop_memory = drop_memory,
                                                  .release = release};

/* Logs that a result failed its check, because the client may ignore this. */
static void log_failed_check(const struct mm_request *request) {
    const struct mm_job *job = &mm_operation_of(request)->job;
    const struct mm_verification *verification = &job->outcome.verification;
    if (!verification->is_done || mm_verification_verdict(verification) != MM_VERDICT_FAILED ||
        job->outcome.ran->wrong_on_purpose)
        return;
    mm_log_error(
        "the product of request %s failed its check: a residual of %.9g in row %zu, where %.9g is the bound, "
        "and a relative error of about %.2g in all; %s on %s:%u, %zu by %zu by %zu, products: %zu",
        request->request_id, verification->residual, verification->row, verification->bound,
        mm_verification_relative_error(verification), job->outcome.ran->name, job->work.backend->name,
        job->work.device->index, job->product.m, job->product.k, job->product.n,
        mm_product_count(&job->product));
}

enum mm_status mm_operation_answer(struct mm_request *request) {
    struct mm_operation *operation = mm_operation_of(request);
    request->record.work = &operation->job.work;
    if (operation->job.work.error.status != MM_OK) {
        request->error = operation->job.work.error;
        return request->error.status;
    }
    log_failed_check(request);
    enum mm_status status = MM_OK;
    if (!operation->is_encoded)
        make_reply(request);
    if (request->value == NULL)
        status = mm_operation_store_out(request, &request->error);
    request->record.stage_ns[MM_SPAN_ENCODE] = operation->span_ns[MM_SPAN_ENCODE];
    if (status != MM_OK)
        return status;
    return mm_reply_product(request, &operation->reply, &operation->shape,
                            operation->encoder == NULL ? NULL : operation->encoder->reply_type,
                            operation->span_ns);
}
