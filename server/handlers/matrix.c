/* GET, HEAD and DELETE /v1/matrices/NAME, and GET /v1/matrices. matrix_put.c has PUT. */
#include "server/handlers/matrix.h"

#include "api/describe/stored.h"
#include "api/result.h"
#include "api/slice.h"
#include "server/handlers/input.h"
#include "server/http/condition.h"
#include "server/http/reply.h"
#include "server/http/routes.h"

#include <stdlib.h>
#include <string.h>

const char *mm_matrix_name(const struct mm_request *request) {
    return request->path + strlen("/v1/matrices/");
}

enum mm_status mm_matrix_check_name(struct mm_request *request, enum mm_store_op op) {
    request->record.store_op = op;
    if (mm_store_is_name(mm_matrix_name(request)))
        return MM_OK;
    return mm_fail_field(
        &request->error, MM_BAD_REQUEST, "name",
        "the name in the path is '%.200s', but must be 1 to %d letters, digits, dots, dashes "
        "and underscores, and neither . nor ..",
        mm_matrix_name(request), MM_STORE_NAME_MAX);
}

static enum mm_status fail_header(struct mm_request *request, const char *header) {
    return mm_fail_field(
        &request->error, MM_BAD_REQUEST, header,
        "%s cannot be read: it must be * alone, or ETags in quotes with commas between them, "
        "and may have %d bytes",
        header, MM_ACCEPT_BYTES - 1);
}

static enum mm_status fail_condition(struct mm_request *request, const char *name,
                                     enum mm_condition condition, const char *etag) {
    if (condition == MM_CONDITION_BAD_MATCH)
        return fail_header(request, MHD_HTTP_HEADER_IF_MATCH);
    if (condition == MM_CONDITION_BAD_NONE_MATCH)
        return fail_header(request, MHD_HTTP_HEADER_IF_NONE_MATCH);
    if (condition == MM_CONDITION_MATCHED)
        return mm_fail_field(&request->error, MM_PRECONDITION_FAILED, MHD_HTTP_HEADER_IF_NONE_MATCH,
                             "'%s' is stored already, with the ETag %s, which If-None-Match rules out", name,
                             etag);
    if (etag == NULL)
        return mm_fail_field(&request->error, MM_PRECONDITION_FAILED, MHD_HTTP_HEADER_IF_MATCH,
                             "there is no matrix '%s', but If-Match wants one", name);
    return mm_fail_field(&request->error, MM_PRECONDITION_FAILED, MHD_HTTP_HEADER_IF_MATCH,
                         "'%s' has the ETag %s, which If-Match does not list", name, etag);
}

enum mm_status mm_matrix_check_condition(struct mm_request *request, const char *name,
                                         char etag[MM_ETAG_MAX + 1]) {
    struct mm_store *store = request->server->store;
    struct mm_stored *value = mm_store_acquire(store, request->space, name, false, mm_clock_ns());
    strcpy(etag, value == NULL ? "" : value->etag);
    mm_store_release(store, value);
    const char *tag = etag[0] == '\0' ? NULL : etag;
    const enum mm_condition condition = mm_condition_decide(request, tag);
    return condition == MM_CONDITION_HOLDS ? MM_OK : fail_condition(request, name, condition, tag);
}

/* State of a GET request. request->value is the stored matrix, until it is sent or encoded. */
struct get {
    struct mm_parameters parameters; /* must be first: the offsets in get_rows begin here */
    struct mm_selection selection;   /* the wanted part of the value, and the figures (such as the sum) */
    bool is_known;                   /* the client already has the value, by its If-None-Match */
    const struct mm_codec *encoder;
    struct mm_shape shape;   /* shape of the wanted part */
    struct mm_window part;   /* position of the wanted part in the value */
    struct mm_matrix matrix; /* elements of the wanted part, inside the value or inside `copy` */
    struct mm_buffer copy;   /* copy of the part, if the part has gaps or is only on a device */
    struct mm_reduction reduction;
    struct mm_reduction_progress reduced; /* how much of the part `reduction` covers */
    bool is_encoded;
    size_t text_bytes; /* maximal length of the reply's text; 0: the reply is binary */
    struct mm_reply_body reply;
};

