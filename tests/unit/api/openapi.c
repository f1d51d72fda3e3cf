/* api/openapi: the document is JSON, what is filled in comes from the tables of the devices, and every code
 * that is sent stands under its HTTP status. */
#include "api/describe/describe.h"
#include "api/problem.h"
#include "tests/unit/unit.h"

#include <jansson.h>

static const struct mm_variant fast_variants[] = {{.name = "tiled_16"}, {.name = "wide"}, {.name = "auto"}};
static const struct mm_variant plain_variants[] = {{.name = "naive"}, {.name = "tiled_16"}};
static const struct mm_backend fast = {.name = "fast", .variants = fast_variants, .variant_count = 3};
static const struct mm_backend plain = {.name = "plain", .variants = plain_variants, .variant_count = 2};

static json_t *make_document(struct mm_device *const *devices, size_t count) {
    size_t length = 0;
    char *text = mm_openapi_json(devices, count, "1.2.3", &length);
    assert_non_null(text);
    assert_int_equal(length, strlen(text));
    json_t *document = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(document);
    free(text);
    return document;
}

/* The schema's names are these, in this order, each between spaces. */
static void assert_names(json_t *document, const char *schema, const char *expected) {
    json_t *found = NULL;
    char names[256] = " ";
    size_t index;
    json_t *name;
    assert_int_equal(
        json_unpack(document, "{s:{s:{s:{s:o}}}}", "components", "schemas", schema, "enum", &found), 0);
    json_array_foreach(found, index, name) {
        strcat(names, json_string_value(name));
        strcat(names, " ");
    }
    assert_string_equal(names, expected);
}

static void test_names(void **state) {
    struct mm_device first = {.backend = &fast};
    struct mm_device second = {.backend = &fast, .index = 1};
    struct mm_device host = {.backend = &plain};
    struct mm_device *const all[] = {&first, &second, &host};
    json_t *document = make_document(all, 3);
    assert_names(document, "VariantName", " auto tiled_16 wide naive ");
    assert_names(document, "BackendName", " auto fast plain ");
    assert_names(document, "DtypeName", " float32 ");
    json_decref(document);

    document = make_document(all + 2, 1);
    assert_names(document, "VariantName", " auto naive tiled_16 ");
    assert_names(document, "BackendName", " auto plain ");
    json_decref(document);
}

static bool is_or_holds(json_t *schema, const char *name) {
    const char *only = json_string_value(json_object_get(schema, "const"));
    size_t index;
    json_t *one;
    json_array_foreach(json_object_get(schema, "enum"), index, one) {
        if (strcmp(json_string_value(one), name) == 0)
            return true;
    }
    return only != NULL && strcmp(only, name) == 0;
}

/* The HTTP status of the response whose problem has this code; 0 where there is none. */
static json_int_t find_http(json_t *document, const char *code) {
    json_t *responses = json_object_get(json_object_get(document, "components"), "responses");
    const char *key;
    json_t *response;
    json_object_foreach(responses, key, response) {
        json_t *properties = NULL;
        if (json_unpack(response, "{s:{s:{s:{s:o}}}}", "content", MM_PROBLEM_TYPE, "schema", "properties",
                        &properties) == 0 &&
            is_or_holds(json_object_get(properties, "code"), code))
            return json_integer_value(json_object_get(json_object_get(properties, "status"), "const"));
    }
    return 0;
}

static void test_codes(void **state) {
    json_t *document = make_document(NULL, 0);
    for (unsigned status = MM_OK + 1; status < MM_STATUS_COUNT; status++)
        assert_int_equal(find_http(document, mm_status_name((enum mm_status)status)),
                         mm_problem_http((enum mm_status)status));
    json_decref(document);
}

RUN_TESTS(test_names, test_codes)
