/* PUT /v1/matrices/NAME: receives and stores a matrix. For a binary body, space in the store is reserved
 * before the body arrives. With a GPU, a large binary body is usually streamed to GPU memory as it arrives.
 * Any other body is copied there after decoding. */
#include "server/handlers/matrix.h"

#include "api/describe/stored.h"
#include "api/element.h"
#include "api/npy/npy.h"
#include "server/handlers/input.h"
#include "server/http/condition.h"
#include "server/http/upload.h"
#include "server/http/reply.h"
#include "server/http/routes.h"

#include <string.h>

struct values {
    struct mm_operands operands; /* must be first: the offsets in `rows` begin here */
    uint64_t ttl_s;
};

#define ROW(name, kind, places, member) MM_PARAMETER(name, kind, places, struct values, member)

static const struct mm_parameter rows[] = {
    ROW("a", OPERAND, MM_IN_JSON | MM_IN_FORM, operands.of[0]),
    ROW("dtype", NAME, MM_IN_ANY, operands.dtype_name),
    ROW("ttl_s", SECONDS, MM_IN_ANY, ttl_s),
    ROW("m", DIMENSION, MM_IN_QUERY, operands.dimensions[MM_DIMENSION_M]),
    ROW("n", DIMENSION, MM_IN_QUERY, operands.dimensions[MM_DIMENSION_N]),
    ROW("shape", SHAPE, MM_IN_QUERY | MM_IN_JSON, operands.of[0].shape),
};

static const struct mm_operands_kind kind = {.table = MM_PARAMETER_TABLE(rows),
                                             .bytes = sizeof(struct values),
                                             .op = MM_TRANSPOSE,
                                             .is_row_major = true,
                                             .resolve = mm_operands_resolve,
                                             .sizes = mm_operands_sizes};

struct put {
    struct values values;
    struct mm_input input; /* input.operands points to values.operands */
    struct mm_store_slot slot;
    struct mm_device_copy *only_copy; /* elements in GPU memory; NULL if host memory has them */
    bool is_past_bool;                /* a bool in the streamed body is neither 0 nor 1 */
    size_t head_bytes;                /* where the elements begin in a streamed body */
};

static struct put *put_of(const struct mm_request *request) {
    return request->own;
}

/* Chooses the decoder. Call it after reading the query, because dimensions in the query mean a raw body. */
static enum mm_status choose_decoder(struct mm_request *request, bool body_seen, char first) {
    struct put *put = put_of(request);
    const struct mm_operands *operands = &put->values.operands;
    const struct mm_parameters *parameters = &operands->parameters;
    const uint64_t dimensions = mm_parameter_bit(parameters, &operands->dimensions[MM_DIMENSION_M]) |
                                mm_parameter_bit(parameters, &operands->dimensions[MM_DIMENSION_N]) |
                                mm_parameter_bit(parameters, &operands->of[0].shape);
    return mm_codec_for_stored(request->headers[MM_HEADER_CONTENT_TYPE],
                               (parameters->named & dimensions) != 0, body_seen, first, &put->input.decoder,
                               &request->error);
}

/* Reads the query and chooses the decoder. An error of the Content-Type replaces an error of the query. */
static enum mm_status read_query(struct mm_request *request) {
    (void)mm_input_read_query(request, &put_of(request)->values.operands.parameters);
    (void)choose_decoder(request, false, 0);
    return request->error.status;
}

/* Checks the body when the decoder is known. Only raw bodies need dimensions in the query. */
static enum mm_status plan(struct mm_request *request) {
    struct put *put = put_of(request);
    if (put->input.decoder->dimensions[MM_TRANSPOSE] == NULL &&
        mm_operands_refuse_dimensions(&put->values.operands, &request->error) != MM_OK)
        return request->error.status;
    return mm_input_plan(request, &put->input, request->upload.content_length);
}

static bool is_binary(const struct put *put) {
    return put->input.decoder == &mm_raw_codec || put->input.decoder == &mm_npy_codec;
}

/* Returns how many bytes to reserve in the store before the body arrives: the length of a binary body, or 0.
 * A text, or a small body that can be a text, gets its space after the whole body has arrived. */
static size_t expected_bytes(const struct mm_request *request) {
    const struct put *put = put_of(request);
    const bool may_be_binary = put->input.decoder == NULL && !mm_upload_is_small(request);
    return is_binary(put) || may_be_binary ? request->upload.content_length : 0;
}

static bool stores_matrices(const struct mm_request *request) {
    return mm_engine_stored_bytes_max(mm_server_engine(request->server)) > 0;
}

