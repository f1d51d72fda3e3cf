/* Turns the body of an infer request into operands. Binary data stay where they are in the body. Elements in
 * JSON are read into one block of memory, once the whole body is there and all sizes are known. */
#include "api/element.h"
#include "api/oip/oip.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Reading JSON of up to this length is quick enough for the connection's thread. */
enum { QUICK_BYTES = 256 << 10 };

struct reading {
    const struct mm_limits *limits;
    struct mm_reservation *memory;
    bool is_quick;
};

/* Sets the types and the sources of the operands. */
static enum mm_status set_sources(struct mm_oip_call *call, const struct mm_oip_head *head,
                                  struct mm_error *error) {
    struct mm_operands *operands = &call->call.operands;
    struct mm_parameters *parameters = &operands->parameters;
    enum mm_dtype dtype = call->model.is_typed ? call->model.dtype : MM_DTYPE_COUNT;
    enum mm_status status = MM_OK;
    for (unsigned index = 0; index <= MM_OPERAND_B; index++)
        if ((head->seen & 1u << index) == 0)
            return mm_fail_field(error, MM_BAD_REQUEST, mm_oip_inputs[index],
                                 "the input %s is missing; send inputs like " MM_OIP_EXAMPLE,
                                 mm_oip_inputs[index]);
    for (const struct mm_oip_input *input = head->inputs;
         input < head->inputs + head->count && status == MM_OK; input++) {
        struct mm_operand *operand = &operands->of[input->operand];
        const char *name = input->name;
        const size_t from_length = strlen(input->from);
        if ((input->data.start != NULL) + input->is_binary + (from_length > 0) != 1)
            return mm_fail_field(error, MM_BAD_REQUEST, name,
                                 "%s must have exactly one of data, binary_data_size and from", name);
        if (!operand->role.is_optional && dtype != MM_DTYPE_COUNT && input->dtype != dtype)
            return mm_fail_field(error, MM_BAD_REQUEST, name, "%s is %s, but must be %s as %s", name,
                                 mm_oip_datatype(input->dtype), mm_oip_datatype(dtype),
                                 call->model.is_typed ? "in the model's name" : "the other operand");
        dtype = operand->role.is_optional ? dtype : input->dtype;
        if (from_length == 0)
            continue;
        operand->shape = input->shape;
        parameters->given |= mm_parameter_bit(parameters, &operand->shape);
        status = mm_operand_set_source(operands, operand, name, (struct mm_slice){input->from, from_length},
                                       error);
    }
    strcpy(operands->dtype_name, mm_dtype_name(dtype));
    parameters->given |= mm_parameter_bit(parameters, operands->dtype_name);
    return status == MM_OK ? operands->kind->resolve(operands, error) : status;
}

/* Sets the shapes, and views without data. bytes[i] becomes the size of operand i in the request. */
static enum mm_status set_shapes(struct mm_operands *operands, const struct mm_oip_head *head,
                                 const struct mm_limits *limits, size_t bytes[MM_OPERANDS_MAX],
                                 struct mm_error *error) {
    const struct mm_shape *shapes[MM_OPERANDS_MAX] = {NULL};
    enum mm_status status = MM_OK;
    for (unsigned index = 0; index < head->count && status == MM_OK; index++) {
        const struct mm_oip_input *input = &head->inputs[index];
        const struct mm_operand *operand = &operands->of[input->operand];
        shapes[input->operand] = input->from[0] == '\0' ? &input->shape : NULL;
        if (operand->role.is_optional)
            status = mm_operand_check_type(operands, operand, input->dtype, error);
    }
    if (status == MM_OK)
        status = mm_operands_set_shapes(operands, shapes, error);
    if (status == MM_OK)
        mm_operands_view(operands);
    return status == MM_OK ? operands->kind->sizes(operands, limits, bytes, error) : status;
}

/* 16-bit floats travel only as binary data, because most clients cannot read them as JSON. */
static enum mm_status check_json(const char *name, enum mm_dtype dtype, struct mm_error *error) {
    if (dtype != MM_FLOAT16 && dtype != MM_BFLOAT16)
        return MM_OK;
    return mm_fail_field(error, MM_BAD_REQUEST, name,
                         "%s is %s, which travels only as binary data; use binary_data_size for inputs, and "
                         "binary_data for C",
                         name, mm_oip_datatype(dtype));
}

static enum mm_status fail_count(const char *name, const char *what, size_t count, struct mm_error *error) {
    return mm_fail_field(error, MM_BAD_REQUEST, name,
                         "the data of %s has %s elements than %zu, as its shape says", name, what, count);
}

/* Whether elements must be copied: they are JSON, or lie at an address that is wrong for their type. The
 * addend and the bias may lie at any address. */
