/* Reads the JSON of an infer request, without the elements. Each object has a table of parameters, in which
 * members of the object have the place MM_IN_JSON, and members of its `parameters` MM_IN_OBJECT. Ignores
 * unknown members, because KServe sends some, but not unknown parameters. A null counts as absent. */
#include "api/oip/oip.h"

#include <float.h>
#include <string.h>

static enum mm_status fail_value(const struct mm_parameter *row, const char *expected,
                                 const struct mm_value *given, struct mm_error *error) {
    return mm_value_fail(row->name, "is", expected, given, error);
}

/* What the structs of the request, of an input and of an output begin with. */
struct object {
    struct mm_parameters parameters;
    struct mm_oip_head *head;
};

/* Reads the next event, and its value, name or opening bracket. Fails if the JSON is malformed. */
static enum mm_status next(struct mm_oip_head *head, enum mm_json_event *event, struct mm_value *value,
                           char buffer[MM_JSON_TEXT_MAX], struct mm_error *error) {
    *event = mm_json_next(&head->reader, head->json.start, head->json.length, true);
    if (*event == MM_JSON_FAULT)
        return mm_json_fail(&head->reader, head->json.start, MM_OIP_EXAMPLE, error);
    *value = mm_json_value(head->json.start, head->reader.token, buffer);
    return MM_OK;
}

/* Reads the members of an object whose opening bracket was read, and its closing bracket. */
static enum mm_status read_object(struct mm_oip_head *head, const struct mm_parameter *row,
                                  const struct mm_value *given, struct mm_parameters *values,
                                  enum mm_parameter_place place, struct mm_error *error) {
    const unsigned depth = head->reader.depth;
    char name[MM_JSON_TEXT_MAX], buffer[MM_JSON_TEXT_MAX];
    struct mm_value key, value;
    enum mm_json_event event;
    if (given->kind != MM_VALUE_OBJECT)
        return fail_value(row, "an object", given, error);
    enum mm_status status = next(head, &event, &key, name, error);
    while (status == MM_OK && event == MM_JSON_NAME) {
        const struct mm_parameter *known = mm_parameter_find(values, place, name, key.length);
        const bool is_ignored = place == MM_IN_JSON ? known == NULL : strncmp(name, "sequence_", 9) == 0;
        head->reader.joins_arrays = known != NULL; /* so nested arrays of unknown members are read once */
        status = next(head, &event, &value, buffer, error);
        if (known != NULL && (values->named >> (known - values->table->rows) & 1) != 0)
            return mm_fail_field(error, MM_BAD_REQUEST, name, "%s is given twice; give it once", name);
        if (status == MM_OK && value.kind != MM_VALUE_NULL && !is_ignored)
            status = mm_parameter_set_value(values, place, name, key.length, &value, NULL, error);
        while (status == MM_OK && head->reader.depth > depth)
            status = next(head, &event, &value, buffer, error);
        if (status == MM_OK)
            status = next(head, &event, &key, name, error);
    }
    return status;
}

/* Reads the member `parameters` of an input or an output. */
static enum mm_status read_parameters(struct mm_parameters *values, const struct mm_parameter *row,
                                      const struct mm_value *given, struct mm_error *error) {
    return read_object(((struct object *)values)->head, row, given, values, MM_IN_OBJECT, error);
}

static enum mm_status read_binary_size(struct mm_parameters *values, const struct mm_parameter *row,
                                       const struct mm_value *given, struct mm_error *error) {
    struct mm_oip_input *input = (struct mm_oip_input *)values;
    input->is_binary = true;
    return mm_value_whole(given, 0, DBL_MAX, &input->binary_bytes)
               ? MM_OK
               : fail_value(row, "a whole number of bytes", given, error);
}

/* Copies a string to the row's member. */
static enum mm_status read_text(struct mm_parameters *values, const struct mm_parameter *row,
                                const struct mm_value *given, struct mm_error *error) {
    if (given->kind != MM_VALUE_TEXT || given->length >= row->bytes)
        return fail_value(row, "a string of at most 256 bytes", given, error);
    memcpy((char *)values + row->offset, given->text, given->length + 1);
    return MM_OK;
}

