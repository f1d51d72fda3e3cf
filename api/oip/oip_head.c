/* Reads the JSON of an infer request, without the elements. Ignores unknown members, because KServe sends
 * some, but not unknown parameters. A member whose value is null counts as absent. */
#include "api/oip/oip.h"

#include <math.h>
#include <string.h>

/* The state of reading one text. After a failure, `status` stays, and next() returns MM_JSON_FAULT. */
struct scan {
    struct mm_slice json;
    struct mm_json_reader reader;
    struct mm_oip_call *call;
    struct mm_oip_head *head;
    struct mm_error *error;
    enum mm_status status;
    enum mm_json_event event;    /* the latest event; MM_JSON_VALUE or MM_JSON_OPEN at a member */
    char name[MM_JSON_TEXT_MAX]; /* of the latest member */
    size_t data_bytes;           /* bytes of elements as JSON */
    bool has_format;             /* the output says whether it is binary */
};

static enum mm_json_event next(struct scan *scan) {
    scan->event = scan->status != MM_OK
                      ? MM_JSON_FAULT
                      : mm_json_next(&scan->reader, scan->json.start, scan->json.length, true);
    if (scan->event == MM_JSON_FAULT && scan->status == MM_OK)
        scan->status = mm_json_fail(&scan->reader, scan->json.start, MM_OIP_EXAMPLE, scan->error);
    return scan->event;
}

enum mm_status mm_oip_fail_json(struct mm_slice json, const char *at, const char *expected,
                                struct mm_error *error) {
    struct mm_json_reader reader;
    const size_t offset = (size_t)(at - json.start);
    (void)mm_json_fault(&reader, (struct mm_json_token){.at = offset, .bytes = offset < json.length},
                        expected);
    return mm_json_fail(&reader, json.start, MM_OIP_EXAMPLE, error);
}

static struct mm_value value_of(const struct scan *scan, char buffer[MM_JSON_TEXT_MAX]) {
    return mm_json_value(scan->json.start, scan->reader.token, buffer);
}

/* Fails because the current value is not what it must be. */
static void fail_value(struct scan *scan, const char *expected) {
    char buffer[MM_JSON_TEXT_MAX], name[MM_JSON_TEXT_MAX];
    const struct mm_value value = value_of(scan, buffer);
    strcpy(name, scan->name);
    if (scan->status == MM_OK)
        scan->status = mm_value_fail(name, "is", expected, &value, scan->error);
}

/* Reads the next member's name and the beginning of its value. False at the object's end. `seen` is the set
 * of known members so far; *member becomes the member's index among the `count` known names, or `count`. */
static bool next_member(struct scan *scan, const char *const *names, unsigned count, unsigned *seen,
                        unsigned *member) {
    while (next(scan) == MM_JSON_NAME) {
        const struct mm_json_token token = scan->reader.token;
        (void)value_of(scan, scan->name);
        *member = 0;
        while (*member < count && strcmp(scan->name, names[*member]) != 0)
            ++*member;
        const unsigned bit = *member < count ? 1u << *member : 0;
        if ((*seen & bit) != 0)
            scan->status = mm_oip_fail_json(scan->json, scan->json.start + token.at,
                                            "a name that was not given before", scan->error);
        *seen |= bit;
        if (next(scan) == MM_JSON_FAULT)
            return false;
        if (scan->event == MM_JSON_OPEN || scan->reader.token.kind != MM_VALUE_NULL)
            return true;
    }
    return false;
}

/* Skips the rest of the current value. */
static void skip(struct scan *scan) {
    const unsigned depth = scan->reader.depth;
    if (scan->event == MM_JSON_OPEN)
        while (scan->reader.depth >= depth && next(scan) != MM_JSON_FAULT)
            continue;
}

/* Whether the current value is an array or object. Fails otherwise. */
static bool opens(struct scan *scan, enum mm_value_kind kind) {
    if (scan->event == MM_JSON_OPEN && scan->reader.token.kind == kind)
        return true;
    fail_value(scan, kind == MM_VALUE_ARRAY ? "an array" : "an object");
    return false;
}

