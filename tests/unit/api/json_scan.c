/* api/json_scan: a body in pieces is the body, however it is cut; and the memory is what was promised. */
#include "api/formats.h"
#include "api/json/json_scan.h"
#include "api/lab/benchmark.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <time.h>

enum { BUDGET_BYTES = 1 << 20 };

static const struct mm_limits limits = {
    .dimension_max = 512, .body_bytes_max = SIZE_MAX, .memory_bytes_max = 1 << 20};

/* A decoded body, or the error. */
struct decoded {
    enum mm_status status;
    struct mm_call call;
    struct mm_error error;
};

/* Feeds pieces of `first` bytes, and then of `others`, each time with the body so far in memory of its size;
 * then finishes. */
static void decode_pieces(struct decoded *decoded, enum mm_op op, const char *text, size_t first,
                          size_t others, bool known, struct mm_buffers *buffers) {
    const size_t bytes = strlen(text);
    struct mm_json_scan scan;
    *decoded = (struct decoded){0};
    mm_call_init(&decoded->call, op);
    mm_json_scan_begin(&scan, &decoded->call, known ? bytes : MM_LENGTH_UNKNOWN, &limits, buffers);
    for (size_t at = 0, piece = first; at < bytes; piece = others) {
        at += piece < bytes - at ? piece : bytes - at;
        char *copy = malloc(at);
        assert_non_null(copy);
        memcpy(copy, text, at);
        mm_json_scan_feed(&scan, copy, at);
        free(copy);
    }
    char *copy = strdup(text);
    const struct mm_body body = {.data = copy, .bytes = bytes};
    decoded->status = mm_json_scan_finish(&scan, &decoded->call, &body, &decoded->error);
    free(copy);
}

static void decode_whole(struct decoded *decoded, enum mm_op op, const char *text,
                         struct mm_buffers *buffers) {
    char *copy = strdup(text);
    const struct mm_body body = {.data = copy, .bytes = strlen(text)};
    *decoded = (struct decoded){0};
    mm_call_init(&decoded->call, op);
    decoded->status =
        mm_codec_decode(mm_codecs(&(size_t){0}), &decoded->call, &body, &limits, buffers, &decoded->error);
    free(copy);
}

static bool is_same_matrix(const struct mm_matrix *x, const struct mm_matrix *y) {
    return x->dtype == y->dtype && x->rows == y->rows && x->cols == y->cols &&
           (x->rows * x->cols == 0 || memcmp(x->data, y->data, mm_matrix_bytes(x)) == 0);
}

static bool is_same(const struct decoded *x, const struct decoded *y) {
    if (x->status != MM_OK || y->status != MM_OK)
        return x->status == y->status && strcmp(x->error.detail, y->error.detail) == 0 &&
               strcmp(x->error.field, y->error.field) == 0 && x->error.line == y->error.line &&
               x->error.column == y->error.column;
    return is_same_matrix(&x->call.a, &y->call.a) && is_same_matrix(&x->call.b, &y->call.b) &&
           x->call.given == y->call.given &&
           memcmp(x->call.names, y->call.names, sizeof x->call.names) == 0 &&
           memcmp(x->call.numbers, y->call.numbers, sizeof x->call.numbers) == 0;
}