static enum mm_status reserve(struct mm_request *request) {
    struct mm_store_slot *slot = &put_of(request)->slot;
    *slot = (struct mm_store_slot){.space = request->space,
                                   .bytes = expected_bytes(request),
                                   .arrived_bytes = &request->upload.received_bytes,
                                   .upload_bytes = request->upload.content_length,
                                   .started_ns = request->started_ns,
                                   .deadline_ns = request->deadline_ns};
    return mm_store_reserve(request->server->store, slot, mm_matrix_name(request), mm_clock_ns(),
                            &request->error);
}

enum mm_status mm_matrix_put_admit(struct mm_request *request) {
    struct put *put = put_of(request);
    char etag[MM_ETAG_MAX + 1];
    mm_operands_init(&put->values.operands, &kind);
    put->input.operands = &put->values.operands;
    if (mm_matrix_check_name(request, MM_STORE_PUT) != MM_OK || read_query(request) != MM_OK ||
        mm_matrix_check_condition(request, mm_matrix_name(request), etag) != MM_OK ||
        mm_upload_check_limit(request) != MM_OK || (put->input.decoder != NULL && plan(request) != MM_OK) ||
        (mm_server_engine(request->server) != NULL && reserve(request) != MM_OK) ||
        mm_server_takes_jobs(request->server, &request->error) != MM_OK) /* refuses if there is no engine */
        return request->error.status;
    request->memory.is_for_store = !stores_matrices(request);
    if (expected_bytes(request) > MM_UPLOAD_CHUNK_BYTES && stores_matrices(request))
        request->upload.mode = MM_UPLOAD_UNDECIDED;
    mm_input_begin_reading(request, &put->input);
    return MM_OK;
}

/* A .npy body with a header above HEAD_MAX bytes is not streamed; NumPy writes shorter headers.
 * HEAD_ALIGNMENT is the size of the largest element type. */
enum { HEAD_MAX = 4096, HEAD_ALIGNMENT = 8 };

/* Finds the elements in a body. False if the body is wrong, has gaps or is not in row-major order. */
static bool find_elements(struct mm_request *request, char *head, size_t bytes, struct mm_operands *into) {
    const struct mm_codec *decoder = put_of(request)->input.decoder;
    const struct mm_limits *limits = &request->server->limits;
    const struct mm_body body = {.data = head, .bytes = request->upload.content_length};
    struct mm_npy_header header;
    struct mm_error ignored;
    if (decoder == &mm_raw_codec) {
        decoder->decode(into, &body);
        return into->of[0].view.ld == into->of[0].view.cols || into->of[0].view.rows == 1;
    }
    if (mm_npy_read_header("a", head, bytes, &header, &ignored) != MM_OK || header.is_fortran ||
        header.bytes % HEAD_ALIGNMENT != 0) /* else the reader would move the elements */
        return false;
    void *reading = decoder->reader->begin(into, NULL, body.bytes, limits, &request->memory);
    return reading != NULL && decoder->reader->finish(reading, into, &body, &ignored) == MM_OK;
}

/* Chooses the .npy decoder if the request's head names no format and the body begins like a .npy file. */
static void choose_npy(struct mm_request *request, char first) {
    if (put_of(request)->input.decoder == NULL && first == '\x93' &&
        choose_decoder(request, true, first) == MM_OK)
        (void)plan(request);
}

/* Copies the body's first bytes to `head`: buffered bytes, then new bytes. Returns how many it copied. */
static size_t copy_head(const struct mm_request *request, const char *chunk, size_t bytes,
                        char head[HEAD_MAX]) {
    const size_t buffered = mm_size_min(request->upload.body_bytes, HEAD_MAX),
                 more = mm_size_min(bytes, HEAD_MAX - buffered);
    if (buffered > 0)
        memcpy(head, request->upload.body.data, buffered);
    memcpy(head + buffered, chunk, more);
    return buffered + more;
}

/* If a device has memory for the elements, streams the rest of the body to it. `values` was read from the
 * body's first bytes. The elements begin after head_bytes. */
static void begin_to_stream(struct mm_request *request, const struct values *values, size_t head_bytes) {
    struct put *put = put_of(request);
    const size_t bytes = mm_matrix_bytes(&values->operands.of[0].view);
    struct mm_error ignored;
    (void)mm_engine_acquire_copy(mm_server_engine(request->server), bytes, &put->only_copy, &ignored);
    if (put->only_copy == NULL)
        return;
    __atomic_store_n(&request->upload.mode, MM_UPLOAD_STREAMED, __ATOMIC_RELAXED);
    put->values = *values;
    put->values.operands.of[0].view.data = NULL; /* it pointed into the caller's array */
    put->head_bytes = head_bytes;
    if (request->upload.reading != NULL)
        request->upload.reader->cancel(request->upload.reading);
    request->upload.reading = NULL;
}