static enum mm_status read_shape(struct mm_parameters *values, const struct mm_parameter *row,
                                 const struct mm_value *given, struct mm_error *error) {
    struct mm_shape *shape = &((struct mm_oip_input *)values)->shape;
    struct mm_json_reader reader = mm_json_within(given);
    enum mm_json_event event = MM_JSON_CLOSE;
    char buffer[MM_JSON_TEXT_MAX];
    bool is_right = given->kind == MM_VALUE_ARRAY;
    while (is_right && given->length > 0 &&
           (event = mm_json_next(&reader, given->text, given->length, true)) == MM_JSON_VALUE) {
        const struct mm_value value = mm_json_value(given->text, reader.token, buffer);
        is_right =
            shape->rank < MM_RANK_MAX && mm_value_whole(&value, 0, DBL_MAX, &shape->dims[shape->rank++]);
    }
    return is_right && event == MM_JSON_CLOSE
               ? MM_OK
               : fail_value(row, "an array of at most 8 whole numbers", given, error);
}

static enum mm_status read_datatype(struct mm_parameters *values, const struct mm_parameter *row,
                                    const struct mm_value *given, struct mm_error *error) {
    struct mm_oip_input *input = (struct mm_oip_input *)values;
    const struct mm_slice name = {given->text, given->kind == MM_VALUE_TEXT ? given->length : 0};
    return mm_oip_find_datatype(name, &input->dtype)
               ? MM_OK
               : mm_fail_field(error, MM_UNSUPPORTED, row->name,
                               "datatype is '%.*s', but must be FP32, FP64, FP16, BF16, INT8, UINT8, BOOL, "
                               "INT32 or INT64",
                               name.length > 40 ? 40 : (int)name.length, name.start);
}

static enum mm_status read_data(struct mm_parameters *values, const struct mm_parameter *row,
                                const struct mm_value *given, struct mm_error *error) {
    if (given->kind != MM_VALUE_ARRAY || given->length == 1) /* only the opening bracket of an array */
        return fail_value(row, "an array of numbers, NaN, Infinity and -Infinity", given, error);
    ((struct mm_oip_input *)values)->data = (struct mm_slice){given->text, given->length};
    return MM_OK;
}

#define MEMBER(name, type, member, read) MM_PARAMETER_READ(name, OWN, MM_IN_JSON, struct type, member, read)
#define PARAMETER(name, type, member, read)                                                                  \
    MM_PARAMETER_READ(name, OWN, MM_IN_OBJECT, struct type, member, read)

static const struct mm_parameter input_rows[] = {
    MEMBER("name", mm_oip_input, name, read_text),
    MEMBER("shape", mm_oip_input, shape, read_shape),
    MEMBER("datatype", mm_oip_input, dtype, read_datatype),
    MEMBER("data", mm_oip_input, data, read_data),
    MEMBER("parameters", mm_oip_input, parameters, read_parameters),
    PARAMETER("binary_data_size", mm_oip_input, binary_bytes, read_binary_size),
    PARAMETER("from", mm_oip_input, from, read_text),
};
enum { NEEDED_INPUT_ROWS = 3 };

struct output {
    struct object object; /* must be first */
    char name[MM_JSON_TEXT_MAX];
    bool is_binary;
};

static const struct mm_parameter output_rows[] = {
    MEMBER("name", output, name, read_text),
    MEMBER("parameters", output, object, read_parameters),
    MM_PARAMETER("binary_data", FLAG, MM_IN_OBJECT, struct output, is_binary),
};

static const struct mm_parameter_table input_table = MM_PARAMETER_TABLE(input_rows),
                                       output_table = MM_PARAMETER_TABLE(output_rows);

static enum mm_status read_input(struct mm_oip_head *head, const struct mm_parameter *row,
                                 const struct mm_value *given, struct mm_error *error) {
    if (head->count == MM_OPERANDS_MAX)
        return mm_fail_field(error, MM_BAD_REQUEST, row->name, "there are more than %d inputs",
                             (int)head->count);
    struct mm_oip_input *input = &head->inputs[head->count++];
    memset(input, 0, sizeof *input);
    input->parameters.table = &input_table;
    input->head = head;
    const enum mm_status status = read_object(head, row, given, &input->parameters, MM_IN_JSON, error);
    for (unsigned index = 0; index < NEEDED_INPUT_ROWS && status == MM_OK; index++)
        if ((input->parameters.named >> index & 1) == 0)
            return mm_fail_field(error, MM_BAD_REQUEST, input_rows[index].name,
                                 "an input has no %s; each needs name, shape and datatype",
                                 input_rows[index].name);
    while (status == MM_OK && strcmp(input->name, mm_oip_inputs[input->operand]) != 0)
        if (++input->operand == MM_OPERANDS_MAX)
            return mm_fail_field(error, MM_BAD_REQUEST, row->name,
                                 "an input is '%.64s', but must be A, B, ADDEND or BIAS", input->name);
    if (status == MM_OK && (head->seen & 1u << input->operand) != 0)
        return mm_fail_field(error, MM_BAD_REQUEST, input->name, "the input %s is given twice; give it once",
                             input->name);
    head->seen |= 1u << input->operand;
    return status;
}

