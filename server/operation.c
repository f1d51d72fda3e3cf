/* POST /v1/matmul and POST /v1/transpose: from a head to a judged request, from a body to a job, from a
 * result to a reply. Knows no wire format: those are the codecs'. */
#include "gpu/verify.h"
#include "server/accept.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/operation.h"
#include "server/reply.h"
#include "server/routes.h"

#include <stdio.h>
#include <string.h>

/* What takes less than a fraction of a millisecond is done on the connection's own thread. */
enum { LONG_BYTES = 256 << 10, LONG_ELEMENTS = 16 << 10 };

static bool has_query(const struct mm_exchange *exchange, const char *name) {
    return MHD_lookup_connection_value(exchange->connection, MHD_GET_ARGUMENT_KIND, name) != NULL;
}

static enum mm_status choose_encoder(struct mm_exchange *exchange) {
    struct mm_accept accept;
    return mm_codec_for_reply(mm_accept_read(exchange, &accept), exchange->decoder, &exchange->encoder,
                              &exchange->error);
}

/* Whether the query gives all of the dimensions that the operation has. */
static bool has_dimensions(const struct mm_exchange *exchange) {
    bool needs_k = mm_call_takes(&exchange->call, MM_PARAMETER_K);
    return has_query(exchange, "m") && (!needs_k || has_query(exchange, "k")) && has_query(exchange, "n");
}

/* Finds the decoder as far as `first` allows, and the encoder that goes with it. */
static enum mm_status choose_codecs(struct mm_exchange *exchange, bool body_seen, char first) {
    enum mm_status status = mm_codec_for_request(mm_exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_TYPE),
                                                 exchange->call.op, has_dimensions(exchange), body_seen,
                                                 first, &exchange->decoder, &exchange->error);
    return status == MM_OK ? choose_encoder(exchange) : status;
}

/* MHD's visitor of the query's arguments. Of several that are wrong the first is told, but one that passes a
 * limit before one that is malformed. */
static enum MHD_Result take_argument(void *argument, enum MHD_ValueKind kind, const char *name,
                                     size_t name_length, const char *value, size_t value_length) {
    struct mm_exchange *exchange = argument;
    struct mm_error error;
    (void)kind;
    enum mm_status status = mm_call_set_text(&exchange->call, name, name_length, value == NULL ? "" : value,
                                             value_length, &exchange->server->limits, &error);
    if (status == MM_TOO_LARGE || (status != MM_OK && exchange->error.status == MM_OK))
        exchange->error = error;
    return status == MM_TOO_LARGE ? MHD_NO : MHD_YES;
}

/* What the query, the type's parameters and the length tell once the codec is known. */
static enum mm_status plan(struct mm_exchange *exchange, uint64_t body_bytes) {
    const struct mm_codec *codec = exchange->decoder;
    struct mm_error *error = &exchange->error;
    enum mm_status status = MM_OK;
    if (!codec->takes_dimensions)
        status = mm_call_refuse_dimensions(&exchange->call, error);
    if (status == MM_OK && codec->judge_type != NULL)
        status = codec->judge_type(mm_exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_TYPE), error);
    if (status == MM_OK && codec->plan != NULL)
        status = codec->plan(&exchange->call, body_bytes, &exchange->server->limits, error);
    return status;
}

/* By what is known of the caller's own limit: the query's before the body, the body's after it. */
static uint64_t deadline_ns(const struct mm_exchange *exchange) {
    return mm_exchange_deadline_ns(exchange, exchange->call.numbers[MM_PARAMETER_TIMEOUT_MS]);
}

static void begin_reading(struct mm_exchange *exchange) {
    exchange->reading = exchange->decoder->reader->begin(
        &exchange->call, mm_exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_TYPE), exchange->content_length,
        &exchange->server->limits, exchange->server->buffers);
}