static bool needs_storage(const struct mm_oip_input *input, const struct mm_operand *operand, size_t offset) {
    return input->data.start != NULL || (input->is_binary && !operand->role.is_optional &&
                                         offset % mm_dtype_bytes(operand->view.dtype) != 0);
}

/* Checks the sizes of all inputs against their shapes. *storage_bytes becomes the memory for elements that
 * must be copied. */
static enum mm_status check_sizes(const struct mm_oip_call *call, const struct mm_oip_head *head,
                                  const size_t bytes[MM_OPERANDS_MAX], size_t tail_bytes,
                                  size_t *storage_bytes, struct mm_error *error) {
    size_t offset = 0;
    for (unsigned index = 0; index < head->count; index++) {
        const struct mm_oip_input *input = &head->inputs[index];
        const struct mm_operand *operand = &call->call.operands.of[input->operand];
        const enum mm_dtype dtype = operand->view.dtype;
        const size_t size = bytes[input->operand], count = size / mm_dtype_bytes(dtype);
        const char *name = operand->role.name;
        if (input->is_binary && input->binary_bytes != size)
            return mm_fail_field(error, MM_BAD_REQUEST, name,
                                 "binary_data_size of %s is %zu, but its shape and datatype make %zu", name,
                                 input->binary_bytes, size);
        if (input->data.start != NULL && check_json(name, dtype, error) != MM_OK)
            return MM_BAD_REQUEST;
        /* Without this check, a short request could reserve much memory. */
        if (input->data.start != NULL && input->data.length / 2 < count)
            return fail_count(name, "fewer", count, error);
        if (needs_storage(input, operand, offset))
            *storage_bytes += mm_size_round_up(size, MM_OIP_ALIGNMENT);
        offset += input->is_binary ? size : 0;
    }
    if (offset == tail_bytes)
        return MM_OK;
    return mm_fail(error, MM_BAD_REQUEST,
                   "%zu bytes follow the JSON, but the inputs' binary_data_size make %zu%s", tail_bytes,
                   offset,
                   call->json_bytes == SIZE_MAX ? "; send the header Inference-Header-Content-Length" : "");
}

/* Reads NaN, Infinity, true or false. Returns the end of the word, or NULL. */
static const char *read_word(enum mm_dtype dtype, const char *at, const char *end, void *element) {
    static const char *const words[] = {"NaN", "Infinity", "-Infinity", "true", "false"};
    static const double values[] = {NAN, INFINITY, -INFINITY, 1, 0};
    const unsigned word_end = dtype == MM_BOOL ? 5 : mm_dtype_is_float(dtype) ? 3 : 0;
    for (unsigned index = dtype == MM_BOOL ? 3 : 0; index < word_end; index++) {
        const size_t length = strlen(words[index]);
        if ((size_t)(end - at) < length || memcmp(at, words[index], length) != 0)
            continue;
        mm_dtype_put(dtype, element, 0, values[index]);
        return at + length;
    }
    return NULL;
}

static enum mm_status fail_json(struct mm_slice json, const char *at, const char *expected,
                                struct mm_error *error) {
    struct mm_json_reader reader;
    (void)mm_json_fault(&reader, (struct mm_json_token){.at = (size_t)(at - json.start), .bytes = 1},
                        expected);
    return mm_json_fail(&reader, json.start, MM_OIP_EXAMPLE, error);
}

/* Reads the elements of an array, which may be nested in any way, as Triton allows. The last bracket closes
 * the array. */
static enum mm_status read_elements(struct mm_slice json, const struct mm_oip_input *input, size_t count,
                                    char *to, struct mm_error *error) {
    mm_number_reader *const read = mm_element(input->dtype)->read;
    const size_t element_bytes = mm_dtype_bytes(input->dtype);
    const char *at = input->data.start, *const end = at + input->data.length, *stop;
    size_t done = 0;
    uint64_t unwanted = 0;
    bool wants_item = true, is_open = false; /* is_open: an opening bracket came last */
    for (; (at = mm_json_skip_spaces(at, end)) < end; at = stop) {
        bool fits = true;
        stop = at + 1;
        if (*at == (wants_item ? '[' : ',')) {
            is_open = wants_item;
            wants_item = true;
            continue;
        }
        if (wants_item && !(is_open && *at == ']')) {
            void *element = done < count ? (void *)(to + done * element_bytes) : &unwanted;
            stop = read(at, end, element, &fits);
            stop = stop == NULL ? read_word(input->dtype, at, end, element) : stop;
            done++;
        }
        if (stop == NULL || (!wants_item && *at != ']'))
            return fail_json(json, at, wants_item ? "a number" : "',' or ']'", error);
        if (!fits)
            return mm_fail_field(error, MM_BAD_REQUEST, input->name,
                                 "element %zu of %s is %.*s, which %s cannot hold", done - 1, input->name,
                                 stop - at > 40 ? 40 : (int)(stop - at), at, mm_oip_datatype(input->dtype));
        wants_item = is_open = false;
    }
    return done == count ? MM_OK : fail_count(input->name, done < count ? "fewer" : "more", count, error);
}