/* With ` for each ". */
static const char *const documents[] = {
    "{`a`: [[1,2],[3,4]], `b`: [[5,6],[7,8]]}",
    " \r\n\t{ `variant` : `a [ { \\` , b` , `b` : [ [ 1.5e2 , -2 ] , [ `NaN` , `-Infinity` ] ] , `a` : [ [ "
    "0.125 ] ] } \n",
    "{`a`:[],`b`:[[],[]]}",
    "{`a`:[[1]],`b`:[[]],`timeout_ms`:250,`transpose_a`:true,`tile`:16}",
    "{`a`:[[123456789.123456789123456789e-5,0.1]],`b`:[[16777217,1.0000000596046447753906250001]]}",
    "{`\\u0061`:[[1]],`b`:[[2]]}",
    "{`backend`:`\\u0063pu`,`a`:[[1]],`b`:[[2]]}",
    "{`dtype`:`float64`,`a`:[[0.1,1e300]]}",
    "{`a`:[[0.1,1e300]],`dtype`:`float64`}",
    "{`a`:[[1.7976931348623158e308,-1.7976931348623158e308]],`dtype`:`float64`}",
    "{`a`:[[9007199254740993,-1e3],[2.0,3]],`dtype`:`int64`}",
    "{`dtype`:`int32`,`a`:[[1,2],[3,4]]}",
    "{`dtype`:`int32`,`a`:[[1,2.5],[3,4]]}",
    "{`a`:[[`Infinity`]],`dtype`:`int32`}",
    "{`a`:[[1]],`dtype`:`float16`}",
    "{`dtype`:[`int32`],`a`:[[1]]}",
    "{`a`:[[1]],`a`:[[1]],`b`:[]}",
    "{`a`:[[1,2],[3]],`b`:[]}",
    "{`a`:[[1e39]],`b`:[]}",
    "{`a`:[[1]],`b`:[[null]]}",
    "{`a`:[[1]],`b`:[[[1]]]}",
    "{`a`:[[1]],`b`:null}",
    "{`a`:[[1]],`b`:{`a`:[[1]]}}",
    "{`a`:[[1]]}",
    "{`a`:[[1]],`b`:[[1]]e5}",
    "{`a`:[[1]]5,`b`:[[1]]}",
    "{`a`:[[1]],`b`:[[1]]]",
    "{`a` `b`:[[1]],`b`:[[1]]}",
    "{`a`:[[1,`NaN`,2,[3,[4]],{`x`:[[5]]},6]],`b`:[[1]],`variant`:[{`y`:[1,`z`]},2]}",
    "{`a`:{`b`:[[1]]},`b`:[[1],[[2]],{`c`:[[3]]}]}",
    "{`a`:[[1e39]],`dtype`:`float64`}",
    "{`a`:[[`\\u004eaN`,`\\uD83D\\uDE00`]],`variant`:`\xf0\x9f\x98\x80\\n\\u20ac`}",
    "{`a`:[[1,]],`b`:[[1]]}",
    "{`a`:[[1],],`b`:[[1]]}",
    "{`a`:[[1 2]],`b`:[[1]]}",
    "{`a`:[[01]],`b`:[[1]]}",
    "{`a`:[[-]],`b`:[[1]]}",
    "{`a`:[[1.]],`b`:[[`NaN]]}",
    "{`a`:[[`NaNa`]],`b`:[[1]]}",
    "{`a`:[[1]],`b`:[[1]]} {}",
    "{`a`:[[1]],`b`:[[1]]},",
    "{`a`:[[1]],`b`:[[1]]",
    "[{`a`:[[1]],`b`:[[1]]}]",
    "{`variant`:{`a`:[[1]]},`a`:[[1]],`b`:[[1]]}",
    "{`a`:[[1]],`variant`: `x\xff`,`b`:[[1]]}",
    "{`a`:[[1]],`timeout_ms`:1 2,`b`:[[1]]}",
};

static void check_cut(enum mm_op op, const char *text, size_t first, size_t others, bool known,
                      const struct decoded *expected, struct mm_buffers *buffers) {
    struct decoded got;
    decode_pieces(&got, op, text, first, others, known, buffers);
    if (!is_same(&got, expected))
        fail_msg("%s cut at %zu and %zu gives %s: %s; expected %s: %s", text, first, others,
                 mm_status_name(got.status), got.error.detail, mm_status_name(expected->status),
                 expected->error.detail);
    mm_call_release(&got.call, buffers);
}

/* Cut in two anywhere, and into single bytes. */
static void test_pieces(void **state) {
    struct mm_buffers *buffers = mm_buffers_open(BUDGET_BYTES);
    for (size_t index = 0; index < COUNT(documents); index++) {
        for (unsigned op = 0; op < MM_OP_COUNT; op++) {
            char text[512];
            strcpy(text, quoted(documents[index]));
            struct decoded expected;
            decode_whole(&expected, (enum mm_op)op, text, buffers);
            for (size_t first = 1; first <= strlen(text); first++)
                check_cut((enum mm_op)op, text, first, SIZE_MAX, true, &expected, buffers);
            check_cut((enum mm_op)op, text, 1, 1, true, &expected, buffers);
            check_cut((enum mm_op)op, text, 1, 1, false, &expected, buffers);
            mm_call_release(&expected.call, buffers);
            assert_int_equal(mm_buffers_used(buffers), 0);
        }
    }
    mm_buffers_close(buffers);
}

static struct mm_json_scan scan;
static struct mm_call call;

/* A transposition's scan, of a body of so many bytes. */
static void begin(size_t bytes, const struct mm_limits *within, struct mm_buffers *buffers) {
    mm_call_init(&call, MM_TRANSPOSE);
    mm_json_scan_begin(&scan, &call, bytes, within, buffers);
}

