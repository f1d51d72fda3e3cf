/* Fuzzes the JSON codec against Jansson. The input is a line whose bytes are chunk lengths, then a body. */
#include "tests/fuzz/fuzz.h"

#include "api/json/json_array.h"
#include "api/operand.h"
#include "api/slice.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double nearest_to(enum mm_dtype dtype, double number) {
    uint64_t element = 0;
    mm_dtype_put(dtype, &element, 0, number);
    return mm_dtype_get(dtype, &element, 0);
}

/* Returns whether the element is the value nearest to the double or to one of the double's neighbours. */
static bool is_nearest(enum mm_dtype dtype, double element, double number) {
    return (signbit(element) != 0) == (signbit(number) != 0) &&
           (element == nearest_to(dtype, number) || element == nearest_to(dtype, nextafter(number, 0)) ||
            element == nearest_to(dtype, nextafter(number, copysign(INFINITY, number))));
}

static void require_element(const json_t *value, enum mm_dtype dtype, const void *element) {
    const char *name = json_string_value(value);
    const double got = mm_dtype_get(dtype, element, 0);
    double number = json_is_boolean(value) ? json_is_true(value) : json_number_value(value);
    if (name != NULL) {
        REQUIRE(strcmp(name, "NaN") == 0 || strcmp(name, "Infinity") == 0 || strcmp(name, "-Infinity") == 0);
        number = *name == 'N' ? NAN : *name == 'I' ? INFINITY : -INFINITY;
    }
    REQUIRE(json_is_number(value) || (name != NULL && mm_dtype_is_float(dtype)) ||
            (json_is_boolean(value) && dtype == MM_BOOL));
    if (isnan(number))
        REQUIRE(isnan(got));
    else if (dtype == MM_FLOAT64)
        REQUIRE(memcmp(&number, element, sizeof number) == 0);
    else if (mm_dtype_is_float(dtype))
        REQUIRE(is_nearest(dtype, got, number));
    else if (dtype == MM_INT64 && json_is_integer(value))
        REQUIRE(json_integer_value(value) == *(const int64_t *)element);
    else
        REQUIRE(number == got);
}

/* Compares the elements with Jansson's, from dimension `dim` on. Returns the end of the elements. */
static const char *require_elements(const struct mm_shape *shape, enum mm_dtype dtype, unsigned dim,
                                    const json_t *value, const char *element) {
    if (dim == shape->rank) {
        require_element(value, dtype, element);
        return element + mm_dtype_bytes(dtype);
    }
    REQUIRE(json_array_size(value) == shape->dims[dim]);
    for (size_t index = 0; index < shape->dims[dim]; index++)
        element = require_elements(shape, dtype, dim + 1, json_array_get(value, index), element);
    return element;
}

/* Checks that the codec and Jansson agree whether the text is JSON, apart from known differences. */
static void require_grammar(const struct decoding *decoding, struct slice text) {
    static const char malformed[] = "the JSON body ";
    const bool is_fault = strncmp(decoding->error.detail, malformed, sizeof malformed - 1) == 0;
    json_error_t fault;
    json_t *root =
        json_loadb(text.text, text.bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &fault);
    if (root == NULL && json_error_code(&fault) != json_error_numeric_overflow)
        REQUIRE(decoding->status == MM_BAD_REQUEST);
    if (is_fault && strstr(decoding->error.detail, "64 arrays") == NULL && text.bytes > 0 &&
        memchr(text.text, '\0', text.bytes) == NULL)
        REQUIRE(!json_is_object(root));
    json_decref(root);
}

