/* Reads a benchmark's request, and checks its members in the order of docs/http-api.md. Looks up no
 * variants. */
#include "api/lab/access.h"
#include "api/json/json_text.h"
#include "api/lab/benchmark.h"
#include "api/text.h"

#include <stdio.h>
#include <string.h>

/* Reads the operation first, because the operation decides which other members are allowed. */
static enum mm_status read_op(const struct mm_slice *text, struct mm_benchmark_call *call,
                              struct mm_error *error) {
    struct mm_json_reader reader = {0};
    struct mm_json_member member;
    char known[64] = "";
    size_t count;
    const struct mm_benchmark_op *ops = mm_benchmark_ops(&count);
    call->op = &ops[0];
    do
        if (!mm_json_step(&reader, text->start, text->length, &member))
            return MM_OK;
    while (strcmp(member.name.text, "op") != 0);
    if (member.value.kind != MM_VALUE_TEXT)
        return mm_value_fail("op", "is", "a string, like \"matmul\"", &member.value, error);
    for (size_t index = 0; index < count; index++) {
        if (strcmp(member.value.text, ops[index].name) == 0) {
            call->op = &ops[index];
            return MM_OK;
        }
        mm_list_add(known, sizeof known, ops[index].name);
    }
    return mm_fail_field(error, MM_UNSUPPORTED, "op", "op is '%.64s', but must be one of: %s",
                         member.value.text, known);
}

/* Keeps one of two errors, in the order of docs/http-api.md: a malformed request comes first, then an
 * exceeded limit, then something unsupported. Returns true if *kept became *other. */
static bool choose_error(struct mm_error *kept, const struct mm_error *other) {
    const bool is_first = other->status != MM_OK && (kept->status == MM_OK || other->status < kept->status);
    if (is_first)
        *kept = *other;
    return is_first;
}
_Static_assert(MM_BAD_REQUEST < MM_TOO_LARGE && MM_TOO_LARGE < MM_UNSUPPORTED, "the order of choose_error");

/* Reads an object's members. If several are wrong, choose_error decides which error *first becomes. */
static void read_object(struct mm_json_reader reader, const struct mm_slice *text,
                        enum mm_parameter_place place, const struct mm_limits *limits,
                        struct mm_parameters *values, struct mm_error *first) {
    struct mm_json_member member;
    *first = (struct mm_error){.status = MM_OK};
    while (mm_json_step(&reader, text->start, text->length, &member)) {
        struct mm_error one = {.status = MM_OK};
        const struct mm_value *name = &member.name;
        const struct mm_parameter *row = mm_parameter_find(values, place, name->text, name->length);
        if (row != NULL && (values->named >> (row - values->table->rows) & 1) != 0)
            mm_fail_field(&one, MM_BAD_REQUEST, name->text, "%s is given twice; give it once", name->text);
        else
            (void)mm_parameter_set_value(values, place, name->text, name->length, &member.value, limits,
                                         &one);
        /* mm_json_locate reads from the text's beginning, so it is called only for a kept error. */
        if (choose_error(first, &one) && one.status == MM_BAD_REQUEST)
            mm_json_locate(text->start, member.token, first);
    }
}

static void read_members(const struct mm_slice *text, const struct mm_limits *limits,
                         struct mm_parameters *values, struct mm_error *first) {
    read_object((struct mm_json_reader){0}, text, MM_IN_JSON, limits, values, first);
}

/* --- benchmarks of variants */

struct values {
    struct mm_call call; /* must be first: pointers to it are cast to this struct */
    uint64_t repeats;
    bool has_epilogue, has_bias;
    struct mm_benchmark_call *into; /* gets the names of variants */
};

/* Reads [BACKEND:]VARIANT[/TILE]. False if a part is empty, or the tile is not a positive whole number. */
static bool read_name(const char *text, struct mm_benchmark_name *name) {
    const char *colon = strchr(text, ':');
    const char *variant = colon == NULL ? text : colon + 1;
    const size_t variant_length = strcspn(variant, "/");
    const char *slash = variant[variant_length] == '/' ? variant + variant_length : NULL;
    if (variant_length == 0 || colon == text)
        return false;
    snprintf(name->backend, sizeof name->backend, "%.*s", colon == NULL ? 4 : (int)(colon - text),
             colon == NULL ? "auto" : text);
    snprintf(name->variant, sizeof name->variant, "%.*s", (int)variant_length, variant);
    name->tile = 0;
    if (slash == NULL)
        return true;
    uint64_t tile;
    const struct mm_slice digits = mm_slice_of(slash + 1);
    if (digits.length > 9 || !mm_slice_whole(digits, &tile, NULL))
        return false;
    name->tile = (unsigned)tile;
    return tile > 0;
}