/* Reads a string, or fails. */
static bool read_text(struct scan *scan, char text[MM_JSON_TEXT_MAX]) {
    if (scan->event == MM_JSON_VALUE && scan->reader.token.kind == MM_VALUE_TEXT) {
        (void)value_of(scan, text);
        return true;
    }
    fail_value(scan, "a string");
    return false;
}

static bool read_whole(const struct mm_value *value, size_t *number) {
    const double real = value->number;
    if (value->kind != MM_VALUE_NUMBER || !(real >= 0) || floor(real) != real)
        return false;
    *number = real < (double)MM_PARAMETER_WHOLE_MAX ? (size_t)real : SIZE_MAX;
    return true;
}

static enum mm_status read_binary_size(struct mm_parameters *values, const struct mm_parameter *row,
                                       const struct mm_value *given, struct mm_error *error) {
    struct mm_oip_input *input = (struct mm_oip_input *)values;
    input->is_binary = true;
    return read_whole(given, &input->binary_bytes)
               ? MM_OK
               : mm_value_fail(row->name, "is", "a whole number of bytes", given, error);
}

static enum mm_status read_from(struct mm_parameters *values, const struct mm_parameter *row,
                                const struct mm_value *given, struct mm_error *error) {
    struct mm_oip_input *input = (struct mm_oip_input *)values;
    if (given->kind != MM_VALUE_TEXT || given->length == 0)
        return mm_value_fail(row->name, "is", "the name of a stored matrix", given, error);
    memcpy(input->from, given->text, given->length + 1);
    return MM_OK;
}

static const struct mm_parameter input_rows[] = {
    MM_PARAMETER_READ("binary_data_size", OWN, MM_IN_OBJECT, struct mm_oip_input, binary_bytes,
                      read_binary_size),
    MM_PARAMETER_READ("from", OWN, MM_IN_OBJECT, struct mm_oip_input, from, read_from),
};
static const struct mm_parameter_table input_table = MM_PARAMETER_TABLE(input_rows);

struct output {
    struct mm_parameters parameters; /* must be first */
    bool is_binary;
};

static const struct mm_parameter output_rows[] = {
    MM_PARAMETER("binary_data", FLAG, MM_IN_OBJECT, struct output, is_binary),
};
static const struct mm_parameter_table output_table = MM_PARAMETER_TABLE(output_rows);

/* Reads an object of parameters. Ignores those whose names begin with `ignored`, if it is not NULL. */
static void read_parameters(struct scan *scan, struct mm_parameters *values, const char *ignored) {
    char buffer[MM_JSON_TEXT_MAX];
    unsigned seen = 0, member;
    if (!opens(scan, MM_VALUE_OBJECT))
        return;
    while (next_member(scan, NULL, 0, &seen, &member)) {
        const struct mm_value value = value_of(scan, buffer);
        if (ignored == NULL || strncmp(scan->name, ignored, strlen(ignored)) != 0)
            scan->status = mm_parameter_set_value(values, MM_IN_OBJECT, scan->name, strlen(scan->name),
                                                  &value, NULL, scan->error);
        skip(scan);
    }
}

/* Reads an array of objects by `read`. */
static void read_list(struct scan *scan, void (*read)(struct scan *scan)) {
    char name[MM_JSON_TEXT_MAX];
    strcpy(name, scan->name);
    if (!opens(scan, MM_VALUE_ARRAY))
        return;
    while (next(scan) == MM_JSON_OPEN && scan->reader.token.kind == MM_VALUE_OBJECT)
        read(scan);
    strcpy(scan->name, name);
    if (scan->event != MM_JSON_CLOSE)
        fail_value(scan, "an array of objects");
}