static void decide_to_stream(struct mm_request *request, const char *chunk, size_t bytes) {
    struct put *put = put_of(request);
    _Alignas(HEAD_ALIGNMENT) char head[HEAD_MAX];
    const size_t head_bytes = copy_head(request, chunk, bytes, head);
    choose_npy(request, head[0]);
    struct values values = put->values;
    const bool may_stream = request->error.status == MM_OK && is_binary(put);
    const bool is_found = may_stream && find_elements(request, head, head_bytes, &values.operands);
    if (may_stream && !is_found && head_bytes < HEAD_MAX)
        return;
    __atomic_store_n(&request->upload.mode, MM_UPLOAD_BUFFERED, __ATOMIC_RELAXED);
    const struct mm_matrix *view = &values.operands.of[0].view;
    if (is_found && mm_matrix_bytes(view) > 0)
        begin_to_stream(request, &values, (size_t)((char *)view->data - head));
}

static enum mm_status stream(struct mm_request *request) {
    struct put *put = put_of(request);
    struct mm_device_copy *copy = put->only_copy;
    const size_t head = request->upload.streamed_bytes == 0 ? put->head_bytes : 0;
    const size_t bytes = request->upload.body_bytes - head;
    const size_t offset = request->upload.streamed_bytes + head - put->head_bytes;
    char *from = (char *)request->upload.body.data + head;
    const struct mm_matrix chunk = mm_matrix_dense(put->values.operands.dtype, 1,
                                                   bytes / mm_dtype_bytes(put->values.operands.dtype), from);
    put->is_past_bool |= mm_element_is_past_bool(&chunk);
    request->upload.streamed_bytes += request->upload.body_bytes;
    request->upload.body_bytes = 0;
    return copy->write(copy, offset, from, bytes, &request->error);
}

/* Whether other requests got the reserved space. Then the upload must end, to free its device memory. */
static bool has_lost_space(const struct mm_request *request, struct mm_error *error) {
    if (!__atomic_load_n(&put_of(request)->slot.is_lost, __ATOMIC_RELAXED))
        return false;
    mm_fail(error, MM_STORE_FULL,
            "the upload missed its deadline, and its memory went to other requests; try again later");
    return true;
}

/* Bytes of the body or its buffer that are not elements: a header, other parts of a form, or spare memory. */
static size_t spare_bytes(const struct mm_request *request, size_t bytes) {
    const struct mm_operands *operands = &put_of(request)->values.operands;
    const struct mm_buffer *storage = &operands->storage;
    if (operands->views_body)
        return request->upload.body_bytes - bytes;
    return storage->block == NULL ? storage->bytes - bytes : 0;
}

/* Copies the elements to a smaller block if much of their block is unused. Otherwise stored values would use
 * more memory than the store counts. */
static enum mm_status compact(struct mm_request *request, struct mm_error *error) {
    enum { SPARE_PART = 16 };
    struct mm_operands *operands = &put_of(request)->values.operands;
    struct mm_matrix *view = &operands->of[0].view;
    struct mm_reservation *reservation = &request->memory;
    struct mm_buffer *old = operands->views_body ? &request->upload.body : &operands->storage;
    struct mm_buffer memory = {0};
    const size_t bytes = mm_matrix_bytes(view);
    reservation->is_for_store = true;
    if (bytes > 0 && spare_bytes(request, bytes) <= bytes / SPARE_PART)
        return mm_reservation_ensure(reservation, 0, error);
    if (bytes > 0 && mm_reservation_acquire(reservation, bytes, &memory, error) != MM_OK)
        return error->status;
    if (bytes > 0)
        memcpy(memory.data, view->data, bytes);
    mm_reservation_free(reservation, old);
    operands->storage = memory;
    view->data = memory.data;
    operands->views_body = false;
    return MM_OK;
}

/* Moves the elements to a GPU's memory. If there is no GPU, returns MM_OK and leaves put->only_copy NULL. */
static enum mm_status place(struct mm_request *request, struct mm_error *error) {
    struct put *put = put_of(request);
    struct mm_operands *operands = &put->values.operands;
    const size_t bytes = mm_matrix_bytes(&operands->of[0].view);
    if (bytes == 0)
        return MM_OK;
    enum mm_status status =
        mm_engine_acquire_copy(mm_server_engine(request->server), bytes, &put->only_copy, error);
    struct mm_device_copy *copy = put->only_copy;
    if (status != MM_OK || copy == NULL)
        return status;
    status = copy->write(copy, 0, operands->of[0].view.data, bytes, error);
    mm_reservation_free(&request->memory, operands->views_body ? &request->upload.body : &operands->storage);
    operands->of[0].view.data = NULL;
    return status;
}