static const struct mm_parameter get_rows[] = {
    MM_PARAMETER("rows", RANGE, MM_IN_QUERY, struct get, selection.rows),
    MM_PARAMETER("cols", RANGE, MM_IN_QUERY, struct get, selection.cols),
    MM_PARAMETER("reduce", FIGURES, MM_IN_QUERY, struct get, selection.figures),
};

static const struct mm_parameter_table get_table = MM_PARAMETER_TABLE(get_rows);

static bool reduces(const struct get *get) {
    return get->selection.figures != 0;
}

static void acquire_value(struct mm_request *request) {
    struct mm_stored *value = mm_store_acquire(request->server->store, request->space,
                                               mm_matrix_name(request), true, mm_clock_ns());
    __atomic_store_n(&request->value, value, __ATOMIC_RELEASE);
}

static enum mm_status find_value(struct mm_request *request) {
    struct get *get = request->own;
    get->parameters.table = &get_table;
    if (mm_matrix_check_name(request, MM_STORE_GET) != MM_OK ||
        mm_input_read_query(request, &get->parameters) != MM_OK)
        return request->error.status;
    if (request->value == NULL) /* not NULL if the request has waited for memory */
        acquire_value(request);
    if (request->value == NULL)
        return mm_store_fail_missing("name", mm_matrix_name(request), &request->error);
    if (mm_device_copy_check(request->value->only_copy, &request->error) != MM_OK)
        return request->error.status;
    const enum mm_condition condition = mm_condition_decide(request, request->value->etag);
    get->is_known = condition == MM_CONDITION_MATCHED;
    if (condition == MM_CONDITION_HOLDS || get->is_known)
        return MM_OK;
    return fail_condition(request, mm_matrix_name(request), condition, request->value->etag);
}

/* Sets text_bytes to the maximal length of the text, or fails with MM_TOO_LARGE if that exceeds SIZE_MAX. */
static enum mm_status find_text(struct get *get, struct mm_error *error) {
    const struct mm_codec *encoder = get->encoder;
    get->text_bytes = encoder->facts_bytes_max;
    if (encoder->reply_bytes_max == NULL || reduces(get) ||
        encoder->reply_bytes_max(&get->shape, get->matrix.dtype, &get->text_bytes))
        return MM_OK;
    return mm_fail(error, MM_TOO_LARGE, "the matrix is too large as %s; ask for %s by Accept",
                   encoder->reply_type, mm_npy_codec.reply_type);
}

static enum mm_status choose_encoder(struct get *get, const char *accept, struct mm_error *error) {
    if (!reduces(get))
        return mm_codec_for_reply(accept, &mm_npy_codec, &get->encoder, error);
    get->encoder = mm_codec_for_facts(accept);
    return get->encoder == NULL ? mm_codec_fail_figures(error) : MM_OK;
}

static enum mm_status choose_reply(struct mm_request *request) {
    struct get *get = request->own;
    struct mm_error *error = &request->error;
    char text[MM_ACCEPT_BYTES];
    const char *accept = mm_request_list(request, MM_HEADER_ACCEPT, text, NULL);
    get->shape = request->value->shape;
    if (mm_selection_cut(&get->selection, &get->shape, &get->part, error) != MM_OK ||
        choose_encoder(get, accept, error) != MM_OK ||
        mm_codec_check_reply(get->encoder, &get->shape, error) != MM_OK)
        return error->status;
    get->matrix = mm_shape_view(&get->shape, false, request->value->dtype);
    get->reduction = mm_reduction_none();
    return find_text(get, error);
}

static bool is_bodiless(const struct mm_request *request) {
    const struct get *get = request->own;
    return get->is_known || strcmp(request->record.method, MHD_HTTP_METHOD_HEAD) == 0;
}

static bool is_long(const struct get *get) {
    return get->text_bytes > MM_LONG_BYTES || (reduces(get) && mm_matrix_bytes(&get->matrix) > MM_LONG_BYTES);
}

/* Whether to skip encoding for a reply without a body (to HEAD, or a 304). A short text is still encoded, to
 * learn its length, because MHD closes the connection if it does not know the length. */
static bool leaves_body_out(const struct mm_request *request) {
    return is_bodiless(request) && is_long(request->own);
}