static void read_shape(struct scan *scan, struct mm_oip_input *input) {
    char buffer[MM_JSON_TEXT_MAX];
    struct mm_shape *shape = &input->shape;
    input->has_shape = true;
    if (!opens(scan, MM_VALUE_ARRAY))
        return;
    while (next(scan) == MM_JSON_VALUE && shape->rank < MM_RANK_MAX) {
        const struct mm_value value = value_of(scan, buffer);
        if (!read_whole(&value, &shape->dims[shape->rank++]))
            break;
    }
    if (scan->event != MM_JSON_CLOSE)
        fail_value(scan, "an array of at most 8 whole numbers");
}

/* Finds the end of an array of elements by its brackets. oip_decode.c reads the elements later, because the
 * shape and the type may follow. */
static void find_data(struct scan *scan, struct mm_oip_input *input) {
    const char *const start = scan->json.start + scan->reader.token.at;
    const char *const end = scan->json.start + scan->json.length, *at = start;
    size_t depth = 0;
    if (!opens(scan, MM_VALUE_ARRAY))
        return;
    do {
        const char *close = memchr(at, ']', (size_t)(end - at));
        if (close == NULL) {
            scan->status = mm_oip_fail_json(scan->json, end, "the closing bracket of data", scan->error);
            return;
        }
        for (; (at = memchr(at, '[', (size_t)(close - at))) != NULL; at++)
            depth++;
        at = close + 1;
    } while (--depth > 0);
    input->data = (struct mm_slice){start, (size_t)(at - start)};
    scan->data_bytes += input->data.length;
    const char *quote = memchr(start, '"', input->data.length);
    if (quote != NULL)
        scan->status =
            mm_oip_fail_json(scan->json, quote, "a number, NaN, Infinity or -Infinity", scan->error);
    scan->reader.at = (size_t)(at - 1 - scan->json.start);
    scan->reader.place = MM_JSON_COMMA;
    (void)next(scan);
}

static void read_input_name(struct scan *scan, struct mm_oip_input *input) {
    char name[MM_JSON_TEXT_MAX];
    if (!read_text(scan, name))
        return;
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        if (strcmp(name, mm_oip_inputs[index]) == 0)
            input->operand = index;
    if (input->operand == MM_OPERANDS_MAX)
        scan->status = mm_fail_field(scan->error, MM_BAD_REQUEST, "inputs",
                                     "an input is '%.64s', but the inputs are A, B, ADDEND and BIAS", name);
    for (const struct mm_oip_input *other = scan->head->inputs; other < input; other++)
        if (other->operand == input->operand && scan->status == MM_OK)
            scan->status = mm_fail_field(scan->error, MM_BAD_REQUEST, name,
                                         "the input %s is given twice; give it once", name);
}

static void read_datatype(struct scan *scan, struct mm_oip_input *input) {
    char name[MM_JSON_TEXT_MAX];
    if (!read_text(scan, name))
        return;
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        if (mm_oip_datatype(dtype) != NULL && strcmp(name, mm_oip_datatype(dtype)) == 0)
            input->dtype = dtype;
    if (input->dtype == MM_DTYPE_COUNT)
        scan->status = mm_fail_field(scan->error, MM_UNSUPPORTED, "datatype",
                                     "datatype is '%.64s', but must be one of: FP32, FP64, FP16, BF16, INT8, "
                                     "UINT8, BOOL, INT32, INT64",
                                     name);
}

