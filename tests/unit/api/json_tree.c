/* api/json_tree: whatever a body is made of, what Jansson takes for it is counted in the budget. */
#include "api/json_tree.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

enum { BODY_BYTES = 300 << 10, BUDGET_BYTES = 128 << 20 };

/* What Jansson has now and the most that it had, with the C library's own words; and the same of the budget.
 */
static size_t taken_bytes, taken_most, counted_most;
static struct mm_buffers *buffers;

static void *take(size_t bytes) {
    void *memory = malloc(bytes);
    taken_bytes += memory == NULL ? 0 : malloc_usable_size(memory) + sizeof(size_t);
    taken_most = taken_bytes > taken_most ? taken_bytes : taken_most;
    counted_most = mm_buffers_used(buffers) > counted_most ? mm_buffers_used(buffers) : counted_most;
    return memory;
}

static void give_back(void *memory) {
    if (memory != NULL)
        taken_bytes -= malloc_usable_size(memory) + sizeof(size_t);
    free(memory);
}

/* A body of BODY_BYTES or a little more: begin, as many of `part` as it takes, each with its number where it
 * has a place for that, and end. The caller frees. */
static char *make_body(const char *begin, const char *part, const char *end, size_t *bytes) {
    char *text = malloc(2 * BODY_BYTES);
    assert_non_null(text);
    const char *place = strchr(part, '#');
    char *at = stpcpy(text, begin);
    for (unsigned number = 0; at - text < BODY_BYTES; number++) {
        if (place == NULL)
            at = stpcpy(at, part);
        else
            at += sprintf(at, "%.*s%x%s", (int)(place - part), part, number, place + 1);
    }
    at = stpcpy(at, end);
    *bytes = (size_t)(at - text);
    return text;
}

static void what_is_taken_is_counted(void **state) {
    static const struct {
        const char *begin, *part, *end;
    } cases[] = {
        {"{\"a\":\"", "x", "\"}"},
        {"{\"a\":\"", "\\u0078", "\"}"},
        {"{\"a\":\"", "x", ""},
        {"{\"", "k", "\":1}"},
        {"{\"a\":", "x", "}"},
        {"{\"a\":[[", "1", "]]}"},
        {"{\"a\":[[", "1,", "1]]}"},
        {"{\"a\":[[", "1e1, ", "1]]}"},
        {"{\"a\":[[", "\"\",", "1]]}"},
        {"{\"a\":[[", "\"NaN\",", "1]]}"},
        {"{\"a\":[[", "true,", "1]]}"},
        {"{\"a\":[", "[],", "[]]}"},
        {"{\"a\":[", "[1],", "[1]]}"},
        {"{\"a\":[", "{},", "{}]}"},
        {"{\"a\":[", "{\"a\":1},", "1]}"},
        {"{", "\"#\":1,", "\"a\":1}"},
        {"{", "\"#\":{},", "\"a\":1}"},
        {"{\"a\":", "[", "}"},
        {"", " ", "[]"},
    };
    (void)state;
    buffers = mm_buffers_open(BUDGET_BYTES);
    assert_non_null(buffers);
    json_set_alloc_funcs(take, give_back);
    for (size_t index = 0; index < sizeof cases / sizeof cases[0]; index++) {
        static const struct mm_limits limits = {1 << 20, 1 << 20, 1 << 20};
        struct mm_call call;
        struct mm_body body = {0};
        struct mm_error error;
        char *text = make_body(cases[index].begin, cases[index].part, cases[index].end, &body.bytes);
        body.data = text;
        taken_bytes = taken_most = counted_most = 0;
        mm_call_init(&call, MM_TRANSPOSE);
        const enum mm_status status = mm_json_tree_decode(&call, &body, &limits, buffers, &error);
        mm_call_release(&call, buffers);
        assert_true(status == MM_OK || status == MM_BAD_REQUEST || status == MM_TOO_LARGE);
        assert_int_equal(taken_bytes, 0);
        assert_int_equal(mm_buffers_used(buffers), 0);
        if (counted_most < taken_most)
            fail_msg("%s%s…%s: %zu bytes taken, but %zu counted", cases[index].begin, cases[index].part,
                     cases[index].end, taken_most, counted_most);
        free(text);
    }
    json_set_alloc_funcs(malloc, free);
    mm_buffers_close(buffers);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_taken_is_counted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
