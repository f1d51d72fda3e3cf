/* Tests requests and replies that have only a part or a reduction of the result. */
#include "api/call.h"
#include "tests/unit/unit.h"

#include <math.h>

static const struct mm_limits limits = {
    .dimension_max = 1000, .body_bytes_max = 1000, .memory_bytes_max = 1000};
static struct mm_error error;

static enum mm_status set(struct mm_call *call, const char *name, const char *value) {
    error = (struct mm_error){0};
    return mm_parameter_set_text(&call->operands.parameters, MM_IN_QUERY, name, strlen(name), value,
                                 strlen(value), &limits, &error);
}

static void forms(void **state) {
    static const struct {
        const char *name, *good, *bad;
    } rows[] = {
        {"rows", "0:0|1:|:|:2|007:8|18446744073709551616:", "|1|1:2:3|a:b|-1:2|1 :2|1:2,"},
        {"cols", ":|0:1", "0-1|0..1"},
        {"reduce", "sum|trace,min,max,max_abs,norm,finite|sum,sum", "|,|sum,|mean|Sum|sum, min|sum;min"},
        {"reply", "matrix|none", "|all|None|true"},
    };
    for (size_t index = 0; index < COUNT(rows); index++) {
        EACH(good, rows[index].good) {
            struct mm_call call;
            mm_call_init(&call, MM_TRANSPOSE);
            if (set(&call, rows[index].name, good) != MM_OK || set(&call, rows[index].name, good) != MM_OK)
                fail_msg("%s=%s: %s", rows[index].name, good, error.detail);
        }
        EACH(bad, rows[index].bad) {
            struct mm_call call;
            mm_call_init(&call, MM_MATMUL);
            if (set(&call, rows[index].name, bad) != MM_BAD_REQUEST ||
                strcmp(error.field, rows[index].name) != 0)
                fail_msg("%s=%s: %s", rows[index].name, bad, error.detail);
        }
    }
}

static void returned_matrix_and_figures(void **state) {
    static const struct {
        const char *reply, *reduce;
        bool returns;
    } cases[] = {{NULL, NULL, true}, {"none", NULL, false}, {NULL, "sum", false}, {"matrix", "sum", true}};
    for (size_t index = 0; index < COUNT(cases); index++) {
        struct mm_call call;
        mm_call_init(&call, MM_MATMUL);
        if (cases[index].reply != NULL)
            assert_int_equal(set(&call, "reply", cases[index].reply), MM_OK);
        if (cases[index].reduce != NULL)
            assert_int_equal(set(&call, "reduce", cases[index].reduce), MM_OK);
        assert_true(mm_selection_has_matrix(&call.selection) == cases[index].returns);
        assert_true(mm_selection_is_part(&call.selection) == (cases[index].reduce != NULL));
    }
}