/* Points the views to the elements, and reads those that are JSON. `tail` are the binary data. */
static enum mm_status place(struct mm_oip_call *call, const struct mm_oip_head *head, struct mm_slice json,
                            char *tail, const size_t bytes[MM_OPERANDS_MAX], struct mm_error *error) {
    struct mm_operands *operands = &call->call.operands;
    char *to = operands->storage.data;
    size_t offset = 0;
    enum mm_status status = MM_OK;
    for (unsigned index = 0; index < head->count && status == MM_OK; index++) {
        const struct mm_oip_input *input = &head->inputs[index];
        struct mm_operand *operand = &operands->of[input->operand];
        const size_t size = bytes[input->operand];
        char *from = tail + offset;
        if (size > 0 && needs_storage(input, operand, offset)) {
            operand->view.data = input->is_binary ? memcpy(to, from, size) : to;
            to += mm_size_round_up(size, MM_OIP_ALIGNMENT);
        } else if (input->is_binary) {
            operand->view.data = from;
            operands->views_body = true;
        }
        if (input->data.start != NULL)
            status =
                read_elements(json, input, size / mm_dtype_bytes(input->dtype), operand->view.data, error);
        offset += input->is_binary ? size : 0;
    }
    return status;
}

static enum mm_status decode(const struct reading *reading, struct mm_oip_call *call,
                             const struct mm_body *body, struct mm_error *error) {
    struct mm_operands *operands = &call->call.operands;
    const size_t all_bytes = body->bytes == 0 ? 0 : body->bytes - call->lead_bytes;
    const bool has_tail = call->json_bytes != SIZE_MAX;
    const struct mm_slice json = {all_bytes == 0 ? "" : (const char *)body->data + call->lead_bytes,
                                  has_tail ? call->json_bytes : all_bytes};
    struct mm_oip_head head;
    size_t bytes[MM_OPERANDS_MAX], storage_bytes = 0;
    if (json.length > all_bytes)
        return mm_fail(error, MM_BAD_REQUEST,
                       "Inference-Header-Content-Length is %zu, but the body has only %zu bytes", json.length,
                       all_bytes);
    if (json.length == 0)
        return mm_json_fail_empty(MM_OIP_EXAMPLE, error);
    enum mm_status status = mm_oip_read_head(json, call, &head, error);
    if (status == MM_OK)
        status = set_sources(call, &head, error);
    if (status == MM_OK)
        status = set_shapes(operands, &head, reading->limits, bytes, error);
    if (status == MM_OK)
        status = check_sizes(call, &head, bytes, all_bytes - json.length, &storage_bytes, error);
    if (status == MM_OK && !call->is_binary)
        status = check_json("C", operands->result_dtype, error);
    if (status == MM_OK && storage_bytes > 0)
        status = mm_reservation_acquire(reading->memory, storage_bytes, &operands->storage, error);
    if (status != MM_OK)
        return status;
    status = place(call, &head, json, (char *)body->data + call->lead_bytes + json.length, bytes, error);
    if (status != MM_OK)
        mm_reservation_free(reading->memory, &operands->storage);
    return status;
}

static void *begin(const struct mm_operands *into, const char *content_type, uint64_t body_bytes,
                   const struct mm_limits *limits, struct mm_reservation *memory) {
    const struct mm_oip_call *call = (const struct mm_oip_call *)into;
    struct reading *reading = malloc(sizeof *reading);
    if (reading != NULL)
        *reading = (struct reading){limits, memory, call->json_bytes <= QUICK_BYTES};
    return reading;
}

static size_t feed(void *reading, void *body, size_t body_bytes) {
    return body_bytes;
}

static bool is_quick(const void *reading) {
    return ((const struct reading *)reading)->is_quick;
}

/* Works on a copy, so after MM_BUSY the caller can try again with the endpoint's struct as it was. */
static enum mm_status finish(void *reading, struct mm_operands *into, const struct mm_body *body,
                             struct mm_error *error) {
    struct mm_oip_call call = *(const struct mm_oip_call *)into;
    const enum mm_status status = decode(reading, &call, body, error);
    if (status == MM_OK)
        *(struct mm_oip_call *)into = call;
    if (status != MM_BUSY)
        free(reading);
    return status;
}

static const struct mm_body_reader reader = {begin, feed, NULL, is_quick, finish, free};

const struct mm_codec mm_oip_codec = {
    .media_type = "application/json",
    .example = {[MM_MATMUL] = MM_OIP_EXAMPLE},
    .reader = &reader,
};