static enum mm_status read_output(struct mm_oip_head *head, const struct mm_parameter *row,
                                  const struct mm_value *given, struct mm_error *error) {
    struct output output = {.object = {.parameters.table = &output_table, .head = head}};
    const enum mm_status status = read_object(head, row, given, &output.object.parameters, MM_IN_JSON, error);
    if (status == MM_OK && strcmp(output.name, "C") != 0)
        return mm_fail_field(error, MM_BAD_REQUEST, row->name,
                             "an output is '%.64s', but the only output is C", output.name);
    head->has_format = output.object.parameters.given != 0;
    head->call->is_binary = output.is_binary;
    return status;
}

/* Reads the inputs or the outputs. */
static enum mm_status read_list(struct mm_parameters *values, const struct mm_parameter *row,
                                const struct mm_value *given, struct mm_error *error) {
    struct mm_oip_head *head = (struct mm_oip_head *)values;
    char buffer[MM_JSON_TEXT_MAX];
    struct mm_value value;
    enum mm_json_event event = MM_JSON_OPEN;
    enum mm_status status = MM_OK;
    if (given->kind != MM_VALUE_ARRAY)
        return fail_value(row, "an array of objects", given, error);
    if (given->length != 1) /* a whole array, which has no objects */
        return given->length == 0 ? MM_OK : fail_value(row, "an array of objects", given, error);
    while ((status = next(head, &event, &value, buffer, error)) == MM_OK && event != MM_JSON_CLOSE) {
        status = (row->name[0] == 'i' ? read_input : read_output)(head, row, &value, error);
        if (status != MM_OK)
            break;
    }
    return status;
}

static enum mm_status read_request_parameters(struct mm_parameters *values, const struct mm_parameter *row,
                                              const struct mm_value *given, struct mm_error *error) {
    struct mm_oip_head *head = (struct mm_oip_head *)values;
    return read_object(head, row, given, &head->call->call.operands.parameters, MM_IN_OBJECT, error);
}

static const struct mm_parameter rows[] = {
    MEMBER("id", mm_oip_head, id, read_text),
    MEMBER("parameters", mm_oip_head, call, read_request_parameters),
    MEMBER("inputs", mm_oip_head, inputs, read_list),
    MEMBER("outputs", mm_oip_head, has_format, read_list),
};
static const struct mm_parameter_table table = MM_PARAMETER_TABLE(rows);

enum mm_status mm_oip_read_head(struct mm_slice json, struct mm_oip_call *call, struct mm_oip_head *head,
                                struct mm_error *error) {
    char buffer[MM_JSON_TEXT_MAX];
    struct mm_value value;
    enum mm_json_event event;
    size_t bytes = json.length;
    head->parameters = (struct mm_parameters){.table = &table};
    head->json = json;
    head->reader = (struct mm_json_reader){0};
    head->call = call;
    head->id[0] = '\0';
    head->count = head->seen = 0;
    head->has_format = false;
    enum mm_status status = next(head, &event, &value, buffer, error);
    if (status == MM_OK)
        status = read_object(head, rows, &value, &head->parameters, MM_IN_JSON, error);
    if (status == MM_OK)
        status = next(head, &event, &value, buffer, error); /* fails if anything follows */
    strcpy(call->id, head->id);
    call->is_binary = head->has_format ? call->is_binary : call->binary_default;
    for (unsigned index = 0; index < head->count; index++)
        bytes -= head->inputs[index].data.length;
    if (status != MM_OK || bytes <= MM_OIP_HEAD_MAX)
        return status;
    return mm_fail_limit(error, "", MM_OIP_HEAD_MAX,
                         "the JSON without the elements has %zu bytes, but the limit is %d", bytes,
                         MM_OIP_HEAD_MAX);
}
