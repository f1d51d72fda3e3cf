/* Tests the weight q that the value of an Accept header gives to application/json, in thousandths. */
#include "api/media.h"
#include "tests/unit/unit.h"

static const struct {
    int weight;
    const char *accepts;
} weights[] = {
    {1000, "| , ,|*/*|application/json|APPLICATION/Json|application/*"},
    {0, "text/html|text/*|application/octet-stream|application/jsonp|application/jso|applicatio/*"},
    {500, "application/json;q=0.5"},
    {250, "application/json ; q=0.25"},
    {125, "application/json;Q=0.125"},
    {1000, "application/json;q=1.000|application/json;q=1.|application/json;q=1|application/json;q"},
    {0, "application/json;q=0.|application/json;q=0|application/json;q=0.000|application/"
        "json;q=1.001|application/json;q=2|application/json;q=-1|application/json;q=0.1234|application/"
        "json;q=0.x|application/json;q=|application/json;q=.|application/json;q=\"1\""},
    {200, "application/json;q=.2"},
    /* The most specific range decides, wherever it is in the list. */
    {100, "*/*, application/json;q=0.1|application/json;q=0.1, */*"},
    {300, "application/*;q=0.3, */*;q=0.9|*/*;q=0.9, application/*;q=0.3"},
    {0, "application/json;q=0, */*"},
    {600, "application/json;q=0.4, application/json;charset=utf-8;q=0.6"},
    {200, "application/json;charset=utf-8;q=0.2, application/json;q=0.6|text/html, image/gif, image/jpeg, *; "
          "q=.2, */*; q=.2"},
    {700, "application/json;q=0.3, application/json;q=0.7"},
    {800, "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"},
    {1000, "application/json;charset=utf-8|  application/json  ,text/html|application/json;"},
    {500, "application/json; charset=utf-8; q=0.5; ext=1|application/json;;q=0.5"},
    {0, "text/plain;x=\"a,application/json\"|text/plain;x=\"a\\\",application/json\"|text/"
        "plain;x=\"a\\\",application/json,\"|text/plain;x=\"open, application/json"},
    {700, "text/plain;x=\"a;q=0.1\", application/json;q=0.7|application/json;x=\"a,b;q=0.1\";q=0.7"},
    {1000, "json|*|*/json|*/json;q=0.3|/json, application/;q=0.3|;q=0.5"},
    {500, "json, application/json;q=0.5"},
    {0, "json, text/html|application /json"},
};

static void expect_weight(const char *accept, int expected) {
    const int weight = mm_media_weight(accept, "application/json");
    if (weight != expected)
        fail_msg("'%s' gives %d, expected %d", accept == NULL ? "" : accept, weight, expected);
}

static void test_weight(void **state) {
    expect_weight(NULL, 1000);
    for (size_t index = 0; index < COUNT(weights); index++) {
        EACH(accept, weights[index].accepts) {
            expect_weight(accept, weights[index].weight);
        }
    }
}

RUN_TESTS(test_weight)
