/* Tests the memory and the time that a JSON body needs while it arrives in chunks. */
#include "api/call.h"
#include "api/json/json_scan.h"
#include "api/lab/benchmark.h"
#include "tests/unit/memory.h"

#include <math.h>
#include <time.h>

enum { BUDGET_BYTES = 1 << 20 };

static const struct mm_limits limits = {
    .dimension_max = 512, .body_bytes_max = SIZE_MAX, .memory_bytes_max = 1 << 20};

static struct mm_json_scan *scan;
static struct mm_call call;

static void begin(enum mm_op op, size_t bytes, const struct mm_limits *within) {
    mm_call_init(&call, op);
    scan = mm_json_reader.begin(&call.operands, NULL, bytes, within, &memory);
    assert_non_null(scan);
}

static void feed(const char *text, size_t bytes) {
    assert_int_equal(mm_json_reader.feed(scan, (char *)(uintptr_t)text, bytes), bytes);
}

static enum mm_status finish(const char *text, size_t bytes, struct mm_error *error) {
    const struct mm_body body = {.data = (char *)(uintptr_t)text, .bytes = bytes};
    return mm_json_reader.finish(scan, &call.operands, &body, error);
}

/* Decodes a product whose body arrives in one chunk. */
static enum mm_status read_whole(const char *text) {
    const size_t bytes = strlen(text);
    begin(MM_MATMUL, bytes, &limits);
    feed(text, bytes);
    return finish(text, bytes, NULL);
}

/* Returns a row that repeats a number, followed by `tail`. The caller frees it. */
static char *make_row(size_t count, const char *number, const char *tail) {
    char *text = malloc(count * (strlen(number) + 1) + 64);
    assert_non_null(text);
    char *end = stpcpy(text, "{\"a\":[[");
    for (size_t index = 0; index < count; index++)
        end += sprintf(end, "%s%s", index > 0 ? "," : "", number);
    sprintf(end, "]]%s}", tail);
    return text;
}

/* If the whole body is there, counting its commas gives the number of elements. So exactly enough memory is
 * allocated. */
static void test_memory_of_a_whole_body(void **state) {
    enum { COUNT = 500, BYTES = COUNT * sizeof(float) };
    char number[300];
    sprintf(number, "0.%0290d", 7);
    char *text = make_row(COUNT, number, ",\"b\":[[1]]");
    open_budget(BYTES + 4 + MM_JSON_ALIGNMENT);
    assert_int_equal(read_whole(text), MM_OK);
    assert_int_equal(call.operands.of[0].view.cols, COUNT);
    assert_true(memory.used_bytes <= BYTES + 4 + MM_JSON_ALIGNMENT);
    mm_operands_release(&call.operands, &memory);
    close_budget();
    free(text);
}

/* A body in chunks reserves memory in increments. If the body's length is known, elements are not moved. */
static void test_memory_of_chunks(void **state) {
    enum { COUNT = 40000, BYTES = COUNT * sizeof(float) };
    const struct mm_limits wide = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
    char *text = make_row(COUNT, "0.123456", "");
    const size_t length = strlen(text);
    for (int known = 0; known < 2; known++) {
        open_budget(known ? 2 * BYTES : 3 * BYTES);
        begin(MM_TRANSPOSE, known ? length : MM_LENGTH_UNKNOWN, &wide);
        for (size_t at = 0; at < length; at += 8192)
            feed(text, length - at < 8192 ? length : at + 8192);
        assert_true(mm_json_reader.is_quick(scan));
        assert_true(memory.used_bytes >= BYTES && memory.used_bytes <= BYTES * 7 / 4);
        assert_int_equal(finish(text, length, NULL), MM_OK);
        assert_true(((const float *)call.operands.of[0].view.data)[COUNT - 1] == 0.123456f);
        mm_operands_release(&call.operands, &memory);
        close_budget();
    }
    free(text);
}

/* A body is validated even without memory for its elements. The error names the memory that they need. */
static void test_memory_is_short_at_first(void **state) {
    enum { COUNT = 100, BYTES = COUNT * sizeof(double) };
    open_budget(BYTES + 1);
    struct mm_buffer taken;
    for (int ways = 0; ways < 4; ways++) {
        char *text = make_row(COUNT, "0.1", ways & 1 ? ",\"dtype\":\"float64\"" : "");
        const size_t bytes = strlen(text);
        struct mm_error error;
        assert_int_equal(mm_reservation_acquire(&memory, BYTES, &taken, NULL), MM_OK);
        begin(MM_TRANSPOSE, bytes, &limits);
        feed(text, bytes);
        assert_false(mm_json_reader.is_quick(scan));
        if (ways & 2)
            mm_reservation_free(&memory, &taken);
        enum mm_status status = finish(text, bytes, &error);
        assert_int_equal(status, ways & 2 ? MM_OK : MM_BUSY);
        if (status == MM_BUSY) {
            assert_int_equal(error.needed_bytes, COUNT * (ways & 1 ? sizeof(double) : sizeof(float)));
            mm_reservation_free(&memory, &taken);
            assert_int_equal(finish(text, bytes, &error), MM_OK);
        }
        assert_true(ways & 1 ? ((double *)call.operands.of[0].view.data)[COUNT - 1] == 0.1
                             : ((float *)call.operands.of[0].view.data)[COUNT - 1] == 0.1f);
        mm_operands_release(&call.operands, &memory);
        assert_int_equal(memory.used_bytes, 0);
        free(text);
    }
    close_budget();
}

