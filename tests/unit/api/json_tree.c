/* api/json_tree: whatever a body is made of, what Jansson takes for it is counted in the budget. */
#include "api/json_tree.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

enum { BODY_BYTES_LEAST = 64 << 10, BODY_BYTES_MOST = 640 << 10, BUDGET_BYTES = 128 << 20 };

/* What Jansson has now, by our allocator and with the C library's own words; and by how much it ever was more
 * than is counted in the budget. */
static size_t taken_bytes, uncounted_most;
static struct mm_buffers *buffers;
static json_malloc_t our_allocate;
static json_free_t our_release;
static bool is_janssons; /* what malloc and free are called for */

void *__real_malloc(size_t);
void *__wrap_malloc(size_t);
void __real_free(void *);
void __wrap_free(void *);

void *__wrap_malloc(size_t bytes) {
    void *memory = __real_malloc(bytes);
    if (is_janssons && memory != NULL)
        taken_bytes += malloc_usable_size(memory) + sizeof(size_t);
    return memory;
}

void __wrap_free(void *memory) {
    if (is_janssons && memory != NULL)
        taken_bytes -= malloc_usable_size(memory) + sizeof(size_t);
    __real_free(memory);
}

static void *take(size_t bytes) {
    is_janssons = true;
    void *memory = our_allocate(bytes);
    is_janssons = false;
    const size_t counted = mm_buffers_used(buffers);
    if (taken_bytes > counted && taken_bytes - counted > uncounted_most)
        uncounted_most = taken_bytes - counted;
    return memory;
}

static void give_back(void *memory) {
    is_janssons = true;
    our_release(memory);
    is_janssons = false;
}

struct kind {
    const char *begin, *part, *end;
};

/* Begin, so many of `part`, each with its number where it has a place for that, and end. The caller frees. */
static char *make_body(const struct kind *kind, unsigned count, size_t *bytes) {
    enum { NUMBER_BYTES = 8 };
    char *text =
        malloc(strlen(kind->begin) + count * (strlen(kind->part) + NUMBER_BYTES) + strlen(kind->end) + 1);
    assert_non_null(text);
    const char *place = strchr(kind->part, '#');
    char *at = stpcpy(text, kind->begin);
    for (unsigned number = 0; number < count; number++) {
        if (place == NULL)
            at = stpcpy(at, kind->part);
        else
            at += sprintf(at, "%.*s%x%s", (int)(place - kind->part), kind->part, number, place + 1);
    }
    at = stpcpy(at, kind->end);
    *bytes = (size_t)(at - text);
    return text;
}

static void decode(const struct mm_body *body) {
    static const struct mm_limits limits = {1 << 20, 1 << 20, 1 << 20};
    struct mm_call call;
    struct mm_error error;
    mm_call_init(&call, MM_TRANSPOSE);
    const enum mm_status status = mm_json_tree_decode(&call, body, &limits, buffers, &error);
    mm_call_release(&call, buffers);
    assert_true(status == MM_OK || status == MM_BAD_REQUEST || status == MM_TOO_LARGE);
    assert_int_equal(taken_bytes, 0);
    assert_int_equal(mm_buffers_used(buffers), 0);
}

/* False where the body has not one of the sizes that are tried. */
static bool try_count(const struct kind *kind, unsigned count) {
    struct mm_body body = {0};
    char *text = make_body(kind, count, &body.bytes);
    body.data = text;
    const bool has_size = body.bytes > BODY_BYTES_LEAST && body.bytes <= BODY_BYTES_MOST;
    uncounted_most = 0;
    if (has_size)
        decode(&body);
    free(text);
    if (uncounted_most > 0)
        fail_msg("%s%s…%s of %zu bytes: %zu bytes taken that are not counted", kind->begin, kind->part,
                 kind->end, body.bytes, uncounted_most);
    return has_size;
}

/* Just past a power of two, where a table that doubles is least full. */
static void try_kind(const struct kind *kind) {
    unsigned tried = 0;
    for (unsigned count = 1 << 10; count <= 1 << 20; count *= 2)
        tried += try_count(kind, count) + try_count(kind, count + 1);
    assert_true(tried >= 4);
}

static void what_is_taken_is_counted(void **state) {
    static const struct kind kinds[] = {
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
    json_get_alloc_funcs(&our_allocate, &our_release);
    json_set_alloc_funcs(take, give_back);
    for (size_t index = 0; index < sizeof kinds / sizeof kinds[0]; index++)
        try_kind(&kinds[index]);
    json_set_alloc_funcs(our_allocate, our_release);
    mm_buffers_close(buffers);
}

/* Each large piece from the system, in whole pages. This comes first, while the C library has nothing free.
 */
static void what_is_mapped_is_counted(void **state) {
    (void)mallopt(M_MMAP_THRESHOLD, BODY_BYTES_LEAST);
    what_is_taken_is_counted(state);
}

static void what_is_of_the_heap_is_counted(void **state) {
    (void)mallopt(M_MMAP_MAX, 0);
    what_is_taken_is_counted(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_mapped_is_counted),
        cmocka_unit_test(what_is_of_the_heap_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