static enum mm_status admit(struct mm_exchange *exchange, enum mm_op op) {
    mm_call_init(&exchange->call, op);
    enum mm_status status = choose_codecs(exchange, false, 0);
    if (status != MM_OK)
        return status;
    MHD_get_connection_values_n(exchange->connection, MHD_GET_ARGUMENT_KIND, take_argument, exchange);
    if (exchange->error.status != MM_OK)
        return exchange->error.status;
    exchange->deadline_ns = deadline_ns(exchange);
    if (exchange->decoder != NULL)
        status = plan(exchange, exchange->content_length);
    if (status == MM_OK)
        status = mm_server_takes_jobs(exchange->server, &exchange->error);
    if (status == MM_OK && mm_queue_full(mm_engine_queue(mm_server_engine(exchange->server))))
        status = mm_fail(&exchange->error, MM_BUSY, "the queue is full");
    if (status == MM_OK && exchange->decoder != NULL && exchange->decoder->reader != NULL)
        begin_reading(exchange);
    return status;
}

enum mm_status mm_matmul_admit(struct mm_exchange *exchange) {
    return admit(exchange, MM_MATMUL);
}

enum mm_status mm_transpose_admit(struct mm_exchange *exchange) {
    return admit(exchange, MM_TRANSPOSE);
}

/* What the head left open, now that the body is complete: the codecs, where its first character had to tell,
 * and what they make of its length. It asks MHD, and so is the connection's thread's. */
static enum mm_status settle(struct mm_exchange *exchange) {
    enum mm_status status = MM_OK;
    if (exchange->decoder == NULL)
        status = choose_codecs(exchange, true, mm_exchange_first_character(exchange));
    else if (exchange->content_length != MM_LENGTH_UNKNOWN)
        return MM_OK;
    return status == MM_OK ? plan(exchange, __atomic_load_n(&exchange->received_bytes, __ATOMIC_RELAXED))
                           : status;
}

static enum mm_status decode(struct mm_exchange *exchange, const char *content_type, struct mm_error *error) {
    const struct mm_body body = {
        .data = exchange->body.data, .bytes = exchange->body_bytes, .content_type = content_type};
    void *reading = exchange->reading;
    exchange->reading = NULL;
    if (reading != NULL)
        return exchange->decoder->reader->finish(reading, &exchange->call, &body, error);
    return exchange->decoder->decode(&exchange->call, &body, &exchange->server->limits,
                                     exchange->server->buffers, error);
}

/* Sets m, n and k; there is nothing that a transposition's one matrix would have to conform to. */
static enum mm_status conform(struct mm_exchange *exchange, struct mm_error *error) {
    struct mm_product *product = &exchange->job.product;
    if (exchange->call.op == MM_MATMUL)
        return mm_product_conform(product, error);
    mm_product_conform_transposition(product);
    return MM_OK;
}

/* The job's product, but for the result's memory: limits first, then the names and the tile, which can be a
 * bad request, then whether the matrices conform. */
static enum mm_status check(struct mm_exchange *exchange, size_t *result_bytes, struct mm_error *error) {
    const struct mm_call *call = &exchange->call;
    struct mm_product *product = &exchange->job.product;
    size_t rows, cols;
    mm_call_result_shape(call, &rows, &cols);
    enum mm_status status =
        mm_matrix_size("c", call->a.dtype, rows, cols, cols, &exchange->server->limits, result_bytes, error);
    if (status != MM_OK)
        return status;
    *product = (struct mm_product){.a = call->a,
                                   .b = call->b,
                                   .c = mm_matrix_dense(call->a.dtype, rows, cols, NULL),
                                   .transpose_a = mm_call_transposes_a(call),
                                   .transpose_b = call->numbers[MM_PARAMETER_TRANSPOSE_B] != 0,
                                   .allow_vendor = call->numbers[MM_PARAMETER_VENDOR] != 0,
                                   .tile = (unsigned)call->numbers[MM_PARAMETER_TILE]};
    exchange->job.verify = call->numbers[MM_PARAMETER_VERIFY] != 0;
    status = mm_engine_choose(mm_server_engine(exchange->server), call->op, call->names[MM_PARAMETER_BACKEND],
                              call->names[MM_PARAMETER_VARIANT], &exchange->job, error);
    if (status == MM_OK)
        status = conform(exchange, error);
    if (status == MM_OK)
        mm_call_turn(call, product);
    return status;
}