/* Commas in strings are counted too, so the first reservation may be too large. The second attempt reserves
 * only what both matrices need. */
static void test_exact_memory(void **state) {
    static const struct {
        const char *text;
        size_t bytes;
    } bodies[] = {
        {"{\"b\":[[1]],\"a\":[[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18]],\"variant\":\",,,,,,,\"}",
         64 + 72},
        {"{\"a\":[[1]],\"b\":[[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18]],\"variant\":\",,,,,,,\"}",
         64 + 72},
        {"{\"a\":[[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18]],\"b\":[[1]],\"variant\":\",,,,,,,\"}",
         128 + 4},
        {"{\"b\":[[]],\"a\":[[1,2,3]],\"variant\":\",,,,,,,\"}", 12},
    };
    for (size_t index = 0; index < COUNT(bodies); index++) {
        for (size_t lack = 0; lack < 2; lack++) {
            open_budget(bodies[index].bytes - lack);
            assert_int_equal(read_whole(bodies[index].text), lack == 0 ? MM_OK : MM_BUSY);
            if (lack == 0)
                assert_true(
                    ((const float *)call.operands.of[0].view.data)[0] == 1 &&
                    ((const float *)call.operands.of[0].view.data)[call.operands.of[0].view.cols - 1] ==
                        (float)call.operands.of[0].view.cols);
            else
                mm_json_reader.cancel(scan);
            mm_operands_release(&call.operands, &memory);
            close_budget();
        }
    }
}

/* The element type is known early if the query or an earlier member of the body names it. */
static void test_type_is_noticed(void **state) {
    static const struct {
        const char *query, *text;
        enum mm_dtype dtype;
    } cases[] = {
        {"float32", "{\"a\":[[1]]}", MM_FLOAT32},
        {NULL, "{\"dtype\" : \"float64\",\"a\":[[1]]}", MM_FLOAT64},
        {NULL, "{\"a\":[[1]],\"dtype\":\"float64\"}", MM_FLOAT32},
        {NULL, "{\"variant\":\"int64\",\"a\":[[1]]}", MM_FLOAT32},
        {"int32", "{\"a\":[[1]]}", MM_INT32},
        {"int9", "{\"a\":[[1]]}", MM_FLOAT32},
    };
    open_budget(BUDGET_BYTES);
    for (size_t index = 0; index < COUNT(cases); index++) {
        mm_call_init(&call, MM_TRANSPOSE);
        if (cases[index].query != NULL)
            assert_int_equal(mm_parameter_set_text(&call.operands.parameters, MM_IN_QUERY, "dtype", 5,
                                                   cases[index].query, strlen(cases[index].query), &limits,
                                                   NULL),
                             MM_OK);
        scan = mm_json_reader.begin(&call.operands, NULL, MM_LENGTH_UNKNOWN, &limits, &memory);
        assert_non_null(scan);
        feed(cases[index].text, strlen(cases[index].text));
        assert_int_equal(scan->operands[0].dtype, cases[index].dtype);
        mm_json_reader.cancel(scan);
    }
    close_budget();
}

/* The scan frees its memory after an error. Even if strings have many commas, the scan reserves no more than
 * the limits allow. */
static void test_memory_is_freed(void **state) {
    static const struct {
        struct mm_limits limits;
        const char *good, *bad; /* `bad` follows `good` in a later chunk */
        size_t used_bytes_max;
    } cases[] = {
        {{2, SIZE_MAX, 1 << 20}, "{\"a\":[[1,2,", "3", BUDGET_BYTES},
        {{2, SIZE_MAX, 1 << 20}, "{\"a\":[[1],[2],", "[3", BUDGET_BYTES},
        {{SIZE_MAX, SIZE_MAX, 64},
         "{\"a\":[[1,\",,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,",
         "\"2",
         64 + MM_JSON_PADDING_MAX},
    };
    open_budget(BUDGET_BYTES);
    for (size_t index = 0; index < 2 * COUNT(cases); index++) {
        const size_t row = index / 2, bytes = strlen(cases[row].good);
        char text[128];
        sprintf(text, "%s%s", cases[row].good, cases[row].bad);
        begin(MM_TRANSPOSE, MM_LENGTH_UNKNOWN, &cases[row].limits);
        feed(text, bytes);
        assert_true(memory.used_bytes > 0 && memory.used_bytes <= cases[row].used_bytes_max);
        if (index % 2 == 0)
            feed(text, strlen(text));
        else
            mm_json_reader.yield(scan);
        assert_int_equal(memory.used_bytes, 0);
        mm_json_reader.cancel(scan);
    }
    close_budget();
}

