/* Handles the head of POST /v1/matmul and POST /v1/transpose: chooses the codecs, reads the parameters, and
 * admits the request. The codecs know the wire formats. */
#include "server/handlers/operation.h"

#include "server/http/upload.h"
#include "server/http/routes.h"

/* Bodies up to this size are received before the product is checked, because the check costs more. */
enum { SMALL_BYTES = 64 << 10 };

static enum mm_status choose_encoder(struct mm_request *request) {
    struct mm_operation *operation = mm_operation_of(request);
    char text[MM_ACCEPT_BYTES];
    const char *accept = mm_request_list(request, MM_HEADER_ACCEPT, text, NULL);
    const struct mm_call *call = &operation->call;
    const bool has_body = mm_operands_have_inline(&call->operands);
    operation->accepts_facts = mm_codec_for_facts(accept) != NULL;
    if (!mm_selection_has_matrix(&call->selection) || call->selection.figures != 0)
        return MM_OK; /* mm_operation_check chooses the encoder */
    return mm_codec_for_reply(accept, has_body ? operation->input.decoder : &mm_json_codec,
                              &operation->encoder, &request->error);
}

/* Chooses the decoder by the head, or by the body's first character `first`. Chooses a fitting encoder. */
static enum mm_status choose_codecs(struct mm_request *request, bool body_seen, char first) {
    struct mm_operation *operation = mm_operation_of(request);
    const struct mm_operands *operands = &operation->call.operands;
    enum mm_status status = mm_codec_for_request(request->headers[MM_HEADER_CONTENT_TYPE], operands->kind->op,
                                                 mm_operands_name_shapes(operands), body_seen, first,
                                                 &operation->input.decoder, &request->error);
    return status == MM_OK ? choose_encoder(request) : status;
}

uint64_t mm_operation_deadline_ns(const struct mm_request *request) {
    return mm_request_deadline_ns(request, mm_operation_of(request)->call.timeout_ms);
}

/* If the head gives the shape, checks the product before the body arrives. A small body is received first. */
static enum mm_status check_head(struct mm_request *request) {
    const struct mm_operation *operation = mm_operation_of(request);
    const struct mm_codec *decoder = operation->input.decoder;
    if (decoder == NULL || decoder->dimensions[operation->call.operands.kind->op] == NULL ||
        (request->upload.content_length <= SMALL_BYTES && request->upload.content_length != 0))
        return MM_OK;
    if (mm_operation_check(request, &request->error) != MM_OK)
        return request->error.status;
    return mm_operation_check_need(request);
}

/* Refuses a request without a length, unless the query names the source of each operand. */
static enum mm_status check_length(struct mm_request *request) {
    const struct mm_operands *operands = &mm_operation_of(request)->call.operands;
    const struct mm_parameters *parameters = &operands->parameters;
    for (unsigned index = 0; index < operands->count; index++) {
        const struct mm_operand *operand = &operands->of[index];
        const bool is_named = (parameters->named & mm_parameter_bit(parameters, &operand->source)) != 0;
        if (operand->role.is_optional ? operand->in_body : !is_named)
            return mm_upload_require_length(request);
    }
    return MM_OK;
}

/* Reads the query first, because it decides whether there is a body and what the reply is. An error in the
 * query is reported only if the length and the codecs are valid. */
static enum mm_status read_query(struct mm_request *request) {
    (void)mm_input_read_query(request, &mm_operation_of(request)->call.operands.parameters);
    if (check_length(request) == MM_OK)
        (void)choose_codecs(request, false, 0);
    return request->error.status;
}

void mm_operation_begin(struct mm_request *request) {
    struct mm_operation *operation = mm_operation_of(request);
    request->work = &operation->job.work;
    operation->input.operands = &operation->call.operands;
    operation->references = (struct mm_references){.store = request->server->store, .space = request->space};
    operation->call.operands.references = &operation->references;
}

enum mm_status mm_operation_admit(struct mm_request *request) {
    struct mm_operation *operation = mm_operation_of(request);
    if (mm_server_takes_jobs(request->server, &request->error) != MM_OK || check_head(request) != MM_OK ||
        mm_queue_check_depth(mm_engine_queue(mm_server_engine(request->server)), request->memory.client,
                             &request->error) != MM_OK)
        return request->error.status;
    mm_input_begin_reading(request, &operation->input);
    return MM_OK;
}

static enum mm_status admit(struct mm_request *request, enum mm_op op) {
    struct mm_operation *operation = mm_operation_of(request);
    mm_call_init(&operation->call, op);
    mm_operation_begin(request);
    if (read_query(request) != MM_OK)
        return request->error.status;
    request->deadline_ns = mm_operation_deadline_ns(request);
    if (mm_operation_check_out(request) != MM_OK ||
        (operation->input.decoder != NULL &&
         mm_input_plan(request, &operation->input, request->upload.content_length) != MM_OK))
        return request->error.status;
    return mm_operation_admit(request);
}

enum mm_status mm_matmul_admit(struct mm_request *request) {
    return admit(request, MM_MATMUL);
}

enum mm_status mm_transpose_admit(struct mm_request *request) {
    return admit(request, MM_TRANSPOSE);
}

enum mm_status mm_operation_settle(struct mm_request *request) {
    struct mm_input *input = &mm_operation_of(request)->input;
    if (input->decoder != NULL && request->upload.content_length != MM_LENGTH_UNKNOWN)
        return MM_OK;
    if (input->decoder == NULL && choose_codecs(request, true, mm_request_first_character(request)) != MM_OK)
        return request->error.status;
    return mm_input_plan(request, input, request->upload.body_bytes);
}