/* What a check takes: a device has its own memory for that. */
static enum mm_status acquire_check(struct mm_exchange *exchange, struct mm_error *error) {
    struct mm_job *job = &exchange->job;
    const struct mm_product *product = &job->product;
    if (!job->verify || !job->backend->is_host || product->m == 0 || product->n == 0)
        return MM_OK;
    const enum mm_status status =
        mm_buffers_acquire(exchange->server->buffers, mm_verify_bytes(product), &exchange->check, error);
    job->verify_memory = exchange->check.data;
    return status;
}

/* All the memory that the result, its check and the reply take, so that a job that has run can be answered.
 */
static enum mm_status acquire_output(struct mm_exchange *exchange, size_t result_bytes,
                                     struct mm_error *error) {
    const struct mm_codec *encoder = exchange->encoder;
    struct mm_product *product = &exchange->job.product;
    struct mm_buffers *buffers = exchange->server->buffers;
    size_t reply_bytes = 0;
    enum mm_status status = mm_buffers_acquire(buffers, result_bytes, &exchange->result, error);
    if (status != MM_OK)
        return status;
    product->c.data = exchange->result.data;
    status = acquire_check(exchange, error);
    if (status != MM_OK || encoder->reply_bytes_max == NULL)
        return status;
    if (!encoder->reply_bytes_max(&product->c, &reply_bytes))
        return mm_fail(error, MM_TOO_LARGE, "the result of %zu×%zu is too large as %s", product->m,
                       product->n, encoder->reply_type);
    exchange->encodes_long = product->m * product->n > LONG_ELEMENTS;
    return mm_buffers_acquire(buffers, reply_bytes, &exchange->reply.buffer, error);
}

static bool is_locked(const struct mm_buffer *buffer) {
    return buffer->data == NULL || buffer->is_locked;
}

enum mm_status mm_operation_decode(struct mm_exchange *exchange, const char *content_type,
                                   uint64_t *decode_ns, struct mm_error *error) {
    const uint64_t begun_ns = mm_clock_ns();
    size_t result_bytes = 0;
    enum mm_status status = decode(exchange, content_type, error);
    if (status == MM_OK)
        status = check(exchange, &result_bytes, error);
    if (status == MM_OK && !exchange->decoder->views_body)
        mm_buffers_release(exchange->server->buffers, &exchange->body);
    if (status == MM_OK)
        status = acquire_output(exchange, result_bytes, error);
    exchange->job.is_locked =
        is_locked(&exchange->body) && is_locked(&exchange->call.storage) && is_locked(&exchange->result);
    *decode_ns = mm_clock_ns() - begun_ns;
    return status;
}

/* The shape is told in the caller's dimensions: of a transposition those of A, which C has the other way
 * round. Copied, since the job is not ours to read where it is abandoned. */
void mm_operation_tell(struct mm_exchange *exchange, uint64_t decode_ns) {
    const struct mm_product *product = &exchange->job.product;
    struct mm_record *record = &exchange->record;
    bool is_product = exchange->call.op == MM_MATMUL;
    record->has_shape = true;
    record->has_depth = is_product;
    record->m = is_product ? product->m : product->n;
    record->k = product->k;
    record->n = is_product ? product->n : product->m;
    exchange->job.deadline_ns = deadline_ns(exchange);
    exchange->span_ns[MM_SPAN_DECODE] = decode_ns;
}

/* Whether the body takes long to decode, now that it is complete. */
static bool decodes_long(const struct mm_exchange *exchange) {
    const struct mm_codec *decoder = exchange->decoder;
    if (exchange->body_bytes <= LONG_BYTES || decoder->decodes_quickly)
        return false;
    return exchange->reading == NULL || !decoder->reader->is_quick(exchange->reading);
}

/* Leaves the decoding to the crew, which must not ask MHD: the connection may be gone before its turn comes.
 * False where there is no memory for what it has to know. */