static enum mm_status read_variants(struct mm_parameters *values, const struct mm_parameter *row,
                                    const struct mm_value *given, struct mm_error *error) {
    static const char form[] = "a list of names, as \"naive\", \"cpu:naive\" or \"tiled_dynamic/64\"";
    struct mm_benchmark_call *call = ((struct values *)values)->into;
    struct mm_json_reader reader = mm_json_within(given);
    struct mm_json_member name;
    size_t count = 0;
    if (given->kind != MM_VALUE_ARRAY || given->length == 0)
        return mm_value_fail(row->name, "is", form, given, error);
    for (; mm_json_step(&reader, given->text, given->length, &name); count++) {
        struct mm_benchmark_name unwanted; /* gets the names beyond the limit */
        if (name.value.kind != MM_VALUE_TEXT ||
            !read_name(name.value.text, count < MM_BENCHMARK_ROWS_MAX ? &call->names[count] : &unwanted)) {
            char element[32];
            snprintf(element, sizeof element, "variants[%zu]", count);
            mm_value_fail(element, "is", "a name, as \"naive\", \"cpu:naive\" or \"tiled_dynamic/64\"",
                          &name.value, error);
            if (error != NULL)
                strcpy(error->field, "variants");
            return MM_BAD_REQUEST;
        }
    }
    if (count > MM_BENCHMARK_ROWS_MAX)
        return mm_fail_limit(error, "variants", MM_BENCHMARK_ROWS_MAX,
                             "variants has %zu names, but the limit is %d; send several benchmarks", count,
                             MM_BENCHMARK_ROWS_MAX);
    call->name_count = count;
    return MM_OK;
}

static enum mm_status read_operand(struct mm_parameters *values, const struct mm_parameter *row,
                                   const struct mm_value *given, struct mm_error *error) {
    struct mm_operands *operands = (struct mm_operands *)values;
    struct mm_json_reader reader = mm_json_within(given);
    struct mm_json_member from, more;
    char name[MM_PARAMETER_NAME_MAX];
    if (given->kind != MM_VALUE_OBJECT || !mm_json_step(&reader, given->text, given->length, &from) ||
        strcmp(from.name.text, "from") != 0 || mm_json_step(&reader, given->text, given->length, &more))
        return mm_value_fail(row->name, "is", "an object with 'from' alone, like {\"from\": \"NAME\"}", given,
                             error);
    snprintf(name, sizeof name, "%s.from", row->name);
    if (from.value.kind != MM_VALUE_TEXT)
        return mm_value_fail(name, "is", "a string like \"NAME\"", &from.value, error);
    return mm_operand_set_source(operands, &operands->of[mm_operand_index(row)], name,
                                 (struct mm_slice){from.value.text, from.value.length}, error);
}

static enum mm_status read_epilogue(struct mm_parameters *values, const struct mm_parameter *row,
                                    const struct mm_value *given, struct mm_error *error) {
    const struct mm_slice text = {given->text, given->length};
    if (given->kind != MM_VALUE_OBJECT)
        return mm_value_fail(row->name, "is", "an object, like {\"beta\": 1, \"activation\": \"relu\"}",
                             given, error);
    ((struct values *)values)->has_epilogue = true;
    read_object(mm_json_within(given), &text, MM_IN_OBJECT, NULL, values, error);
    return error->status;
}

#define ROW(name, kind, member) MM_PARAMETER(name, kind, MM_IN_JSON, struct values, member)
#define INNER(name, kind, member) MM_PARAMETER(name, kind, MM_IN_OBJECT, struct values, member)
#define OPERAND(name, index)                                                                                 \
    MM_PARAMETER_READ(name, OPERAND, MM_IN_JSON, struct values, call.operands.of[index], read_operand)
#define FROM(name, index) /* set by read_operand */                                                          \
    MM_PARAMETER(name, SOURCE, 0, struct values, call.operands.of[index].source)
#define VARIANTS MM_PARAMETER_READ("variants", OWN, MM_IN_JSON, struct values, into, read_variants)