/* Hostile bodies must take time linear in their length, for any content and any chunks. */

static const struct mm_limits vast = {1 << 30, SIZE_MAX, 1 << 30};

/* The memory grows each time that a chunk has one element. The next chunk fills the new memory. */
static void test_growing_elements_are_rarely_moved(void **state) {
    enum { BYTES = 8 << 20, SPARSE = 8192, MOVES_MAX = 60 };
    open_budget(64 << 20);
    char *text = malloc(BYTES);
    assert_non_null(text);
    size_t bytes = (size_t)sprintf(text, "{\"a\":[[1");
    unsigned moves = 0;
    const void *data = NULL;
    begin(MM_TRANSPOSE, MM_LENGTH_UNKNOWN, &vast);
    while (bytes + SPARSE < BYTES) {
        memset(text + bytes, ' ', SPARSE);
        bytes += SPARSE;
        feed(text, bytes);
        moves += scan->store.memory.data != data;
        data = scan->store.memory.data;
        size_t room = (scan->store.bytes_max - scan->store.used_bytes) / sizeof(float);
        for (; room > 0 && bytes + 4 < BYTES; room--, bytes += 2)
            memcpy(text + bytes, ",1", 2);
        feed(text, bytes);
        memcpy(text + bytes, ",1", 2);
        bytes += 2;
    }
    assert_true(scan->store.keeps && moves > 1 && moves <= MOVES_MAX);
    mm_json_reader.cancel(scan);
    close_budget();
    free(text);
}

/* A number or string that ends in a later chunk is not scanned again for each new byte. */
static void test_incomplete_tokens_wait(void **state) {
    static const char *const begins[] = {"{\"a\":[[", "{\"a\":[[1]],\"variant\":\""};
    enum { DIGITS = 256 };
    open_budget(1 << 20);
    for (size_t index = 0; index < COUNT(begins); index++) {
        const size_t start = strlen(begins[index]);
        char text[64 + DIGITS];
        strcpy(text, begins[index]);
        memset(text + start, '1', DIGITS);
        begin(MM_TRANSPOSE, 4 * DIGITS, &vast);
        feed(text, start + DIGITS);
        assert_true(scan->reader.retry_bytes >= start + 2 * DIGITS);
        mm_json_reader.cancel(scan);
    }
    close_budget();
}

/* Returns the CPU time to reject a benchmark request of this length, in which every member is unknown. */
static clock_t refuse_members(size_t bytes) {
    char *text = malloc(bytes + 8);
    assert_non_null(text);
    static struct mm_benchmark_call benchmark;
    struct mm_error error;
    size_t at = 1;
    text[0] = '{';
    for (; at + 6 < bytes; at += 6)
        memcpy(text + at, "\"x\":1,", 6);
    memcpy(text + at, "\"x\":1}", 6);
    const clock_t before = clock();
    assert_int_equal(mm_benchmark_decode(text, at + 6, &vast, NULL, &benchmark, &error), MM_BAD_REQUEST);
    const clock_t taken = clock() - before;
    assert_int_equal(error.column, 6);
    free(text);
    return taken;
}

/* The time to reject a request is proportional to its length. The shortest of several times counts. */
static void test_wrong_members_cost_little(void **state) {
    double few = CLOCKS_PER_SEC, many = CLOCKS_PER_SEC;
    for (int round = 0; round < 3 || (round < 50 && many >= 48 * few); round++) {
        few = fmin(few, (double)refuse_members(MM_BENCHMARK_BODY_BYTES_MAX / 16));
        many = fmin(many, (double)refuse_members(MM_BENCHMARK_BODY_BYTES_MAX));
    }
    assert_true(many < 48 * few);
}

RUN_TESTS(test_memory_of_a_whole_body, test_memory_of_chunks, test_memory_is_short_at_first,
          test_exact_memory, test_type_is_noticed, test_memory_is_freed,
          test_growing_elements_are_rarely_moved, test_incomplete_tokens_wait, test_wrong_members_cost_little)