static enum mm_status finish(const char *text, size_t bytes, struct mm_error *error) {
    const struct mm_body body = {.data = (char *)(uintptr_t)text, .bytes = bytes};
    return mm_json_scan_finish(&scan, &call, &body, error);
}

/* One row of a number many times, before `tail`. The caller frees. */
static char *make_row(size_t count, const char *number, const char *tail) {
    char *text = malloc(count * (strlen(number) + 1) + 64);
    assert_non_null(text);
    char *end = stpcpy(text, "{\"a\":[[");
    for (size_t index = 0; index < count; index++)
        end += sprintf(end, "%s%s", index > 0 ? "," : "", number);
    sprintf(end, "]]%s}", tail);
    return text;
}

/* A whole body takes just the elements that its commas announce, and no room to grow. */
static void test_memory_of_a_piece(void **state) {
    enum { COUNT = 500, BYTES = COUNT * sizeof(float) };
    char number[300];
    sprintf(number, "0.%0290d", 7);
    char *text = make_row(COUNT, number, ",\"b\":[[1]]");
    struct mm_buffers *buffers = mm_buffers_open(BYTES + 4 + MM_JSON_ALIGNMENT);
    struct decoded got;
    decode_pieces(&got, MM_MATMUL, text, SIZE_MAX, SIZE_MAX, true, buffers);
    assert_int_equal(got.status, MM_OK);
    assert_int_equal(got.call.a.cols, COUNT);
    assert_true(mm_buffers_used(buffers) <= BYTES + 4 + MM_JSON_ALIGNMENT);
    mm_call_release(&got.call, buffers);
    mm_buffers_close(buffers);
    free(text);
}

/* In pieces: where the length is known, a bit more than is needed; else half as much again. */
static void test_memory_of_pieces(void **state) {
    enum { COUNT = 40000, BYTES = COUNT * sizeof(float) };
    const struct mm_limits wide = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
    char *text = make_row(COUNT, "0.123456", "");
    const size_t length = strlen(text);
    for (int known = 0; known < 2; known++) {
        struct mm_buffers *buffers = mm_buffers_open(known ? BYTES + BYTES / 8 : 3 * BYTES);
        begin(known ? length : MM_LENGTH_UNKNOWN, &wide, buffers);
        for (size_t at = 0; at < length; at += 8192)
            mm_json_scan_feed(&scan, text, length - at < 8192 ? length : at + 8192);
        assert_true(mm_json_scan_is_quick(&scan));
        assert_true(mm_buffers_used(buffers) >= BYTES && mm_buffers_used(buffers) <= BYTES * 7 / 4);
        assert_int_equal(finish(text, length, NULL), MM_OK);
        assert_true(((const float *)call.a.data)[COUNT - 1] == 0.123456f);
        mm_call_release(&call, buffers);
        mm_buffers_close(buffers);
    }
    free(text);
}

/* What finds no room is judged all the same, and is told to need just its size; where there is room by then,
 * it is read after all. */
static void test_room_comes_late(void **state) {
    enum { COUNT = 100, BYTES = COUNT * sizeof(double) };
    struct mm_buffers *buffers = mm_buffers_open(BYTES + 1);
    struct mm_buffer taken;
    for (int ways = 0; ways < 4; ways++) {
        char *text = make_row(COUNT, "0.1", ways & 1 ? ",\"dtype\":\"float64\"" : "");
        const size_t bytes = strlen(text);
        struct mm_error error;
        assert_int_equal(mm_buffers_acquire(buffers, BYTES, &taken, NULL), MM_OK);
        begin(bytes, &limits, buffers);
        mm_json_scan_feed(&scan, text, bytes);
        assert_false(mm_json_scan_is_quick(&scan));
        if (ways & 2)
            mm_buffers_release(buffers, &taken);
        enum mm_status status = finish(text, bytes, &error);
        assert_int_equal(status, ways & 2 ? MM_OK : MM_BUSY);
        if (status == MM_BUSY)
            assert_int_equal(error.needed_bytes, COUNT * (ways & 1 ? sizeof(double) : sizeof(float)));
        else
            assert_true(ways & 1 ? ((double *)call.a.data)[COUNT - 1] == 0.1
                                 : ((float *)call.a.data)[COUNT - 1] == 0.1f);
        mm_call_release(&call, buffers);
        mm_buffers_release(buffers, &taken);
        assert_int_equal(mm_buffers_used(buffers), 0);
        free(text);
    }
    mm_buffers_close(buffers);
}

/* Where the first look asks for more than there is, since commas announce what does not come, the second
 * takes just what both matrices do: whichever comes first, the other begins aligned. */