static void read_input(struct scan *scan) {
    enum { NAME, SHAPE, DATATYPE, PARAMETERS, DATA, MEMBERS };
    static const char *const names[] = {"name", "shape", "datatype", "parameters", "data"};
    unsigned seen = 0, member;
    if (scan->head->count == MM_OPERANDS_MAX) {
        scan->status = mm_fail_field(
            scan->error, MM_BAD_REQUEST, "inputs",
            "there are more than %d inputs, but the inputs are A, B, ADDEND and BIAS", (int)MM_OPERANDS_MAX);
        return;
    }
    struct mm_oip_input *input = &scan->head->inputs[scan->head->count++];
    *input = (struct mm_oip_input){
        .parameters.table = &input_table, .operand = MM_OPERANDS_MAX, .dtype = MM_DTYPE_COUNT};
    while (next_member(scan, names, MEMBERS, &seen, &member)) {
        if (member == NAME)
            read_input_name(scan, input);
        else if (member == SHAPE)
            read_shape(scan, input);
        else if (member == DATATYPE)
            read_datatype(scan, input);
        else if (member == PARAMETERS)
            read_parameters(scan, &input->parameters, NULL);
        else if (member == DATA)
            find_data(scan, input);
        else
            skip(scan);
    }
    const char *missing = input->operand == MM_OPERANDS_MAX ? "name"
                          : !input->has_shape               ? "shape"
                          : input->dtype == MM_DTYPE_COUNT  ? "datatype"
                                                            : NULL;
    if (missing != NULL && scan->status == MM_OK)
        scan->status = mm_fail_field(scan->error, MM_BAD_REQUEST, missing,
                                     "an input has no %s; each needs name, shape and datatype", missing);
}

static void read_output(struct scan *scan) {
    enum { NAME, PARAMETERS, MEMBERS };
    static const char *const names[] = {"name", "parameters"};
    struct output output = {.parameters.table = &output_table};
    char name[MM_JSON_TEXT_MAX] = "";
    unsigned seen = 0, member;
    while (next_member(scan, names, MEMBERS, &seen, &member)) {
        if (member == NAME)
            (void)read_text(scan, name);
        else if (member == PARAMETERS)
            read_parameters(scan, &output.parameters, NULL);
        else
            skip(scan);
    }
    if (scan->status == MM_OK && strcmp(name, "C") != 0)
        scan->status = mm_fail_field(scan->error, MM_BAD_REQUEST, "outputs",
                                     "an output is '%.64s', but the only output is C", name);
    scan->has_format = output.parameters.given != 0;
    scan->call->is_binary = output.is_binary;
}

static void read_id(struct scan *scan) {
    char unused[MM_JSON_TEXT_MAX];
    if (!read_text(scan, unused))
        return;
    const size_t length = scan->reader.token.bytes - 2;
    if (length <= MM_OIP_ID_MAX)
        memcpy(scan->call->id, scan->json.start + scan->reader.token.at + 1, length);
    else
        scan->status = mm_fail_field(scan->error, MM_BAD_REQUEST, "id",
                                     "id has %zu bytes, but may have at most %d", length, MM_OIP_ID_MAX);
}

static void read_request(struct scan *scan) {
    enum { ID, PARAMETERS, INPUTS, OUTPUTS, MEMBERS };
    static const char *const names[] = {"id", "parameters", "inputs", "outputs"};
    unsigned seen = 0, member;
    (void)next(scan);
    while (next_member(scan, names, MEMBERS, &seen, &member)) {
        if (member == ID)
            read_id(scan);
        else if (member == PARAMETERS)
            read_parameters(scan, &scan->call->call.operands.parameters, "sequence_");
        else if (member == INPUTS)
            read_list(scan, read_input);
        else if (member == OUTPUTS)
            read_list(scan, read_output);
        else
            skip(scan);
    }
    (void)next(scan); /* fails if anything follows */
}

enum mm_status mm_oip_read_head(struct mm_slice json, struct mm_oip_call *call, struct mm_oip_head *head,
                                struct mm_error *error) {
    struct scan scan = {.json = json, .call = call, .head = head, .error = error, .status = MM_OK};
    head->count = 0;
    read_request(&scan);
    if (!scan.has_format)
        call->is_binary = call->binary_default;
    if (scan.status == MM_OK && json.length - scan.data_bytes > MM_OIP_HEAD_MAX)
        return mm_fail_limit(error, "", MM_OIP_HEAD_MAX,
                             "the JSON without the elements has %zu bytes, but the limit is %d",
                             json.length - scan.data_bytes, MM_OIP_HEAD_MAX);
    return scan.status;
}