/* Turns the complete body into a matrix in row-major order, and frees memory that the matrix does not use. */
static enum mm_status decode_matrix(struct mm_request *request, struct mm_error *error) {
    struct put *put = put_of(request);
    struct mm_operands *operands = &put->values.operands;
    struct mm_reservation *memory = &request->memory;
    if (mm_input_decode(request, &put->input, error) != MM_OK ||
        mm_operands_check_elements(operands, error) != MM_OK)
        return error->status;
    if (!operands->views_body)
        mm_reservation_free(memory, &request->upload.body);
    if (operands->storage.data != NULL)
        mm_reservation_shrink(memory, &operands->storage,
                              (size_t)((char *)operands->of[0].view.data - (char *)operands->storage.data) +
                                  mm_matrix_bytes(&operands->of[0].view));
    mm_reservation_settle(memory, operands->views_body ? &request->upload.body : &operands->storage);
    put->input.is_decoded = true;
    return MM_OK;
}

static enum mm_status decode(struct mm_request *request, enum mm_request_state state,
                             struct mm_error *error) {
    const struct put *put = put_of(request);
    if ((!put->input.is_decoded && decode_matrix(request, error) != MM_OK) || place(request, error) != MM_OK)
        return error->status;
    return put->only_copy == NULL ? compact(request, error) : MM_OK;
}

static enum mm_status store_value(struct mm_request *request, struct mm_stored **value, bool *is_new) {
    struct put *put = put_of(request);
    struct mm_operands *operands = &put->values.operands;
    struct mm_device_copy *copy = put->only_copy;
    struct mm_buffer none = {0};
    struct mm_buffer *memory = operands->views_body ? &request->upload.body : &operands->storage;
    char etag[MM_ETAG_MAX + 1];
    const struct mm_store_content content = {.shape = operands->of[0].shape,
                                             .dtype = operands->dtype,
                                             .data = copy != NULL ? NULL : operands->of[0].view.data,
                                             .memory = copy != NULL ? &none : memory,
                                             .reservation = &request->memory,
                                             .only_copy = copy,
                                             .ttl_ns = put->values.ttl_s * UINT64_C(1000000000),
                                             .expected = mm_condition_is_given(request) ? etag : NULL};
    enum mm_status status;
    do {
        request->error = (struct mm_error){0};
        status = mm_matrix_check_condition(request, mm_matrix_name(request), etag);
        if (status != MM_OK)
            return status;
        status = mm_store_put(request->server->store, &put->slot, mm_matrix_name(request), &content,
                              mm_clock_ns(), value, is_new, &request->error);
    } while (status == MM_PRECONDITION_FAILED); /* the value has changed meanwhile, so check again */
    if (status == MM_OK)
        put->only_copy = NULL;
    return status;
}

enum mm_status mm_matrix_put_answer(struct mm_request *request) {
    struct mm_store *store = request->server->store;
    struct mm_stored *value = NULL;
    bool is_new;
    size_t length = 0;
    enum mm_status status = store_value(request, &value, &is_new);
    mm_upload_drop(request);
    if (status != MM_OK)
        return status;
    char *text = mm_stored_json(value, request->server->epoch_ns, &length);
    status = mm_reply_stored(request, is_new ? MHD_HTTP_CREATED : MHD_HTTP_OK, text, length, value->etag);
    mm_store_release(store, value);
    return status;
}

enum mm_status mm_matrix_put_complete(struct mm_request *request) {
    struct put *put = put_of(request);
    if (request->upload.mode == MM_UPLOAD_STREAMED) {
        if (stream(request) == MM_OK && put->is_past_bool)
            mm_operand_fail_bool(&put->values.operands.of[0], &request->error);
        return request->error.status == MM_OK ? mm_matrix_put_answer(request) : request->error.status;
    }
    if (put->input.decoder == NULL &&
        (choose_decoder(request, true, mm_request_first_character(request)) != MM_OK ||
         plan(request) != MM_OK))
        return request->error.status;
    if (mm_input_decode_on_pool(request, &put->input))
        return MM_OK;
    const enum mm_status status = decode(request, MM_DECODING, &request->error);
    return status == MM_OK ? mm_matrix_put_answer(request) : status;
}

static void drop_memory(struct mm_request *request) {
    struct put *put = put_of(request);
    if (put->slot.is_reserved)
        mm_store_unreserve(request->server->store, &put->slot);
    mm_operands_release(&put->values.operands, &request->memory);
    if (put->only_copy != NULL)
        put->only_copy->release(put->only_copy);
    put->only_copy = NULL;
}

const struct mm_route_state mm_matrix_put_state = {.bytes = sizeof(struct put),
                                                   .work = decode,
                                                   .decide_to_stream = decide_to_stream,
                                                   .stream = stream,
                                                   .has_lost_space = has_lost_space,
                                                   .drop_memory = drop_memory,
                                                   .release = drop_memory};
