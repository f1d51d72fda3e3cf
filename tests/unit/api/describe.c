/* api/describe: what is told of made-up backends: their variants and devices, and their names in the OpenAPI
 * document, in which every code that is sent stands under its HTTP status. */
#include "api/describe/describe.h"
#include "api/problem.h"
#include "gpu/cpu/variants.h"
#include "tests/unit/unit.h"

#include <jansson.h>

static const char *needs_ninety(const struct mm_device *device) {
    return device->compute_capability >= 90 ? NULL : "the device's compute capability is under 9.0";
}

static enum mm_status attributes(struct mm_device *device, const struct mm_variant *variant, unsigned tile,
                                 struct mm_attributes *out, struct mm_error *error) {
    if (variant->tile == 0)
        return mm_fail(error, MM_UNSUPPORTED, "nothing is known of it");
    *out = (struct mm_attributes){256, 40, 8192, 0, 0, 6};
    return MM_OK;
}

static size_t memory_free(const struct mm_device *device) {
    return device->memory_bytes / 2;
}

static const unsigned tiles[] = {4, 16, 96, 0};

static const struct mm_variant fast_variants[] = {
    {.name = "tiled_16", .summary = "in squares", .launch[MM_FLOAT32] = mm_cpu_naive, .tile = 16},
    {.name = "wide",
     .summary = "at once",
     .needs = "compute capability 9.0",
     .multiple_of = 32,
     .launch[MM_FLOAT32] = mm_cpu_naive,
     .missing = needs_ninety},
    {.name = "open", .summary = "as asked", .launch[MM_FLOAT32] = mm_cpu_naive, .tile = 16, .tiles = tiles},
};
static const struct mm_variant plain_variants[] = {{.name = "naive", .summary = "one by one"},
                                                   {.name = "tiled_16", .summary = ""}};

static const struct mm_backend fast = {.name = "fast",
                                       .variants = fast_variants,
                                       .variant_count = 3,
                                       .memory_free = memory_free,
                                       .attributes = attributes};
static const struct mm_backend plain = {.name = "plain", .variants = plain_variants, .variant_count = 2};

#define TILED                                                                                                \
    "{`op`: `matmul`, `name`: `tiled_16`, `backend`: `fast`, `summary`: `in squares`, "                      \
    "`dtypes`: [`float32`], `tile`: 16, "
#define WIDE                                                                                                 \
    "{`op`: `matmul`, `name`: `wide`, `backend`: `fast`, `summary`: `at once`, `dtypes`: "                   \
    "[`float32`], `tile`: null, `multiple_of`: 32, "
#define OPEN                                                                                                 \
    "{`op`: `matmul`, `name`: `open`, `backend`: `fast`, `summary`: `as asked`, "                            \
    "`dtypes`: [`float32`], `tile`: 16, `tiles`: [4, 16, 96], "
#define ATTRIBUTES                                                                                           \
    "`threads_per_block`: 256, `registers_per_thread`: 40, `static_shared_bytes`: 8192, "                    \
    "`dynamic_shared_bytes`: 0, `local_bytes`: 0, `blocks_per_multiprocessor`: 6"
#define PLAIN                                                                                                \
    "{`op`: `matmul`, `name`: `naive`, `backend`: `plain`, `summary`: `one by one`, "                        \
    "`dtypes`: [], `tile`: null, `available`: true}, {`op`: `matmul`, `name`: `tiled_16`, `backend`: "       \
    "`plain`, `summary`: ``, `dtypes`: [], `tile`: null, `available`: true}"

static void assert_variants(struct mm_device *const *devices, size_t count, const char *expected) {
    size_t length = 0;
    char *text = mm_describe_variants(devices, count, &length);
    expect_made(text, length, quoted(expected));
}

static void test_variants(void **state) {
    struct mm_device old = {.backend = &fast, .compute_capability = 80};
    struct mm_device new = {.backend = &fast, .index = 1, .compute_capability = 90};
    struct mm_device host = {.backend = &plain};
    struct mm_device *const all[] = {&old, &new, &host};
    assert_variants(all, 0, "{`variants`: [], `default`: `auto`}");
    assert_variants(all, 3,
                    "{`variants`: [" TILED "`available`: true, " ATTRIBUTES "}, " WIDE
                    "`available`: true, `requires`: `compute capability 9.0`}, " OPEN
                    "`available`: true, " ATTRIBUTES "}, " PLAIN "], `default`: `auto`}");
    assert_variants(all, 1,
                    "{`variants`: [" TILED "`available`: true, " ATTRIBUTES "}, " WIDE
                    "`available`: false, `unavailable_because`: `the device's compute capability is under "
                    "9.0`, `requires`: `compute capability 9.0`}, " OPEN "`available`: true, " ATTRIBUTES
                    "}], `default`: `auto`}");
    old.failed = 1;
    assert_variants(
        all, 1,
        "{`variants`: [" TILED "`available`: false, `unavailable_because`: `its device has failed`}, " WIDE
        "`available`: false, `unavailable_because`: `its device has failed`, `requires`: `compute capability "
        "9.0`}, " OPEN
        "`available`: false, `unavailable_because`: `its device has failed`}], `default`: `auto`}");
}

static void test_devices(void **state) {
    struct mm_device card = {.backend = &fast,
                             .index = 3,
                             .name = "Card \xff",
                             .driver = "13.0",
                             .compute_capability = 121,
                             .multiprocessors = 132,
                             .memory_bytes = 1000,
                             .shared_bytes_per_block_max = 232448,
                             .shared_bank_bytes = 4};
    struct mm_device host = {.backend = &plain, .name = "Host", .memory_bytes = 64, .failed = 1};
    struct mm_device lost = {.backend = &fast, .name = "Lost", .memory_bytes = 64, .failed = 1};
    struct mm_device *const devices[] = {&card, &host, &lost};
    static const char expected[] =
        "{`devices`: [{`index`: 3, `backend`: `fast`, `name`: `Card \xef\xbf\xbd`, `compute_capability`: "
        "`12.1`, `multiprocessors`: 132, `memory_bytes`: 1000, `memory_free_bytes`: 500, `driver`: `13.0`, "
        "`shared_bank_bytes`: 4, `shared_bytes_per_block_max`: 232448, `state`: `ready`}, {`index`: 0, "
        "`backend`: `plain`, `name`: `Host`, `memory_bytes`: 64, `state`: `failed`}, {`index`: 0, `backend`: "
        "`fast`, `name`: `Lost`, `memory_bytes`: 64, `state`: `failed`}]}";
    size_t length = 0;
    char *text = mm_describe_devices(devices, 3, &length);
    expect_made(text, length, quoted(expected));
}

/* --- the OpenAPI document */

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

/* Each once, in the order of the devices. */
static void test_names(void **state) {
    struct mm_device first = {.backend = &fast};
    struct mm_device second = {.backend = &fast, .index = 1};
    struct mm_device host = {.backend = &plain};
    struct mm_device *const all[] = {&first, &second, &host};
    json_t *document = make_document(all, 3);
    assert_names(document, "VariantName", " auto tiled_16 wide open naive ");
    assert_names(document, "BackendName", " auto fast plain ");
    assert_names(document, "DtypeName", " float32 ");
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

RUN_TESTS(test_variants, test_devices, test_names, test_codes)