/* Adds one slice of the matrix to the figures. Returns true if another slice follows. */
static bool reduce(struct mm_request *request) {
    struct get *get = request->own;
    const struct mm_stored *value = request->value;
    const struct mm_window *part = &get->part;
    const struct mm_window copied = {.count = part->count,
                                     .all_rows = part->rows,
                                     .all_cols = part->cols,
                                     .rows = part->rows,
                                     .cols = part->cols};
    const bool is_copied = get->copy.data != NULL;
    return mm_reduce_part(&get->reduction, &get->reduced, is_copied ? &copied : part, value->dtype,
                          is_copied ? get->copy.data : value->data, MM_REDUCE_SLICE);
}

_Static_assert((size_t)MM_LONG_BYTES <= MM_REDUCE_SLICE, "a slice has all figures of a short one");

/* Encodes the reply, on the connection's thread or on the worker pool. If the figures (such as the sum) take
 * long, each call processes only one slice of the matrix. So the worker pool can serve other requests in
 * between. The last call sets get->is_encoded. */
static enum mm_status encode(struct mm_request *request, enum mm_request_state state,
                             struct mm_error *error) {
    struct get *get = request->own;
    struct mm_buffer view = {.data = get->matrix.data};
    const bool is_copied = get->copy.data != NULL;
    const struct mm_answer answer = {.matrix = get->matrix,
                                     .shape = &get->shape,
                                     .has_matrix = !reduces(get),
                                     .figures = get->selection.figures,
                                     .reduction = &get->reduction,
                                     .result = is_copied ? &get->copy : &view};
    if (is_copied && get->reduced.elements == 0 &&
        mm_stored_read(request->value, &get->part, get->copy.data, error) != MM_OK)
        return error->status;
    if (reduces(get) && reduce(request))
        return MM_OK;
    get->is_encoded = true;
    get->encoder->encode(&answer, &get->reply);
    if (get->encoder->finish != NULL)
        get->encoder->finish(&answer, &get->reply);
    return MM_OK;
}

/* Returns the size of the copy of the part, or 0. A copy is needed if the value is only on a device. If the
 * reply has the elements, it is also needed for a part with gaps. */
static size_t copy_bytes(const struct mm_request *request) {
    const struct get *get = request->own;
    const bool is_read = !is_bodiless(request) || get->encoder->reply_bytes_max != NULL;
    const bool has_gaps = !reduces(get) && !mm_window_is_dense(&get->part);
    return is_read && (has_gaps || request->value->only_copy != NULL) ? mm_matrix_bytes(&get->matrix) : 0;
}

static enum mm_status acquire_reply(struct mm_request *request) {
    struct get *get = request->own;
    struct mm_reservation *memory = &request->memory;
    struct mm_error *error = &request->error;
    const size_t bytes = copy_bytes(request);
    if (mm_reservation_ensure(memory, bytes + get->text_bytes, error) != MM_OK ||
        (bytes > 0 && mm_reservation_acquire(memory, bytes, &get->copy, error) != MM_OK) ||
        (get->text_bytes > 0 &&
         mm_reservation_acquire(memory, get->text_bytes, &get->reply.buffer, error) != MM_OK))
        return error->status;
    get->matrix.data = get->copy.data;
    if (bytes == 0 && request->value->only_copy == NULL && mm_window_elements(&get->part) > 0)
        get->matrix.data = mm_window_item(&get->part, get->matrix.dtype, request->value->data, 0).data;
    return MM_OK;
}

enum mm_status mm_matrix_get(struct mm_request *request) {
    const struct get *get = request->own;
    if (find_value(request) != MM_OK || choose_reply(request) != MM_OK)
        return request->error.status;
    if (leaves_body_out(request))
        return mm_matrix_get_answer(request);
    if (acquire_reply(request) != MM_OK)
        return request->error.status;
    const bool may_wait = get->copy.data != NULL && request->value->only_copy != NULL; /* for the device */
    if (may_wait || is_long(get) || get->copy.bytes > MM_LONG_BYTES) {
        mm_request_leave_to_pool(request, MM_ENCODING);
        return MM_OK;
    }
    const enum mm_status status = encode(request, MM_ENCODING, &request->error);
    return status == MM_OK ? mm_matrix_get_answer(request) : status;
}