static const struct mm_parameter product_rows[] = {
    OPERAND("a", 0),
    OPERAND("b", 1),
    ROW("dtype", NAME, call.operands.dtype_name),
    ROW("result_dtype", NAME, call.result_dtype_name),
    ROW("transpose_a", FLAG, call.operands.of[0].is_transposed),
    ROW("transpose_b", FLAG, call.operands.of[1].is_transposed),
    ROW("timeout_ms", WHOLE, call.timeout_ms),
    ROW("op", OWN, call),
    ROW("m", SIZE, call.operands.dimensions[MM_DIMENSION_M]),
    ROW("k", SIZE, call.operands.dimensions[MM_DIMENSION_K]),
    ROW("n", SIZE, call.operands.dimensions[MM_DIMENSION_N]),
    ROW("repeats", WHOLE, repeats),
    VARIANTS,
    FROM("a_from", 0),
    FROM("b_from", 1),
    MM_PARAMETER_READ("epilogue", OWN, MM_IN_JSON, struct values, has_epilogue, read_epilogue),
    INNER("alpha", FACTOR, call.alpha),
    INNER("beta", FACTOR, call.beta),
    INNER("bias", FLAG, has_bias),
    INNER("activation", ACTIVATION, call.activation),
};

static const struct mm_parameter transposition_rows[] = {
    OPERAND("a", 0),
    ROW("dtype", NAME, call.operands.dtype_name),
    ROW("timeout_ms", WHOLE, call.timeout_ms),
    ROW("op", OWN, call),
    ROW("m", SIZE, call.operands.dimensions[MM_DIMENSION_M]),
    ROW("n", SIZE, call.operands.dimensions[MM_DIMENSION_N]),
    ROW("repeats", WHOLE, repeats),
    VARIANTS,
    FROM("a_from", 0),
};

static const struct mm_operands_kind kinds[MM_OP_COUNT] = {
    [MM_MATMUL] = MM_CALL_KIND(MM_MATMUL, product_rows, struct values),
    [MM_TRANSPOSE] = MM_CALL_KIND(MM_TRANSPOSE, transposition_rows, struct values),
};

/* Returns the first dimension that neither the request nor an operand gives, or NULL. A dimension with a
 * wrong value counts as given. */
static const char *find_missing(struct mm_operands *operands) {
    struct mm_parameters *parameters = &operands->parameters;
    const uint64_t derived = parameters->derived;
    parameters->derived |= parameters->named;
    for (unsigned index = 0; index < operands->count; index++) {
        const struct mm_operand *operand = &operands->of[index];
        const bool is_named = (parameters->named & mm_parameter_bit(parameters, operand)) != 0;
        if (is_named && !mm_operand_is_generated(operand))
            parameters->derived |= mm_parameter_bit(parameters, &operands->dimensions[operand->role.rows]) |
                                   mm_parameter_bit(parameters, &operands->dimensions[operand->role.cols]);
    }
    const char *missing = mm_operands_missing_dimension(operands);
    parameters->derived = derived;
    return missing;
}

static enum mm_status check_stored(const struct mm_operand *operand, struct mm_error *error) {
    const struct mm_stored *value = operand->source.stored;
    const struct mm_shape *shape = &value->shape;
    char text[MM_SHAPE_TEXT_MAX];
    if (shape->rank == 2 && shape->dims[0] > 0 && shape->dims[1] > 0)
        return MM_OK;
    mm_shape_text(shape, text);
    return mm_fail_field(error, MM_BAD_SHAPE, operand->role.name,
                         "%s is the stored matrix '%s', whose shape is '%s', but a benchmark takes matrices "
                         "of two dimensions, neither of them 0",
                         operand->role.name, value->name, text);
}

/* Sets the operands' shapes and the epilogue. An operand that the client did not name becomes uniform(SEED).
 * SEED is the operand's index. But if the client named only one of a and b, SEED is 0 for the other one. */
static enum mm_status complete_operands(struct values *values, struct mm_epilogue *epilogue,
                                        struct mm_error *error) {
    static const struct mm_shape *const no_inline[MM_OPERANDS_MAX] = {NULL};
    struct mm_call *call = &values->call;
    struct mm_operands *operands = &call->operands;
    const bool is_all_random = mm_operands_are_inline(operands);
    enum mm_status status = MM_OK;
    if (is_all_random && !values->has_epilogue)
        return MM_OK;
    operands->of[MM_OPERAND_ADDEND].in_body = call->beta.of[MM_FLOAT64].of_double != 0.0;
    operands->of[MM_OPERAND_BIAS].in_body = values->has_bias;
    for (unsigned index = 0; index < operands->count && status == MM_OK; index++) {
        struct mm_operand *operand = &operands->of[index];
        if (mm_operand_is_inline(operand)) {
            const uint64_t seed = is_all_random || operand->role.is_optional ? index : 0;
            operand->source = (struct mm_source){.kind = MM_SOURCE_UNIFORM, .seed = seed};
        }
        operand->in_body = false;
        if (mm_operand_is_stored(operand))
            status = check_stored(operand, error);
    }
    if (status == MM_OK)
        status = mm_operands_set_shapes(operands, no_inline, error);
    if (status != MM_OK)
        return status;
    mm_operands_view(operands);
    struct mm_product product = mm_call_product(call);
    status = mm_call_epilogue(call, &product, error);
    *epilogue = product.epilogue;
    return status == MM_OK ? mm_product_conform(operands->kind->op, &product, error) : status;
}

