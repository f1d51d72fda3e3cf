/* A benchmark's request: reads its members and judges them in the contract's order. It does not know the
 * variants that the names stand for. */
#include "api/lab/access.h"
#include "api/lab/benchmark.h"
#include "api/call.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* The text, and the values that were read from it. */
struct reading {
    struct mm_benchmark_call *call;
    const struct mm_limits *limits;
    const char *text;
    size_t bytes;
    enum mm_call_place place;
    struct mm_call values;
    struct mm_access_request access;
};

/* Reads [BACKEND:]VARIANT[/TILE]; false if a part is missing, or the tile is no whole number from 1 on. */
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
    const size_t digits = strspn(slash + 1, "0123456789");
    if (digits < 1 || digits > 9 || slash[1 + digits] != '\0')
        return false;
    for (size_t index = 1; index <= digits; index++)
        name->tile = name->tile * 10 + (unsigned)(slash[index] - '0');
    return name->tile > 0;
}

static enum mm_status read_variants(struct reading *reading, const struct mm_json_member *member,
                                    struct mm_error *error) {
    static const char form[] = "a list of names, as \"naive\", \"cpu:naive\" or \"tiled_dynamic/64\"";
    struct mm_benchmark_call *call = reading->call;
    struct mm_json_reader reader = mm_json_within(member->token);
    struct mm_json_member name;
    size_t count = 0;
    if (member->value.kind != MM_VALUE_ARRAY || member->value.length == 0)
        return mm_value_fail("variants", "is", form, &member->value, error);
    for (; mm_json_step(&reader, reading->text, reading->bytes, &name); count++) {
        struct mm_benchmark_name unwanted; /* if there are too many to keep */
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

/* Reads the operation, since the other members depend on it. */
static enum mm_status read_op(struct reading *reading, struct mm_error *error) {
    struct mm_benchmark_call *call = reading->call;
    struct mm_json_reader reader = {0};
    struct mm_json_member member;
    char known[64] = "";
    size_t length = 0, count;
    const struct mm_benchmark_op *ops = mm_benchmark_ops(&count);
    call->op = &ops[0];
    do
        if (!mm_json_step(&reader, reading->text, reading->bytes, &member))
            return MM_OK;
    while (strcmp(member.name.text, "op") != 0);
    if (member.value.kind != MM_VALUE_TEXT)
        return mm_value_fail("op", "is", "a string, like \"matmul\"", &member.value, error);
    for (size_t index = 0; index < count; index++) {
        if (strcmp(member.value.text, ops[index].name) == 0) {
            call->op = &ops[index];
            return MM_OK;
        }
        length += (size_t)snprintf(known + length, sizeof known - length, "%s%s", length > 0 ? ", " : "",
                                   ops[index].name);
        assert(length < sizeof known);
    }
    return mm_fail_field(error, MM_UNSUPPORTED, "op", "op is '%.64s', but must be one of: %s",
                         member.value.text, known);
}

/* Keeps the failure that the contract judges first, in the order of the statuses: a malformed request, then
 * an exceeded limit, then something that is not supported. True if *kept is now `other`. */
static bool keep_first(struct mm_error *kept, const struct mm_error *other) {
    const bool is_first = other->status != MM_OK && (kept->status == MM_OK || other->status < kept->status);
    if (is_first)
        *kept = *other;
    return is_first;
}
_Static_assert(MM_BAD_REQUEST < MM_TOO_LARGE && MM_TOO_LARGE < MM_UNSUPPORTED, "the order of keep_first");

/* The operand of a name, a_from or b_from; MM_PARAMETER_COUNT if the benchmark takes no such operand. */
static enum mm_parameter find_operand(const struct reading *reading, const char *name) {
    const unsigned count = reading->place == MM_CALL_BENCHMARK ? mm_call_operands(&reading->values) : 0;
    unsigned index = 0;
    while (index < count && strcmp(name, mm_call_operand_names[index]) != 0)
        index++;
    return index == count ? MM_PARAMETER_COUNT : index == 0 ? MM_PARAMETER_A_FROM : MM_PARAMETER_B_FROM;
}

/* {"from": "NAME"} */
static enum mm_status read_operand(struct reading *reading, enum mm_parameter parameter,
                                   const struct mm_json_member *member, struct mm_error *error) {
    const char *name = parameter == MM_PARAMETER_A_FROM ? "a.from" : "b.from";
    struct mm_json_reader reader = mm_json_within(member->token);
    struct mm_json_member from, more;
    if (member->value.kind != MM_VALUE_OBJECT ||
        !mm_json_step(&reader, reading->text, reading->bytes, &from) || strcmp(from.name.text, "from") != 0 ||
        mm_json_step(&reader, reading->text, reading->bytes, &more))
        return mm_value_fail(member->name.text, "is",
                             "an object with 'from' alone, like {\"from\": \"NAME\"}", &member->value, error);
    if (from.value.kind != MM_VALUE_TEXT)
        return mm_value_fail(name, "is", "a string like \"NAME\"", &from.value, error);
    return mm_call_set_source(&reading->values, parameter, name, from.value.text, from.value.length, error);
}

static enum mm_status read_member(struct reading *reading, enum mm_parameter parameter,
                                  const struct mm_json_member *member, struct mm_error *error) {
    const struct mm_value *name = &member->name;
    if (parameter == MM_PARAMETER_OP) /* was read before all others */
        return MM_OK;
    if (parameter == MM_PARAMETER_VARIANTS)
        return read_variants(reading, member, error);
    if (parameter == MM_PARAMETER_A_FROM || parameter == MM_PARAMETER_B_FROM)
        return read_operand(reading, parameter, member, error);
    if (parameter >= MM_PARAMETER_PATTERNS && parameter <= MM_PARAMETER_ACCESS) {
        const enum mm_access_set set = (enum mm_access_set)(parameter - MM_PARAMETER_PATTERNS);
        return mm_access_read_set(set, name->text, reading->text, member, &reading->access.sets[set], error);
    }
    if (parameter == MM_PARAMETER_OFFSETS)
        return mm_access_read_offsets(reading->text, member, &reading->access, error);
    if (parameter >= MM_PARAMETER_COMPUTE_CAPABILITY && parameter <= MM_PARAMETER_SHARED_BYTES)
        return mm_occupancy_read((enum mm_occupancy_list)(parameter - MM_PARAMETER_COMPUTE_CAPABILITY),
                                 name->text, reading->text, member, &reading->call->occupancy, error);
    return mm_call_set_value(&reading->values, reading->place, name->text, name->length, &member->value,
                             reading->limits, error);
}

#define BIT(parameter) (UINT64_C(1) << MM_PARAMETER_##parameter)

/* The dimensions that operands tell, also if their names stand for nothing. given: bits of what was named. */
static uint64_t told_dimensions(const struct mm_call *values, uint64_t given) {
    const uint64_t of_a = values->op == MM_MATMUL ? BIT(M) | BIT(K) : BIT(M) | BIT(N);
    return ((given & BIT(A_FROM)) != 0 && !mm_operand_is_made(values, 0) ? of_a : 0) |
           ((given & BIT(B_FROM)) != 0 && !mm_operand_is_made(values, 1) ? BIT(K) | BIT(N) : 0);
}

static enum mm_status read_members(struct reading *reading, struct mm_error *error) {
    struct mm_json_reader reader = {0};
    struct mm_json_member member;
    struct mm_error first = {.status = MM_OK};
    uint64_t given = 0;
    while (mm_json_step(&reader, reading->text, reading->bytes, &member)) {
        struct mm_error one = {.status = MM_OK};
        enum mm_parameter parameter = find_operand(reading, member.name.text);
        if (parameter == MM_PARAMETER_COUNT)
            parameter = mm_call_find(&reading->values, reading->place, member.name.text, member.name.length);
        const uint64_t bit = parameter == MM_PARAMETER_COUNT ? 0 : UINT64_C(1) << parameter;
        if ((given & bit) != 0)
            mm_fail_field(&one, MM_BAD_REQUEST, member.name.text, "%s is given twice; give it once",
                          member.name.text);
        else
            (void)read_member(reading, parameter, &member, &one);
        given |= bit;
        /* Only the first failure gets a line and a column, since that reads the text from its beginning. */
        if (keep_first(&first, &one) && one.status == MM_BAD_REQUEST)
            mm_json_locate(reading->text, member.token, &first);
    }
    const char *missing =
        mm_call_missing_dimension(&reading->values, given | told_dimensions(&reading->values, given));
    if (reading->place == MM_CALL_BENCHMARK && missing != NULL) {
        struct mm_error one;
        mm_fail_field(&one, MM_BAD_REQUEST, missing,
                      "%s is missing; send a whole number of at least 1, as in " MM_BENCHMARK_EXAMPLE,
                      missing);
        (void)keep_first(&first, &one);
    }
    if (first.status != MM_OK && error != NULL)
        *error = first;
    return first.status;
}

static enum mm_status judge_stored(const struct mm_call *values, unsigned index, struct mm_error *error) {
    const struct mm_stored *value = mm_operand_source(values, index)->stored;
    const struct mm_shape *shape = &value->shape;
    char text[MM_SHAPE_TEXT_MAX];
    if (shape->rank == 2 && shape->dims[0] > 0 && shape->dims[1] > 0)
        return MM_OK;
    mm_shape_text(shape, text);
    return mm_fail_field(error, MM_BAD_SHAPE, mm_call_operand_names[index],
                         "%s is the stored matrix '%s', whose shape is '%s', but a benchmark takes matrices "
                         "of two dimensions, neither of them 0",
                         mm_call_operand_names[index], value->name, text);
}

/* If one operand of two was named, the other is uniform(0). Then the shapes of both are known. */
static enum mm_status complete_operands(struct mm_call *values, struct mm_error *error) {
    static const struct mm_shape *const no_inline[MM_CALL_OPERANDS_MAX] = {NULL, NULL};
    enum mm_status status = MM_OK;
    if (mm_operand_all_are_inline(values))
        return MM_OK;
    for (unsigned index = 0; index < mm_call_operands(values) && status == MM_OK; index++) {
        struct mm_source *source = &values->operands[index].source;
        if (source->kind == MM_SOURCE_HOST)
            source->kind = MM_SOURCE_UNIFORM;
        if (source->kind == MM_SOURCE_STORED)
            status = judge_stored(values, index, error);
    }
    if (status == MM_OK)
        status = mm_operand_shapes(values, no_inline, error);
    if (status != MM_OK)
        return status;
    mm_call_view(values);
    struct mm_product product = mm_call_product(values);
    return mm_product_conform(values->op, &product, error);
}

enum mm_status mm_benchmark_decode(const void *body, size_t bytes, const struct mm_limits *limits,
                                   struct mm_held *held, struct mm_benchmark_call *call,
                                   struct mm_error *error) {
    struct reading reading = {.call = call, .limits = limits, .text = body, .bytes = bytes};
    struct mm_call *values = &reading.values;
    const uint64_t *numbers = values->numbers;
    *call = (struct mm_benchmark_call){0};
    enum mm_status status = mm_json_check(body, bytes, MM_BENCHMARK_EXAMPLE, error);
    if (status == MM_OK)
        status = read_op(&reading, error);
    if (status != MM_OK)
        return status;
    mm_call_init(values, call->op->op);
    values->held = held;
    values->numbers[MM_PARAMETER_REPEATS] = MM_BENCHMARK_REPEATS;
    reading.place = call->op->place;
    status = read_members(&reading, error);
    if (status != MM_OK)
        return status;
    call->timeout_ms = numbers[MM_PARAMETER_TIMEOUT_MS];
    if (reading.place == MM_CALL_OCCUPANCY)
        return mm_occupancy_complete(&call->occupancy, error);
    if (reading.place == MM_CALL_PROBE) {
        _Static_assert(sizeof call->backend == sizeof values->names[0], "they are the same names");
        memcpy(call->backend, values->names[MM_PARAMETER_BACKEND], sizeof call->backend);
        return mm_access_combine(&reading.access, &call->probe, error);
    }
    status = mm_call_resolve(values, error);
    if (status == MM_OK)
        status = complete_operands(values, error);
    call->request = (struct mm_benchmark_request){
        .op = values->op,
        .m = (size_t)numbers[MM_PARAMETER_M],
        .n = (size_t)numbers[MM_PARAMETER_N],
        .k = (size_t)numbers[MM_PARAMETER_K],
        .transpose_a = numbers[MM_PARAMETER_TRANSPOSE_A] != 0,
        .transpose_b = numbers[MM_PARAMETER_TRANSPOSE_B] != 0,
        .dtype = values->dtype,
        .c_dtype = values->result_dtype,
        .a_source = values->operands[0].source,
        .b_source = values->operands[1].source,
        .repeats = numbers[MM_PARAMETER_REPEATS],
    };
    return status;
}