static enum mm_request_state next(struct mm_request *request, enum mm_request_state ended) {
    const struct get *get = request->own;
    return get->is_encoded ? MM_ANSWERING : MM_ENCODING;
}

enum mm_status mm_matrix_get_answer(struct mm_request *request) {
    struct get *get = request->own;
    struct mm_reply_body *body = leaves_body_out(request) ? NULL : &get->reply;
    return mm_reply_value(request, get->is_known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, body, &get->shape,
                          get->encoder->reply_type);
}

static void release(struct mm_request *request) {
    struct get *get = request->own;
    if (request->value != NULL && mm_stored_has(request->value, get->reply.buffer.data))
        get->reply.buffer = (struct mm_buffer){0}; /* the value owns this memory */
    mm_reservation_free(&request->memory, &get->copy);
    mm_reservation_free(&request->memory, &get->reply.buffer);
}

const struct mm_route_state mm_matrix_get_state = {
    .bytes = sizeof(struct get), .work = encode, .next = next, .release = release};

/* If another request replaces the value between the check and the removal, checks again. */
enum mm_status mm_matrix_delete(struct mm_request *request) {
    const char *name = mm_matrix_name(request);
    char etag[MM_ETAG_MAX + 1];
    const char *const expected = mm_condition_is_given(request) ? etag : NULL;
    struct mm_parameters query = {.table = &mm_parameters_none};
    enum mm_status status = mm_matrix_check_name(request, MM_STORE_DELETE);
    if (status == MM_OK)
        status = mm_input_read_query(request, &query);
    while (status == MM_OK) {
        status = mm_matrix_check_condition(request, name, etag);
        if (etag[0] == '\0') /* a missing matrix has no conditions (RFC 9110, 13.2.1) */
            status = mm_store_fail_missing("name", name, &request->error);
        if (status == MM_OK &&
            mm_store_remove(request->server->store, request->space, name, expected, mm_clock_ns()))
            return mm_reply_no_content(request);
    }
    return status;
}

enum { LIST_MAX = 1000 };

struct page {
    struct mm_parameters parameters; /* must be first: the offsets in page_rows begin here */
    char after[MM_STORE_NAME_MAX + 1];
    uint64_t limit;
};

static const struct mm_parameter page_rows[] = {
    MM_PARAMETER("limit", WHOLE, MM_IN_QUERY, struct page, limit),
    MM_PARAMETER("after", MATRIX, MM_IN_QUERY, struct page, after),
};

static const struct mm_parameter_table page_table = MM_PARAMETER_TABLE(page_rows);

static enum mm_status reply_page(struct mm_request *request, const struct page *page,
                                 struct mm_stored **values) {
    struct mm_store *store = request->server->store;
    const size_t count =
        mm_store_list(store, request->space, page->after, values, page->limit + 1, mm_clock_ns());
    const bool has_more = count > page->limit;
    const struct mm_store_usage usage = mm_store_usage(store, request->space);
    size_t length = 0;
    char *text = mm_stored_list_json(values, has_more ? page->limit : count, has_more, &usage,
                                     request->server->epoch_ns, &length);
    for (size_t index = 0; index < count; index++)
        mm_store_release(store, values[index]);
    return mm_reply_long_text(request, text, length, mm_json_codec.reply_type);
}

enum mm_status mm_matrix_list(struct mm_request *request) {
    struct page page = {.parameters.table = &page_table, .limit = LIST_MAX};
    request->record.store_op = MM_STORE_LIST;
    if (mm_input_read_query(request, &page.parameters) != MM_OK)
        return request->error.status;
    if (page.limit > LIST_MAX)
        return mm_fail_field(&request->error, MM_BAD_REQUEST, "limit",
                             "limit is %zu, but must be a whole number from 1 to %d", (size_t)page.limit,
                             LIST_MAX);
    struct mm_stored **values = calloc(page.limit + 1, sizeof(*values));
    if (values == NULL)
        return mm_fail(&request->error, MM_INTERNAL, "the system has no memory for the list");
    const enum mm_status status = reply_page(request, &page, values);
    free(values);
    return status;
}