static enum mm_status decode_variants(const struct mm_slice *text, const struct mm_limits *limits,
                                      struct mm_references *references, struct mm_benchmark_call *into,
                                      struct mm_error *error) {
    struct values values;
    struct mm_call *call = &values.call;
    struct mm_operands *operands = &call->operands;
    mm_call_init_kind(call, &kinds[into->op->op]);
    operands->references = references;
    struct mm_epilogue epilogue = {.is_set = false};
    values.repeats = MM_BENCHMARK_REPEATS;
    values.into = into;
    read_members(text, limits, &operands->parameters, error);
    const char *missing = find_missing(operands);
    if (missing != NULL) {
        struct mm_error one;
        mm_fail_field(&one, MM_BAD_REQUEST, missing,
                      "%s is missing; send a whole number of at least 1, as in " MM_BENCHMARK_EXAMPLE,
                      missing);
        (void)choose_error(error, &one);
    }
    enum mm_status status = error->status;
    if (status == MM_OK)
        status = mm_call_resolve(operands, error);
    if (status == MM_OK)
        status = complete_operands(&values, &epilogue, error);
    into->timeout_ms = call->timeout_ms;
    into->request = (struct mm_benchmark_request){
        .op = into->op->op,
        .m = (size_t)operands->dimensions[MM_DIMENSION_M],
        .n = (size_t)operands->dimensions[MM_DIMENSION_N],
        .k = (size_t)operands->dimensions[MM_DIMENSION_K],
        .transpose_a = operands->of[0].is_transposed,
        .transpose_b = operands->of[1].is_transposed,
        .dtype = operands->dtype,
        .c_dtype = operands->result_dtype,
        .epilogue = epilogue,
        .repeats = values.repeats,
    };
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        into->request.sources[index] = operands->of[index].source;
    return status;
}

/* --- benchmarks of accesses and occupancy */

static enum mm_status decode_accesses(const struct mm_slice *text, const struct mm_limits *limits,
                                      struct mm_benchmark_call *into, struct mm_error *error) {
    struct mm_access_request request;
    mm_access_init(&request);
    read_members(text, limits, &request.parameters, error);
    into->timeout_ms = request.timeout_ms;
    memcpy(into->backend, request.backend, sizeof into->backend);
    return error->status == MM_OK ? mm_access_combine(&request, &into->probe, error) : error->status;
}

static enum mm_status decode_occupancy(const struct mm_slice *text, const struct mm_limits *limits,
                                       struct mm_benchmark_call *into, struct mm_error *error) {
    mm_occupancy_init(&into->occupancy);
    read_members(text, limits, &into->occupancy.parameters, error);
    return error->status == MM_OK ? mm_occupancy_complete(&into->occupancy, error) : error->status;
}

enum mm_status mm_benchmark_decode(const void *body, size_t bytes, const struct mm_limits *limits,
                                   struct mm_references *references, struct mm_benchmark_call *call,
                                   struct mm_error *error) {
    const struct mm_slice text = {body, bytes};
    struct mm_error unwanted;
    if (error == NULL)
        error = &unwanted;
    *call = (struct mm_benchmark_call){0};
    enum mm_status status = mm_json_check(body, bytes, MM_BENCHMARK_EXAMPLE, error);
    if (status == MM_OK)
        status = read_op(&text, call, error);
    if (status != MM_OK)
        return status;
    switch (call->op->kind) {
    case MM_BENCHMARK_OF_VARIANTS:
        return decode_variants(&text, limits, references, call, error);
    case MM_BENCHMARK_OF_ACCESSES:
        return decode_accesses(&text, limits, call, error);
    case MM_BENCHMARK_OF_OCCUPANCY:
        break;
    }
    return decode_occupancy(&text, limits, call, error);
}
