#include "server/handlers/input.h"

#include "server/http/routes.h"

static unsigned weight(enum mm_status status) {
    if (status == MM_OK)
        return 0;
    return status == MM_NO_SUCH_MATRIX ? 1 : status == MM_TOO_LARGE ? 3 : 2;
}

struct query {
    struct mm_request *request;
    struct mm_parameters *values;
};

static enum MHD_Result read_argument(void *argument, enum MHD_ValueKind kind, const char *name,
                                     size_t name_length, const char *value, size_t value_length) {
    const struct query *query = argument;
    struct mm_request *request = query->request;
    struct mm_error error;
    const enum mm_status status = mm_parameter_set_text(query->values, MM_IN_QUERY, name, name_length, value,
                                                        value_length, &request->server->limits, &error);
    if (weight(status) > weight(request->error.status))
        request->error = error;
    return MHD_YES;
}

enum mm_status mm_input_read_query(struct mm_request *request, struct mm_parameters *values) {
    struct query query = {request, values};
    MHD_get_connection_values_n(request->connection, MHD_GET_ARGUMENT_KIND, read_argument, &query);
    return request->error.status;
}

enum mm_status mm_input_plan(struct mm_request *request, struct mm_input *input, uint64_t body_bytes) {
    const struct mm_codec *codec = input->decoder;
    struct mm_error *error = &request->error;
    if (codec->check_type != NULL &&
        codec->check_type(request->headers[MM_HEADER_CONTENT_TYPE], error) != MM_OK)
        return error->status;
    return codec->plan == NULL ? MM_OK
                               : codec->plan(input->operands, body_bytes, &request->server->limits, error);
}

static void *begin(struct mm_request *request, const struct mm_input *input, uint64_t body_bytes) {
    request->upload.reader = input->decoder->reader;
    return request->upload.reader->begin(input->operands, request->headers[MM_HEADER_CONTENT_TYPE],
                                         body_bytes, &request->server->limits, &request->memory);
}

void mm_input_begin_reading(struct mm_request *request, struct mm_input *input) {
    if (input->decoder != NULL && input->decoder->reader != NULL && request->upload.inflation.coding == 0)
        request->upload.reading = begin(request, input, request->upload.content_length);
}

static bool decodes_long(const struct mm_request *request, const struct mm_input *input) {
    if (input->is_decoded || request->upload.body_bytes <= MM_LONG_BYTES || input->decoder->reader == NULL)
        return false;
    return request->upload.reading == NULL || !request->upload.reader->is_quick(request->upload.reading);
}

/* Calls `begin` on the connection's thread, because MHD frees the Content-Type if the connection ends. */
bool mm_input_decode_on_pool(struct mm_request *request, struct mm_input *input) {
    if (!decodes_long(request, input))
        return false;
    if (request->upload.reading == NULL)
        request->upload.reading = begin(request, input, request->upload.body_bytes);
    if (request->upload.reading == NULL)
        return false;
    mm_request_leave_to_pool(request, MM_DECODING);
    return true;
}

enum mm_status mm_input_decode(struct mm_request *request, struct mm_input *input, struct mm_error *error) {
    const struct mm_body_reader *reader = input->decoder->reader;
    const struct mm_body body = {.data = request->upload.body.data, .bytes = request->upload.body_bytes};
    if (reader == NULL) {
        input->decoder->decode(input->operands, &body);
        return MM_OK;
    }
    if (request->upload.reading == NULL)
        request->upload.reading = begin(request, input, body.bytes);
    if (request->upload.reading == NULL)
        return mm_fail(error, MM_INTERNAL, "memory ran out while the body was read");
    const enum mm_status status = reader->finish(request->upload.reading, input->operands, &body, error);
    if (status != MM_BUSY)
        request->upload.reading = NULL;
    return status;
}
