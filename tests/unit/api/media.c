/* api/media: matching of types, and Accept's weights. */
#include "api/media.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct {
    const char *content_type;
    const char *type;
    bool matches;
} types[] = {
    {"application/json", "application/json", true},
    {"Application/JSON", "application/json", true},
    {"application/json; charset=utf-8", "application/json", true},
    {"application/json;charset=utf-8", "application/json", true},
    {"  application/json\t;x=y", "application/json", true},
    {"multipart/form-data; boundary=\"a;b\"", "multipart/form-data", true},
    {"application/jsonx", "application/json", false},
    {"application/jso", "application/json", false},
    {"application/json x", "application/json", false},
    {"text/json", "application/json", false},
    {"", "application/json", false},
    {";", "application/json", false},
    {" ", "", true},
    {NULL, "application/json", false},
};

static void test_is(void **state) {
    (void)state;
    for (size_t index = 0; index < sizeof types / sizeof types[0]; index++)
        if (mm_media_is(types[index].content_type, types[index].type) != types[index].matches)
            fail_msg("'%s' and %s", types[index].content_type, types[index].type);
}

static const struct {
    const char *accept;
    int weight; /* of application/json */
} weights[] = {
    {NULL, 1000},
    {"", 1000},
    {" , ,", 1000},
    {"*/*", 1000},
    {"application/json", 1000},
    {"APPLICATION/Json", 1000},
    {"application/*", 1000},
    {"text/html", 0},
    {"text/*", 0},
    {"application/octet-stream", 0},
    {"application/jsonp", 0},
    {"application/jso", 0},
    {"applicatio/*", 0},
    /* Weights */
    {"application/json;q=0.5", 500},
    {"application/json ; q=0.25", 250},
    {"application/json;Q=0.125", 125},
    {"application/json;q=1.000", 1000},
    {"application/json;q=1.", 1000},
    {"application/json;q=0.", 0},
    {"application/json;q=1", 1000},
    {"application/json;q=0", 0},
    {"application/json;q=0.000", 0},
    {"application/json;q=.2", 200},
    {"application/json;q=1.001", 0},
    {"application/json;q=2", 0},
    {"application/json;q=-1", 0},
    {"application/json;q=0.1234", 0},
    {"application/json;q=0.x", 0},
    {"application/json;q=", 0},
    {"application/json;q=.", 0},
    {"application/json;q=\"1\"", 0},
    {"application/json;q", 1000},
    /* The most specific range decides, wherever it stands. */
    {"*/*, application/json;q=0.1", 100},
    {"application/json;q=0.1, */*", 100},
    {"application/*;q=0.3, */*;q=0.9", 300},
    {"*/*;q=0.9, application/*;q=0.3", 300},
    {"application/json;q=0, */*", 0},
    {"application/json;q=0.4, application/json;charset=utf-8;q=0.6", 600},
    {"application/json;charset=utf-8;q=0.2, application/json;q=0.6", 200},
    {"application/json;q=0.3, application/json;q=0.7", 700},
    {"text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", 200},
    {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", 800},
    /* Parameters, quoted strings, spaces */
    {"application/json;charset=utf-8", 1000},
    {"application/json; charset=utf-8; q=0.5; ext=1", 500},
    {"text/plain;x=\"a,application/json\"", 0},
    {"text/plain;x=\"a\\\",application/json\"", 0},
    {"text/plain;x=\"a\\\",application/json,\"", 0},
    {"text/plain;x=\"a;q=0.1\", application/json;q=0.7", 700},
    {"application/json;x=\"a,b;q=0.1\";q=0.7", 700},
    {"text/plain;x=\"open, application/json", 0},
    {"  application/json  ,text/html", 1000},
    {"application/json;;q=0.5", 500},
    {"application/json;", 1000},
    /* Malformed ranges are passed over. */
    {"json", 1000},
    {"*", 1000},
    {"*/json", 1000},
    {"*/json;q=0.3", 1000},
    {"/json, application/;q=0.3", 1000},
    {"json, application/json;q=0.5", 500},
    {"json, text/html", 0},
    {";q=0.5", 1000},
    {"application /json", 0},
};

static void test_weight(void **state) {
    (void)state;
    for (size_t index = 0; index < sizeof weights / sizeof weights[0]; index++) {
        int weight = mm_media_weight(weights[index].accept, "application/json");
        if (weight != weights[index].weight)
            fail_msg("'%s' gives %d, expected %d", weights[index].accept, weight, weights[index].weight);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_is), cmocka_unit_test(test_weight)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
