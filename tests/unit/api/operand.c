/* Tests generated operands: how requests name them, and their shapes. */
#include "api/call.h"
#include "tests/unit/unit.h"

static const struct mm_limits limits = {
    .dimension_max = 2147483647, .body_bytes_max = 1 << 20, .memory_bytes_max = 1 << 20};
static struct mm_error error;

static enum mm_status set(struct mm_call *call, const char *name, const char *value) {
    error = (struct mm_error){0};
    return mm_parameter_set_text(&call->operands.parameters, MM_IN_FORM, name, strlen(name), value,
                                 strlen(value), &limits, &error);
}

static void sources(void **state) {
    static const struct {
        const char *text;
        enum mm_source_kind kind;
        uint64_t seed;
    } good[] = {{"uniform(0)", MM_SOURCE_UNIFORM, 0},
                {"uniform(18446744073709551615)", MM_SOURCE_UNIFORM, UINT64_MAX},
                {"uniform(007)", MM_SOURCE_UNIFORM, 7},
                {"identity()", MM_SOURCE_IDENTITY, 0}};
    static const char bad[] =
        "uniform|uniform()|uniform(-1)|uniform(1|uniform(18446744073709551616)|uniform( 1)|"
        "identity|identity(1)|Identity()|weights||uniform(1))";
    for (size_t index = 0; index < COUNT(good); index++) {
        struct mm_call call;
        mm_call_init(&call, MM_MATMUL);
        assert_int_equal(set(&call, "b_from", good[index].text), MM_OK);
        assert_int_equal(call.operands.of[1].source.kind, good[index].kind);
        assert_true(call.operands.of[1].source.seed == good[index].seed);
        assert_true(mm_operand_is_generated(&call.operands.of[1]) &&
                    !mm_operand_is_generated(&call.operands.of[0]));
        assert_int_equal(set(&call, "b_from", good[index].text), MM_OK);
        assert_int_equal(set(&call, "b_from", "uniform(8)"), MM_BAD_REQUEST);
    }
    EACH(text, bad) {
        struct mm_call call;
        mm_call_init(&call, MM_TRANSPOSE);
        if (set(&call, "a_from", text) != MM_UNSUPPORTED || strcmp(error.field, "a_from") != 0 ||
            call.operands.parameters.given != 0)
            fail_msg("%s: %s", text, error.detail);
    }
}

/* `a` and `b` are the expected operands, or "" if there is none. */
static const struct {
    const char *given, *a, *b;
    enum mm_status status;
    const char *a_shape, *b_shape; /* expected shapes; or the error's field and "" */
} shapes[] = {
    {"a_from=uniform(1)|b_from=identity()|m=2|k=3|n=4", "", "", MM_OK, "2×3", "3×4"},
    {"a_from=uniform(1)|b_from=identity()|m=2|k=3|n=4|transpose_a=1|transpose_b=1", "", "", MM_OK, "3×2",
     "4×3"},
    {"a_from=uniform(1)|b_from=identity()|a_shape=5,2,3|b_shape=3", "", "", MM_OK, "5×2×3", "3"},
    {"a_from=uniform(1)|m=2", "", "3,4", MM_OK, "2×3", "3×4"},
    {"a_from=uniform(1)|m=2|k=3|n=4", "", "3,4", MM_OK, "2×3", "3×4"},
    {"a_from=uniform(1)|m=2|transpose_b=1", "", "4,3", MM_OK, "2×3", "4×3"},
    {"a_from=uniform(1)|m=2", "", "3", MM_OK, "2×3", "3"},
    {"a_from=uniform(1)|a_shape=2,3|b_shape=3,4", "", "3,4", MM_OK, "2×3", "3×4"},
    {"b_from=uniform(1)|n=4", "7,2,3", "", MM_OK, "7×2×3", "3×4"},
    {"b_from=uniform(1)|n=4", "3", "", MM_OK, "3", "3×4"},
    {"b_from=uniform(1)|n=4|transpose_a=1", "3,2", "", MM_OK, "3×2", "3×4"},
    {"b_from=uniform(1)", "2,3", "", MM_BAD_REQUEST, "n", ""},
    {"a_from=uniform(1)", "", "3,4", MM_BAD_REQUEST, "m", ""},
    {"a_from=uniform(1)|b_from=uniform(1)|m=2|n=2", "", "", MM_BAD_REQUEST, "k", ""},
    {"a_from=uniform(1)|m=2|k=2", "", "3,4", MM_BAD_SHAPE, "k", ""},
    {"a_from=uniform(1)|m=2|n=5", "", "3,4", MM_BAD_SHAPE, "n", ""},
    {"a_from=uniform(1)|a_shape=2,3|b_shape=3,5", "", "3,4", MM_BAD_SHAPE, "b_shape", ""},
    {"a_from=uniform(1)|a_shape=2,3|m=2", "", "3,4", MM_BAD_REQUEST, "m", ""},
    {"a_from=uniform(1)|m=2", "2,3", "3,4", MM_BAD_REQUEST, "a", ""},
    {"m=2", "2,3", "3,4", MM_BAD_REQUEST, "m", ""},
    {"c_from=uniform(1)|m=2", "2,3", "3,4", MM_BAD_REQUEST, "m", ""},
    {"c_shape=2,4", "2,3", "3,4", MM_BAD_REQUEST, "c_shape", ""},
    {"a_from=uniform(1)|m=2|c_from=uniform(1)|c_shape=2,4", "", "3,4", MM_OK, "2×3", "3×4"},
};

static bool read_shape(const char *text, struct mm_shape *shape) {
    *shape = (struct mm_shape){.rank = 0};
    for (const char *at = text; *at != '\0'; at += strcspn(at, ",") + (strchr(at, ',') != NULL))
        shape->dims[shape->rank++] = strtoull(at, NULL, 10);
    return shape->rank > 0;
}