static void test_exact_room(void **state) {
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
            struct mm_buffers *buffers = mm_buffers_open(bodies[index].bytes - lack);
            struct decoded got;
            decode_pieces(&got, MM_MATMUL, bodies[index].text, SIZE_MAX, SIZE_MAX, true, buffers);
            assert_int_equal(got.status, lack == 0 ? MM_OK : MM_TOO_LARGE);
            if (lack == 0)
                assert_true(((const float *)got.call.a.data)[0] == 1 &&
                            ((const float *)got.call.a.data)[got.call.a.cols - 1] == (float)got.call.a.cols);
            mm_call_release(&got.call, buffers);
            mm_buffers_close(buffers);
        }
    }
}

/* A type that is told before the elements, in the document or in the query, is the one that they are taken
 * for at once. */
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
        {"int8", "{\"a\":[[1]]}", MM_FLOAT32},
    };
    struct mm_buffers *buffers = mm_buffers_open(BUDGET_BYTES);
    for (size_t index = 0; index < COUNT(cases); index++) {
        mm_call_init(&call, MM_TRANSPOSE);
        if (cases[index].query != NULL)
            assert_int_equal(mm_call_set_text(&call, MM_CALL_QUERY, "dtype", 5, cases[index].query,
                                              strlen(cases[index].query), &limits, NULL),
                             MM_OK);
        mm_json_scan_begin(&scan, &call, MM_LENGTH_UNKNOWN, &limits, buffers);
        mm_json_scan_feed(&scan, cases[index].text, strlen(cases[index].text));
        assert_int_equal(scan.dtype, cases[index].dtype);
        mm_json_scan_cancel(&scan);
    }
    mm_buffers_close(buffers);
}

/* A row, or a column, over the limit gives back what it has taken, and takes no more. */
static void test_dimensions(void **state) {
    static const char *const pieces[][2] = {{"{\"a\":[[1,2,", "{\"a\":[[1,2,3"},
                                            {"{\"a\":[[1],[2],", "{\"a\":[[1],[2],[3"}};
    const struct mm_limits narrow = {2, SIZE_MAX, SIZE_MAX};
    struct mm_buffers *buffers = mm_buffers_open(BUDGET_BYTES);
    for (size_t index = 0; index < COUNT(pieces); index++) {
        begin(MM_LENGTH_UNKNOWN, &narrow, buffers);
        mm_json_scan_feed(&scan, pieces[index][0], strlen(pieces[index][0]));
        assert_true(mm_buffers_used(buffers) > 0);
        mm_json_scan_feed(&scan, pieces[index][1], strlen(pieces[index][1]));
        assert_int_equal(mm_buffers_used(buffers), 0);
    }
    mm_buffers_close(buffers);
}

/* Commas that announce elements which do not come take no more than the limit; and of a scan that is
 * cancelled, or meets a fault, nothing remains. */
static void test_nothing_remains(void **state) {
    static const char text[] =
        "{\"a\":[[1,\",,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\"2";
    const struct mm_limits narrow = {SIZE_MAX, SIZE_MAX, 64};
    struct mm_buffers *buffers = mm_buffers_open(BUDGET_BYTES);
    begin(MM_LENGTH_UNKNOWN, &narrow, buffers);
    mm_json_scan_feed(&scan, text, sizeof text - 3);
    assert_int_equal(mm_buffers_used(buffers), 64 + MM_JSON_ALIGNMENT);
    mm_json_scan_cancel(&scan);
    assert_int_equal(mm_buffers_used(buffers), 0);
    mm_json_scan_cancel(&scan);
    begin(MM_LENGTH_UNKNOWN, &narrow, buffers);
    mm_json_scan_feed(&scan, text, sizeof text - 3);
    mm_json_scan_feed(&scan, text, sizeof text - 1);
    assert_int_equal(mm_buffers_used(buffers), 0);
    mm_buffers_close(buffers);
}

/* A token of any length is no burden, however it is cut: it is looked at again only when it is twice as long.
 */