static void parts(void **state) {
    static const struct {
        struct mm_shape shape;
        const char *rows, *cols, *reduce;
        enum mm_status status;
        struct mm_window part;
        const char *text;
    } cases[] = {
        {{2, {4, 5}}, NULL, NULL, NULL, MM_OK, {1, 4, 5, 0, 4, 0, 5}, "4×5"},
        {{2, {4, 5}}, "1:3", NULL, NULL, MM_OK, {1, 4, 5, 1, 2, 0, 5}, "2×5"},
        {{2, {4, 5}}, ":", "5:", NULL, MM_OK, {1, 4, 5, 0, 4, 5, 0}, "4×0"},
        {{3, {2, 4, 5}}, "4:4", ":1", "sum", MM_OK, {2, 4, 5, 4, 0, 0, 1}, "2×0×1"},
        {{1, {6}}, NULL, "1:3", NULL, MM_OK, {1, 1, 6, 0, 1, 1, 2}, "2"},
        {{2, {4, 5}}, NULL, "1:", "trace", MM_OK, {1, 4, 5, 0, 4, 1, 4}, "4×4"},
        {{0}, NULL, NULL, "sum", MM_OK, {1, 1, 1, 0, 1, 0, 1}, ""},
        {{2, {4, 5}}, "0:5", NULL, NULL, MM_BAD_REQUEST, {0}, "rows"},
        {{2, {4, 5}}, "2:1", NULL, NULL, MM_BAD_REQUEST, {0}, "rows"},
        {{2, {4, 5}}, "5:", NULL, NULL, MM_BAD_REQUEST, {0}, "rows"},
        {{2, {4, 5}}, NULL, ":99999999999999999999", NULL, MM_BAD_REQUEST, {0}, "cols"},
        {{1, {6}}, "0:1", NULL, NULL, MM_BAD_REQUEST, {0}, "rows"},
        {{0}, NULL, ":", NULL, MM_BAD_REQUEST, {0}, "cols"},
        {{2, {4, 5}}, NULL, NULL, "trace", MM_BAD_SHAPE, {0}, "reduce"},
        {{1, {1}}, NULL, NULL, "trace", MM_BAD_SHAPE, {0}, "reduce"},
        {{0}, NULL, NULL, "trace", MM_BAD_SHAPE, {0}, "reduce"},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        struct mm_call call;
        struct mm_shape shape = cases[index].shape;
        struct mm_window part;
        char text[MM_SHAPE_TEXT_MAX];
        mm_call_init(&call, MM_MATMUL);
        if (cases[index].rows != NULL)
            assert_int_equal(set(&call, "rows", cases[index].rows), MM_OK);
        if (cases[index].cols != NULL)
            assert_int_equal(set(&call, "cols", cases[index].cols), MM_OK);
        if (cases[index].reduce != NULL)
            assert_int_equal(set(&call, "reduce", cases[index].reduce), MM_OK);
        error = (struct mm_error){0};
        const enum mm_status status = mm_selection_cut(&call.selection, &shape, &part, &error);
        mm_shape_text(&shape, text);
        if (status != cases[index].status ||
            strcmp(status == MM_OK ? text : error.field, cases[index].text) != 0 ||
            (status == MM_OK && memcmp(&part, &cases[index].part, sizeof part) != 0))
            fail_msg("case %zu: %s, %s: %s", index, mm_status_name(status), text, error.detail);
    }
}

static void expect_figures(const char *list, enum mm_dtype dtype, const struct mm_reduction *seen,
                           const char *expected) {
    char text[MM_FIGURES_TEXT_MAX + 1];
    uint64_t figures;
    assert_true(mm_result_read_figures((struct mm_slice){list, strlen(list)}, &figures));
    text[mm_result_figures(figures, dtype, seen, text)] = '\0';
    assert_string_equal(text, expected);
}

static void figures_as_text(void **state) {
    const char *all = "finite,norm,max_abs,max,min,trace,sum";
    struct mm_reduction seen = mm_reduction_none();
    expect_figures(all, MM_INT32, &seen,
                   quoted("{`sum`: 0, `trace`: 0, `min`: null, `max`: null, `max_abs`: 0, `norm`: 0, "
                          "`finite`: true}"));
    mm_reduce_whole(&seen, INT64_MIN, true);
    mm_reduce_whole(&seen, INT64_MIN, false);
    expect_figures("sum,trace,max_abs", MM_INT64, &seen,
                   quoted("{`sum`: -18446744073709551616, `trace`: -9223372036854775808, `max_abs`: "
                          "9223372036854775808}"));
    seen.whole_sum = (struct mm_int128){0, UINT64_C(1) << 63};
    expect_figures("sum", MM_INT64, &seen, quoted("{`sum`: -170141183460469231731687303715884105728}"));
    seen = mm_reduction_none();
    mm_reduce_real(&seen, 0.1, true);
    mm_reduce_real(&seen, -INFINITY, false);
    expect_figures(all, MM_FLOAT64, &seen,
                   quoted("{`sum`: `-Infinity`, `trace`: 0.1, `min`: `-Infinity`, `max`: 0.1, `max_abs`: "
                          "`Infinity`, `norm`: `Infinity`, `finite`: false}"));
    mm_reduce_real(&seen, NAN, false);
    expect_figures("min,max", MM_FLOAT32, &seen, quoted("{`min`: `NaN`, `max`: `NaN`}"));
}

RUN_TESTS(forms, returned_matrix_and_figures, parts, figures_as_text)