/* Writes the inline operands as a new JSON body. The caller frees it. */
static char *write_body(const struct mm_call *call, size_t *bytes) {
    const struct mm_operands *operands = &call->operands;
    size_t bytes_max[MM_OPERANDS_MAX], all_bytes_max = 256, written;
    for (unsigned index = 0; index < operands->count; index++) {
        const struct mm_operand *operand = &operands->of[index];
        REQUIRE(mm_json_array_text_bytes(&operand->shape, operand->view.dtype, &bytes_max[index]));
        all_bytes_max += bytes_max[index] + MM_SHAPE_TEXT_MAX;
    }
    char *text = malloc(all_bytes_max);
    REQUIRE(text != NULL);
    char *end = text + sprintf(text, "{\"dtype\":\"%s\"", mm_dtype_name(operands->dtype));
    if (operands->kind->op == MM_MATMUL)
        end += sprintf(end, ",\"result_dtype\":\"%s\"", mm_dtype_name(operands->result_dtype));
    for (unsigned index = 0; index < operands->count; index++) {
        const struct mm_operand *operand = &operands->of[index];
        const struct mm_parameter *row = mm_parameter_of(&operands->parameters, &operand->shape);
        if (mm_operand_is_absent(operand))
            continue;
        end += sprintf(end, ",\"%s\":", operand->role.name);
        written = mm_json_array_write(&operand->shape, operand->view.dtype, operand->view.data, NULL, end);
        REQUIRE(written <= bytes_max[index]);
        end += written;
        for (unsigned dim = 0; row != NULL && dim < operand->shape.rank; dim++) {
            end += dim == 0 ? sprintf(end, ",\"%s\":[", row->name) : sprintf(end, ",");
            end += sprintf(end, "%zu%s", operand->shape.dims[dim], dim + 1 < operand->shape.rank ? "" : "]");
        }
    }
    *end++ = '}';
    *bytes = (size_t)(end - text);
    return text;
}

static void require_round_trip(const struct mm_codec *codec, const struct mm_call *call) {
    struct decoding again;
    size_t bytes;
    char *text = write_body(call, &bytes);
    mm_call_init(&again.call, call->operands.kind->op);
    fuzz_decode(&again, codec, NULL, (struct slice){text, bytes});
    /* The new body has no options. Without transpose_a, for example, the result may be too large. */
    REQUIRE(again.status == MM_OK || again.status == MM_TOO_LARGE);
    if (again.status == MM_OK) {
        for (unsigned index = 0; index < MM_OPERANDS_MAX; index++) {
            const struct mm_operand *one = &call->operands.of[index], *other = &again.call.operands.of[index];
            fuzz_require_same_shape(&one->shape, &other->shape);
            fuzz_require_same(&one->view, &other->view);
        }
    }
    fuzz_release(&again);
    free(text);
}

static void check_taken(const struct mm_codec *codec, const struct mm_call *call, struct slice text) {
    const bool is_whole = call->operands.dtype == MM_INT32 || call->operands.dtype == MM_INT64;
    json_t *root = json_loadb(text.text, text.bytes, is_whole ? 0 : JSON_DECODE_INT_AS_REAL, NULL);
    REQUIRE(json_is_object(root) && memchr(text.text, '\0', text.bytes) == NULL);
    for (unsigned index = 0; index < call->operands.count; index++) {
        const struct mm_operand *operand = &call->operands.of[index];
        if (!mm_operand_is_absent(operand))
            require_elements(&operand->shape, operand->view.dtype, 0,
                             json_object_get(root, operand->role.name), operand->view.data);
    }
    json_decref(root);
    require_round_trip(codec, call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    const struct mm_codec *codec = fuzz_codec("application/json");
    struct slice text = {(const char *)data, bytes};
    const struct slice lengths = fuzz_split(&text, '\n');
    const char *behind_mark = mm_skip_mark(text.text, text.text + text.bytes);
    const struct slice unmarked = {behind_mark, text.bytes - (size_t)(behind_mark - text.text)};
    FUZZ_EACH_OP(op) {
        struct decoding whole;
        mm_call_init(&whole.call, op);
        fuzz_decode(&whole, codec, NULL, text);
        fuzz_require_read(&whole, codec, lengths.bytes % 2 == 0 ? text.bytes : MM_LENGTH_UNKNOWN, text,
                          lengths);
        require_grammar(&whole, unmarked);
        if (whole.status == MM_OK)
            check_taken(codec, &whole.call, unmarked);
        fuzz_release(&whole);
    }
    return 0;
}