/* If c_shape is missing, a generated c has the result's shape. A generated bias has n elements. */
static void shapes_of_optional_operands(void **state) {
    static const struct {
        const char *c_shape, *a, *b, *c, *bias;
    } cases[] = {
        {NULL, "2,3", "3,4", "2×4", "4"},
        {NULL, "5,1,2,3", "7,3,4", "5×7×2×4", "4"},
        {"1,2,4", "5,2,3", "3,4", "1×2×4", "4"},
        {NULL, "3", "3,4", "4", "4"},
        {NULL, "2,3", "3", "2", "2"}, /* no bias fits */
        {NULL, "3", "3", "", "1"},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        struct mm_call call;
        struct mm_shape a, b;
        char c_text[MM_SHAPE_TEXT_MAX], bias_text[MM_SHAPE_TEXT_MAX];
        mm_call_init(&call, MM_MATMUL);
        assert_int_equal(set(&call, "c_from", "uniform(1)"), MM_OK);
        assert_int_equal(set(&call, "bias_from", "identity()"), MM_OK);
        assert_int_equal(set(&call, "dtype", "int8"), MM_OK);
        if (cases[index].c_shape != NULL)
            assert_int_equal(set(&call, "c_shape", cases[index].c_shape), MM_OK);
        read_shape(cases[index].a, &a);
        read_shape(cases[index].b, &b);
        const struct mm_shape *const inlines[MM_OPERANDS_MAX] = {&a, &b};
        assert_int_equal(mm_call_resolve(&call.operands, &error), MM_OK);
        assert_int_equal(mm_operands_set_shapes(&call.operands, inlines, &error), MM_OK);
        mm_operands_view(&call.operands);
        mm_shape_text(&call.operands.of[MM_OPERAND_ADDEND].shape, c_text);
        mm_shape_text(&call.operands.of[MM_OPERAND_BIAS].shape, bias_text);
        assert_string_equal(c_text, cases[index].c);
        assert_string_equal(bias_text, cases[index].bias);
        assert_int_equal(call.operands.of[MM_OPERAND_ADDEND].view.dtype, MM_INT32);
        assert_int_equal(call.operands.of[MM_OPERAND_BIAS].view.dtype, MM_INT32);
        assert_int_equal(call.operands.of[MM_OPERAND_A].view.dtype, MM_INT8);
    }
}

static void shapes_of_made_operands(void **state) {
    for (size_t index = 0; index < COUNT(shapes); index++) {
        struct mm_call call;
        struct mm_shape a, b;
        char a_text[MM_SHAPE_TEXT_MAX], b_text[MM_SHAPE_TEXT_MAX];
        mm_call_init(&call, MM_MATMUL);
        EACH(pair, shapes[index].given) {
            char name[32];
            snprintf(name, sizeof name, "%.*s", (int)strcspn(pair, "="), pair);
            assert_int_equal(set(&call, name, strchr(pair, '=') + 1), MM_OK);
        }
        const struct mm_shape *const inlines[MM_OPERANDS_MAX] = {read_shape(shapes[index].a, &a) ? &a : NULL,
                                                                 read_shape(shapes[index].b, &b) ? &b : NULL};
        error = (struct mm_error){0};
        const enum mm_status status = mm_operands_set_shapes(&call.operands, inlines, &error);
        mm_shape_text(&call.operands.of[0].shape, a_text);
        mm_shape_text(&call.operands.of[1].shape, b_text);
        if (status != shapes[index].status ||
            strcmp(status == MM_OK ? a_text : error.field, shapes[index].a_shape) != 0 ||
            (status == MM_OK && strcmp(b_text, shapes[index].b_shape) != 0))
            fail_msg("%s: %s, %s by %s, %s", shapes[index].given, mm_status_name(status), a_text, b_text,
                     error.detail);
    }
}

/* Only the CPU needs host memory for a generated operand. A GPU generates operands in its own memory. */
static void host_memory_of_generated_operands(void **state) {
    struct mm_call call;
    size_t bytes[MM_OPERANDS_MAX];
    mm_call_init(&call, MM_MATMUL);
    EACH(pair, "a_from=uniform(1)|m=1000|reply=none") {
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(pair, "="), pair);
        assert_int_equal(set(&call, name, strchr(pair, '=') + 1), MM_OK);
    }
    const struct mm_shape b = mm_shape_of_matrix(300, 500);
    const struct mm_shape *const inlines[MM_OPERANDS_MAX] = {NULL, &b};
    assert_int_equal(mm_operands_set_shapes(&call.operands, inlines, NULL), MM_OK);
    mm_operands_view(&call.operands);
    assert_int_equal(mm_call_sizes(&call.operands, &limits, bytes, &error), MM_OK);
    assert_int_equal(bytes[0], 0);
    assert_int_equal(bytes[1], 300 * 500 * 4);
    struct mm_product product = mm_call_product(&call);
    assert_int_equal(mm_call_check_memory(&call, &product, false, 0, &limits, &error), MM_OK);
    assert_int_equal(mm_call_check_memory(&call, &product, false, 500 << 10, &limits, &error), MM_TOO_LARGE);
    assert_int_equal(mm_call_check_memory(&call, &product, true, 0, &limits, &error), MM_TOO_LARGE);
    product.a = mm_matrix_dense(MM_FLOAT32, 1000, 0, NULL); /* dropped */
    assert_int_equal(mm_call_check_memory(&call, &product, true, 0, &limits, &error), MM_OK);
}

RUN_TESTS(sources, shapes_of_made_operands, shapes_of_optional_operands, host_memory_of_generated_operands)