static void test_long_tokens(void **state) {
    static const char *const begins[] = {"{\"a\":[[0.", "{\"a\":[[1]],\"variant\":\""};
    static const char *const ends[] = {"5]]}", "\"}"};
    enum { BYTES = 1 << 20, PIECE = 64 };
    struct mm_buffers *buffers = mm_buffers_open(BUDGET_BYTES);
    for (size_t index = 0; index < 2; index++) {
        char *text = malloc(BYTES + 64);
        assert_non_null(text);
        const size_t start = (size_t)sprintf(text, "%s", begins[index]);
        memset(text + start, '0', BYTES);
        const size_t bytes = start + BYTES + (size_t)sprintf(text + start + BYTES, "%s", ends[index]);
        begin(bytes, &limits, buffers);
        for (size_t at = PIECE; at < bytes; at += PIECE)
            mm_json_scan_feed(&scan, text, at);
        assert_int_equal(finish(text, bytes, NULL), MM_OK);
        assert_true(index == 1 || ((const float *)call.a.data)[0] == 0);
        mm_call_release(&call, buffers);
        free(text);
    }
    mm_buffers_close(buffers);
}

/* --- what a hostile body costs: the work is linear in its bytes, whatever it holds and however it is cut --
 */

static const struct mm_limits vast = {1 << 30, SIZE_MAX, 1 << 30};

/* Each piece that makes the elements move has a single one; the next one fills the room. */
static void test_sparse_pieces_move_little(void **state) {
    enum { BYTES = 8 << 20, SPARSE = 8192, MOVES_MAX = 60 };
    struct mm_buffers *buffers = mm_buffers_open(64 << 20);
    char *text = malloc(BYTES);
    assert_non_null(text);
    size_t bytes = (size_t)sprintf(text, "{\"a\":[[1");
    unsigned moves = 0;
    const void *data = NULL;
    begin(MM_LENGTH_UNKNOWN, &vast, buffers);
    while (bytes + SPARSE < BYTES) {
        memset(text + bytes, ' ', SPARSE);
        bytes += SPARSE;
        mm_json_scan_feed(&scan, text, bytes);
        moves += scan.store.memory.data != data;
        data = scan.store.memory.data;
        size_t room = (scan.store.bytes_max - scan.store.used_bytes) / sizeof(float);
        for (; room > 0 && bytes + 4 < BYTES; room--, bytes += 2)
            memcpy(text + bytes, ",1", 2);
        mm_json_scan_feed(&scan, text, bytes);
        memcpy(text + bytes, ",1", 2);
        bytes += 2;
    }
    assert_true(scan.store.keeps && moves > 1 && moves <= MOVES_MAX);
    mm_json_scan_cancel(&scan);
    mm_buffers_close(buffers);
    free(text);
}

/* A number that is cut off is not read again with each byte. */
static void test_cut_numbers_wait(void **state) {
    enum { DIGITS = 256 };
    struct mm_buffers *buffers = mm_buffers_open(1 << 20);
    char text[8 + DIGITS] = "{\"a\":[[";
    memset(text + 7, '1', DIGITS);
    begin(4 * DIGITS, &vast, buffers);
    mm_json_scan_feed(&scan, text, 7 + DIGITS);
    assert_true(scan.reader.retry_bytes >= 7 + 2 * DIGITS);
    mm_json_scan_cancel(&scan);
    mm_buffers_close(buffers);
}

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Seconds to refuse a benchmark of so many bytes, each of whose members is wrong. */
static double refuse_members(size_t bytes) {
    char *text = malloc(bytes + 8);
    assert_non_null(text);
    static struct mm_benchmark_call benchmark;
    struct mm_error error;
    size_t at = 1;
    text[0] = '{';
    for (; at + 6 < bytes; at += 6)
        memcpy(text + at, "\"x\":1,", 6);
    memcpy(text + at, "\"x\":1}", 6);
    const double before = cpu_seconds();
    assert_int_equal(mm_benchmark_decode(text, at + 6, &vast, &benchmark, &error), MM_BAD_REQUEST);
    const double seconds = cpu_seconds() - before;
    assert_int_equal(error.column, 6);
    free(text);
    return seconds;
}

/* Sixteen times the bytes take about sixteen times as long, and not 256 times. The best of some rounds
 * counts. */
static void test_wrong_members_cost_little(void **state) {
    double few = 1, many = 1;
    for (int round = 0; round < 3 || (round < 50 && many >= 48 * few); round++) {
        few = fmin(few, refuse_members(MM_BENCHMARK_BODY_BYTES_MAX / 16));
        many = fmin(many, refuse_members(MM_BENCHMARK_BODY_BYTES_MAX));
    }
    assert_true(many < 48 * few);
}

RUN_TESTS(test_pieces, test_memory_of_a_piece, test_memory_of_pieces, test_room_comes_late, test_exact_room,
          test_type_is_noticed, test_dimensions, test_nothing_remains, test_long_tokens,
          test_sparse_pieces_move_little, test_cut_numbers_wait, test_wrong_members_cost_little)