static bool leave_to_crew(struct mm_exchange *exchange, const char *content_type) {
    exchange->content_type = content_type == NULL ? NULL : strdup(content_type);
    if (content_type != NULL && exchange->content_type == NULL)
        return false;
    exchange->job.deadline_ns = deadline_ns(exchange); /* as far as it is known by now */
    mm_exchange_decode_by_crew(exchange);
    return true;
}

enum mm_status mm_operation_complete(struct mm_exchange *exchange) {
    const char *content_type = mm_exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_TYPE);
    uint64_t decode_ns = 0;
    enum mm_status status = settle(exchange);
    if (status == MM_OK && decodes_long(exchange) && leave_to_crew(exchange, content_type))
        return MM_OK;
    if (status == MM_OK)
        status = mm_operation_decode(exchange, content_type, &decode_ns, &exchange->error);
    if (status != MM_OK)
        return status;
    mm_operation_tell(exchange, decode_ns);
    if (!mm_queue_run(mm_engine_queue(mm_server_engine(exchange->server)), &exchange->job)) {
        mm_exchange_submit(exchange);
        return MM_OK;
    }
    mm_metrics_job(exchange->server->metrics, &exchange->job);
    return mm_operation_answer(exchange);
}

/* Those of the crew's threads that have nothing to do. */
struct crew_helpers {
    struct mm_helpers head; /* first */
    struct mm_crew *crew;
};

static void share_with_crew(struct mm_helpers *helpers, unsigned count,
                            void (*one)(void *data, unsigned index), void *data) {
    mm_crew_share(((struct crew_helpers *)helpers)->crew, count, one, data);
}

enum mm_status mm_operation_encode(struct mm_exchange *exchange, uint64_t *span_ns, struct mm_error *error) {
    const struct mm_codec *encoder = exchange->encoder;
    const struct mm_job *job = &exchange->job;
    struct crew_helpers helpers = {{share_with_crew}, exchange->server->crew};
    const struct mm_answer answer = {
        .job = job, .result = &exchange->result, .span_ns = span_ns, .helpers = &helpers.head};
    memcpy(span_ns, exchange->span_ns, sizeof exchange->span_ns);
    for (unsigned span = MM_SPAN_QUEUE; span <= MM_SPAN_DOWNLOAD; span++)
        span_ns[span] = job->span_ns[span];
    const uint64_t begun_ns = mm_clock_ns();
    encoder->encode(&answer, &exchange->reply);
    const uint64_t ended_ns = mm_clock_ns();
    span_ns[MM_SPAN_ENCODE] = ended_ns - begun_ns;
    span_ns[MM_SPAN_TOTAL] = ended_ns - exchange->started_ns;
    return encoder->finish == NULL ? MM_OK : encoder->finish(&answer, &exchange->reply, error);
}

/* The caller is told, and may not look. */
static void log_failed_check(const struct mm_exchange *exchange) {
    const struct mm_job *job = &exchange->job;
    const struct mm_verification *verification = &job->verification;
    if (!verification->is_done || mm_verification_verdict(verification) != MM_VERDICT_FAILED)
        return;
    mm_log_error(
        "the product of request %s failed its check: a residual of %.9g in row %zu, where %.9g is the bound; "
        "%s on %s:%u, %zu by %zu by %zu",
        exchange->request_id, verification->residual, verification->row, verification->bound, job->ran->name,
        job->backend->name, job->device->index, job->product.m, job->product.k, job->product.n);
}

enum mm_status mm_operation_answer(struct mm_exchange *exchange) {
    const struct mm_job *job = &exchange->job;
    uint64_t span_ns[MM_SPAN_COUNT];
    exchange->record.job = job;
    if (job->error.status != MM_OK) {
        exchange->error = job->error;
        return job->error.status;
    }
    log_failed_check(exchange);
    if (!exchange->encoded) {
        const enum mm_status status = mm_operation_encode(exchange, span_ns, &exchange->error);
        memcpy(exchange->span_ns, span_ns, sizeof span_ns);
        if (status != MM_OK)
            return status;
    }
    return mm_reply_product(exchange, &exchange->reply, exchange->encoder->reply_type);
}
