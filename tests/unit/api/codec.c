/* api/codec: which format a request speaks, and which its reply. */
#include "api/codec.h"
#include "tests/unit/unit.h"

static const char json[] = "application/json";
static const char raw[] = "application/octet-stream";
static const char npy[] = "application/x-npy";
static const char multipart[] = "multipart/form-data";
static const char form[] = "application/x-www-form-urlencoded";

static const struct mm_codec *find(const char *type) {
    if (type == NULL)
        return NULL;
    return type == json  ? &mm_json_codec
           : type == raw ? &mm_raw_codec
           : type == npy ? &mm_npy_codec
                         : &mm_form_codec;
}

static const struct {
    const char *content_type;
    bool has_dimensions;
    bool body_seen;
    char first;
    enum mm_status status;
    const char *type; /* NULL: not known, or none */
} requests[] = {
    {json, false, false, 0, MM_OK, json},
    {"application/JSON; charset=utf-8", true, false, 0, MM_OK, json},
    {raw, false, false, 0, MM_OK, raw},
    {raw, true, true, '{', MM_OK, raw},
    {NULL, false, false, 0, MM_OK},
    {form, false, false, 0, MM_OK},
    {"", false, false, 0, MM_OK},
    {NULL, true, false, 0, MM_OK, raw},
    {NULL, true, true, '{', MM_OK, raw},
    {form, true, false, 0, MM_OK, raw},
    {NULL, false, true, '{', MM_OK, json},
    {form, false, true, '{', MM_OK, json},
    {"Application/X-WWW-Form-Urlencoded; charset=x", false, true, '{', MM_OK, json},
    {"", false, true, '{', MM_OK, json},
    {NULL, false, true, '[', MM_UNSUPPORTED_MEDIA_TYPE},
    {form, false, true, 'a', MM_UNSUPPORTED_MEDIA_TYPE},
    {NULL, false, true, 0, MM_UNSUPPORTED_MEDIA_TYPE},
    {"text/plain", false, false, 0, MM_UNSUPPORTED_MEDIA_TYPE},
    {"text/plain", true, true, '{', MM_UNSUPPORTED_MEDIA_TYPE},
    {"Multipart/Form-Data; boundary=B", true, false, 0, MM_OK, multipart},
    {"multipart/form-data", false, false, 0, MM_OK, multipart},
    {"multipart/mixed; boundary=B", false, false, 0, MM_UNSUPPORTED_MEDIA_TYPE},
    {"garbage", false, false, 0, MM_UNSUPPORTED_MEDIA_TYPE},
};

static void test_request(void **state) {
    for (size_t index = 0; index < COUNT(requests); index++) {
        const struct mm_codec *codec = NULL;
        struct mm_error error = {0};
        enum mm_status status =
            mm_codec_for_request(requests[index].content_type, MM_MATMUL, requests[index].has_dimensions,
                                 requests[index].body_seen, requests[index].first, &codec, &error);
        if (status != requests[index].status || codec != find(requests[index].type))
            fail_msg("row %zu gives %s", index, mm_status_name(status));
        if (status != MM_OK) {
            assert_non_null(strstr(error.detail, json));
            assert_non_null(strstr(error.detail, raw));
            assert_string_equal(error.field, "Content-Type");
        }
    }
}

/* A .npy file is no body, whatever type it comes with. */
static void test_bare_npy_shows_a_form(void **state) {
    const struct mm_codec *codec;
    struct mm_error error;
    assert_int_equal(mm_codec_for_request("application/x-npy", MM_TRANSPOSE, false, false, 0, &codec, &error),
                     MM_UNSUPPORTED_MEDIA_TYPE);
    assert_non_null(strstr(error.detail, "the body is a .npy file"));
    assert_non_null(strstr(error.detail, "/v1/transpose -F a=@a.npy -o c.npy"));
    assert_int_equal(mm_codec_for_request(form, MM_MATMUL, false, true, '\x93', &codec, &error),
                     MM_UNSUPPORTED_MEDIA_TYPE);
    assert_non_null(strstr(error.detail, "/v1/matmul -F a=@a.npy -F b=@b.npy -o c.npy"));
}

/* Who sent a body without a type sees what to type instead, not cut off. */
static void test_untyped_shows_curl(void **state) {
    const struct mm_codec *codec;
    struct mm_error error;
    assert_int_equal(mm_codec_for_request(form, MM_MATMUL, false, true, 'x', &codec, &error),
                     MM_UNSUPPORTED_MEDIA_TYPE);
    assert_non_null(strstr(error.detail, "/v1/matmul -d '{\"a\": [[1,2]], \"b\": "));
    assert_non_null(strstr(error.detail, "the query ?m=1&k=2&n=1"));
    assert_int_equal(mm_codec_for_request(form, MM_TRANSPOSE, false, true, 'x', &codec, &error),
                     MM_UNSUPPORTED_MEDIA_TYPE);
    assert_non_null(strstr(error.detail, "no m and n in the query"));
    assert_non_null(strstr(error.detail, "/v1/transpose -d '{\"a\": [[1,2]]}'"));
    assert_non_null(strstr(error.detail, "the query ?m=1&n=2"));
}

static const struct {
    const char *accept;
    const char *natural;
    enum mm_status status;
    const char *type;
} replies[] = {
    {NULL, json, MM_OK, json},
    {NULL, raw, MM_OK, raw},
    {NULL, NULL, MM_OK, json},
    {NULL, multipart, MM_OK, npy},
    {"*/*;q=0.5, application/json", multipart, MM_OK, json},
    {"application/json, application/octet-stream", multipart, MM_OK, json},
    {"application/x-npy", json, MM_OK, npy},
    {"application/x-npy;q=0, */*", multipart, MM_OK, json},
    {"multipart/form-data", multipart, MM_NOT_ACCEPTABLE},
    {"*/*", json, MM_OK, json},
    {"application/*", raw, MM_OK, raw},
    {"application/json", raw, MM_OK, json},
    {"application/octet-stream", json, MM_OK, raw},
    {"application/json, application/octet-stream", raw, MM_OK, raw},
    {"text/html", json, MM_NOT_ACCEPTABLE},
};

static void test_reply(void **state) {
    for (size_t index = 0; index < COUNT(replies); index++) {
        const struct mm_codec *codec = NULL;
        struct mm_error error = {0};
        enum mm_status status =
            mm_codec_for_reply(replies[index].accept, find(replies[index].natural), &codec, &error);
        if (status != replies[index].status || codec != find(replies[index].type))
            fail_msg("row %zu gives %s", index, mm_status_name(status));
        if (status != MM_OK) {
            assert_non_null(strstr(error.detail, json));
            assert_non_null(strstr(error.detail, raw));
        }
    }
}

RUN_TESTS(test_request, test_bare_npy_shows_a_form, test_untyped_shows_curl, test_reply)
