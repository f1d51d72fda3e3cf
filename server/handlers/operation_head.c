/* POST /v1/matmul and POST /v1/transpose, the head: chooses the codecs, reads the parameters, and admits the
 * request. Knows no wire format: those are the codecs'. */
#include "server/handlers/operation.h"

#include "api/result.h"
#include "server/http/body.h"
#include "server/http/routes.h"

/* A smaller body costs less to receive than its product to judge before. */
enum { SMALL_BYTES = 64 << 10 };

#define BIT(parameter) (UINT64_C(1) << MM_PARAMETER_##parameter)

static enum mm_status choose_encoder(struct mm_request *request) {
    struct mm_operation *operation = mm_operation_of(request);
    char text[MM_ACCEPT_BYTES];
    const char *accept = mm_request_accept(request, text);
    const bool has_body = !mm_operand_none_is_inline(&operation->input.call);
    operation->accepts_facts = mm_codec_for_facts(accept) != NULL;
    if (!mm_result_returns_matrix(&operation->input.call) ||
        operation->input.call.numbers[MM_PARAMETER_REDUCE] != 0)
        return MM_OK; /* mm_operation_judge chooses */
    return mm_codec_for_reply(accept, has_body ? operation->input.decoder : &mm_json_codec,
                              &operation->encoder, &request->error);
}

/* Whether the query names all of these parameters, also with values that are wrong, or stored operands tell
 * them. */
static bool names_all(const struct mm_call *call, uint64_t parameters) {
    const uint64_t of_a = mm_operand_is_stored(call, 0) ? BIT(M) | BIT(K) : 0;
    const uint64_t of_b = mm_operand_is_stored(call, 1) ? BIT(K) | BIT(N) : 0;
    return ((call->named | of_a | of_b) & parameters) == parameters;
}

/* Whether the query has all dimensions of the operation, in one way or the other, or all operands. */
static bool has_dimensions(const struct mm_call *call) {
    if (mm_operand_none_is_inline(call))
        return true;
    if (call->op == MM_TRANSPOSE)
        return names_all(call, BIT(SHAPE)) || names_all(call, BIT(M) | BIT(N));
    return names_all(call, BIT(M) | BIT(K) | BIT(N)) || names_all(call, BIT(A_SHAPE) | BIT(B_SHAPE));
}

/* Finds the decoder as far as `first` allows, and the encoder that goes with it. */
static enum mm_status choose_codecs(struct mm_request *request, bool body_seen, char first) {
    struct mm_operation *operation = mm_operation_of(request);
    enum mm_status status = mm_codec_for_request(
        request->headers[MM_HEADER_CONTENT_TYPE], operation->input.call.op,
        has_dimensions(&operation->input.call), body_seen, first, &operation->input.decoder, &request->error);
    return status == MM_OK ? choose_encoder(request) : status;
}

uint64_t mm_operation_deadline_ns(const struct mm_request *request) {
    return mm_request_deadline_ns(request,
                                  mm_operation_of(request)->input.call.numbers[MM_PARAMETER_TIMEOUT_MS]);
}

/* If the head tells the shape, judges the product. If the body is small, this waits for it, unless there is
 * none. */
static enum mm_status judge_head(struct mm_request *request) {
    const struct mm_operation *operation = mm_operation_of(request);
    const struct mm_codec *decoder = operation->input.decoder;
    if (decoder == NULL || decoder->dimensions[operation->input.call.op] == NULL ||
        (request->content_length <= SMALL_BYTES && request->content_length != 0))
        return MM_OK;
    const enum mm_status status = mm_operation_judge(request, &request->error);
    return status == MM_OK ? mm_operation_judge_need(request) : status;
}

/* A body may lack its length only if it is empty: the query says where all operands come from. */
static enum mm_status judge_length(struct mm_request *request) {
    const struct mm_call *call = &mm_operation_of(request)->input.call;
    if (names_all(call, call->op == MM_MATMUL ? BIT(A_FROM) | BIT(B_FROM) : BIT(A_FROM)))
        return MM_OK;
    return mm_body_require_length(request);
}

/* The query is read first, since it says whether there is a body and what the reply is. What is wrong with it
 * is told only if nothing else is. */
static enum mm_status read_query(struct mm_request *request) {
    (void)mm_input_read_query(request, &mm_operation_of(request)->input.call);
    if (judge_length(request) == MM_OK)
        (void)choose_codecs(request, false, 0);
    return request->error.status;
}

static enum mm_status admit(struct mm_request *request, enum mm_op op) {
    struct mm_operation *operation = mm_operation_of(request);
    request->work = &operation->job.work;
    mm_call_init(&operation->input.call, op);
    operation->held = (struct mm_held){.store = request->server->store, .space = request->space};
    operation->input.call.held = &operation->held;
    enum mm_status status = read_query(request);
    if (status != MM_OK)
        return status;
    request->deadline_ns = mm_operation_deadline_ns(request);
    status = mm_operation_judge_out(request);
    if (status == MM_OK && operation->input.decoder != NULL)
        status = mm_input_plan(request, &mm_operation_of(request)->input, request->content_length);
    if (status == MM_OK)
        status = mm_server_takes_jobs(request->server, &request->error);
    if (status == MM_OK)
        status = judge_head(request);
    if (status == MM_OK && mm_queue_look(mm_engine_queue(mm_server_engine(request->server))).is_full)
        status = mm_fail(&request->error, MM_BUSY, "the queue is full (--queue-depth); try again later");
    if (status == MM_OK)
        mm_input_begin_reading(request, &operation->input);
    return status;
}

enum mm_status mm_matmul_admit(struct mm_request *request) {
    return admit(request, MM_MATMUL);
}

enum mm_status mm_transpose_admit(struct mm_request *request) {
    return admit(request, MM_TRANSPOSE);
}

enum mm_status mm_operation_settle(struct mm_request *request) {
    enum mm_status status = MM_OK;
    if (mm_operation_of(request)->input.decoder == NULL)
        status = choose_codecs(request, true, mm_request_first_character(request));
    else if (request->content_length != MM_LENGTH_UNKNOWN)
        return MM_OK;
    return status == MM_OK ? mm_input_plan(request, &mm_operation_of(request)->input,
                                           __atomic_load_n(&request->received_bytes, __ATOMIC_RELAXED))
                           : status;
}
