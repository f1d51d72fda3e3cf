/* Tests the description of devices and variants with fictitious backends. Also tests that the program
 * contains the source files of all variants. */
#include "api/describe/describe.h"
#include "api/embedded.h"
#include "gpu/cpu/variants.h"
#include "tests/unit/unit.h"

static const char *needs_ninety(const struct mm_device *device) {
    return device->compute_capability >= 90 ? NULL : "the device's compute capability is under 9.0";
}

static enum mm_status plan_tile(const struct mm_product *product, struct mm_plan *plan,
                                struct mm_error *error) {
    plan->layout.block_rows = product->tile;
    return MM_OK;
}

static enum mm_status attributes(struct mm_device *device, const struct mm_plan *plan,
                                 struct mm_attributes *out, struct mm_error *error) {
    const unsigned tile = plan->layout.block_rows;
    if (plan->variant->tile == 0 || tile == 96)
        return mm_fail(error, MM_UNSUPPORTED, "unknown to the test");
    *out = (struct mm_attributes){256, 40, 8192, 0, 0, 6};
    if (tile == 4) /* the table of chips would give 9 blocks instead */
        *out = (struct mm_attributes){33, 40, 8192, 8192, 0, 5};
    return MM_OK;
}

static size_t memory_free(const struct mm_device *device) {
    return device->memory_bytes / 2;
}

static const unsigned tiles[] = {4, 16, 96, 0};

static const char *needs_a_newer_one(const struct mm_device *device) {
    return device->compute_capability > 90 ? NULL : "the device is too old for int8";
}

static const struct mm_variant fast_variants[] = {
    {.name = "tiled_16", .summary = "in squares", .launch[MM_FLOAT32] = mm_cpu_naive, .tile = 16},
    {.name = "wide",
     .summary = "at once",
     .needs = "compute capability 9.0",
     .multiple_of = 32,
     .launch = {[MM_FLOAT32] = mm_cpu_naive, [MM_FLOAT16] = mm_cpu_naive, [MM_INT8] = mm_cpu_naive},
     .multiples = {[MM_FLOAT16] = {.m = 1, .n = 1, .k = 4}, [MM_INT8] = {.k = 8}},
     .missing = needs_ninety,
     .dtype_missing[MM_INT8] = needs_a_newer_one},
    {.name = "open",
     .summary = "as asked",
     .launch[MM_FLOAT32] = mm_cpu_naive,
     .tile = 16,
     .tiles = tiles,
     .sources = MM_SOURCES("a.cu", "b.cuh")},
};
static const struct mm_variant plain_variants[] = {
    {.name = "naive", .summary = "one by one"},
    {.name = "tiled_16", .summary = "", .wrong_on_purpose = true}};

static const struct mm_backend fast = {.name = "fast",
                                       .variants = fast_variants,
                                       .variant_count = 3,
                                       .memory_free = memory_free,
                                       .plan = plan_tile,
                                       .attributes = attributes};
static const struct mm_backend plain = {.name = "plain", .variants = plain_variants, .variant_count = 2};

#define TILED                                                                                                \
    "{`op`: `matmul`, `name`: `tiled_16`, `backend`: `fast`, `summary`: `in squares`, "                      \
    "`dtypes`: [`float32`], `tile`: 16, "
#define WIDE(MORE_DTYPES, MORE_MULTIPLES)                                                                    \
    "{`op`: `matmul`, `name`: `wide`, `backend`: `fast`, `summary`: `at once`, `dtypes`: [`float32`, "       \
    "`float16`" MORE_DTYPES "], `tile`: null, `multiple_of`: 32, `multiples`: {`float16`: {`k`: "            \
    "4}" MORE_MULTIPLES "}, "
#define WIDE_HERE WIDE("", "") /* a variant that the device can run, but not with int8 */
#define WIDE_NOWHERE WIDE(", `int8`", ", `int8`: {`m`: 32, `n`: 32, `k`: 8}")
#define OPEN                                                                                                 \
    "{`op`: `matmul`, `name`: `open`, `backend`: `fast`, `summary`: `as asked`, "                            \
    "`dtypes`: [`float32`], `tile`: 16, `tiles`: [4, 16, 96], "
#define SOURCES ", `sources`: [`a.cu`, `b.cuh`]}"
#define ATTRIBUTES                                                                                           \
    "`threads_per_block`: 256, `registers_per_thread`: 40, `static_shared_bytes`: 8192, "                    \
    "`dynamic_shared_bytes`: 0, `local_bytes`: 0, `blocks_per_multiprocessor`: 6, "
#define HOLDS_16                                                                                             \
    "{`tile`: 16, `dtype`: `float32`, `threads_per_block`: 256, `registers_per_thread`: 40, "                \
    "`shared_bytes`: 8192, `blocks`: 6, "                                                                    \
    "`warps`: 48, `warps_max`: 64, `limiters`: [`registers`]}"
/* The device reports a different number of blocks than the table of chips. */
#define HOLDS_4                                                                                              \
    "{`tile`: 4, `dtype`: `float32`, `threads_per_block`: 33, `registers_per_thread`: 40, `shared_bytes`: "  \
    "16384, `blocks`: 5, "                                                                                   \
    "`warps`: 10, `warps_max`: 64, `limiters`: null}"
#define OF_TILED ATTRIBUTES "`occupancy`: [" HOLDS_16 "]"
#define OF_OPEN                                                                                              \
    ATTRIBUTES "`occupancy`: [" HOLDS_4 ", " HOLDS_16 "]" /* the tile 96 does not fit, so it has no row */
#define PLAIN                                                                                                \
    "{`op`: `matmul`, `name`: `naive`, `backend`: `plain`, `summary`: `one by one`, "                        \
    "`dtypes`: [], `tile`: null, `available`: true}, {`op`: `matmul`, `name`: `tiled_16`, `backend`: "       \
    "`plain`, `summary`: ``, `dtypes`: [], `tile`: null, `available`: true, `wrong_on_purpose`: true}"

static void assert_variants(const struct mm_offer *offers, size_t count, const char *expected) {
    size_t length = 0;
    char *text = mm_describe_variants(offers, count, &length);
    expect_text(text, length, quoted(expected));
}

static void test_variants(void **state) {
    struct mm_device old = {.backend = &fast, .compute_capability = 80};
    struct mm_device new = {.backend = &fast, .index = 1, .compute_capability = 90};
    struct mm_device host = {.backend = &plain};
    struct mm_device *const all[] = {&old, &new, &host};
    const struct mm_offer both[] = {{&fast, all, 2, ""}, {&plain, all + 2, 1, ""}};
    const struct mm_offer first = {&fast, all, 1, ""};
    assert_variants(both, 0, "{`variants`: [], `default`: `auto`}");
    assert_variants(both, 2,
                    "{`variants`: [" TILED "`available`: true, " OF_TILED "}, " WIDE_HERE
                    "`available`: true, `requires`: `compute capability 9.0`}, " OPEN
                    "`available`: true, " OF_OPEN SOURCES ", " PLAIN "], `default`: `auto`}");
    assert_variants(&first, 1,
                    "{`variants`: [" TILED "`available`: true, " OF_TILED "}, " WIDE_NOWHERE
                    "`available`: false, `unavailable_because`: `the device's compute capability is under "
                    "9.0`, `requires`: `compute capability 9.0`}, " OPEN "`available`: true, " OF_OPEN SOURCES
                    "], `default`: `auto`}");
    old.failed = 1;
    assert_variants(
        &first, 1,
        "{`variants`: [" TILED
        "`available`: false, `unavailable_because`: `its device has failed`}, " WIDE_NOWHERE
        "`available`: false, `unavailable_because`: `its device has failed`, `requires`: `compute "
        "capability "
        "9.0`}, " OPEN "`available`: false, `unavailable_because`: `its device has failed`" SOURCES
        "], `default`: `auto`}");
}

/* Backends without a device come last. Their variants are described without measurements. */
static void test_variants_of_no_device(void **state) {
    struct mm_device host = {.backend = &plain};
    struct mm_device *const devices[] = {&host};
    const struct mm_offer offers[] = {{&fast, NULL, 0, "no driver"}, {&plain, devices, 1, ""}};
#define WHY "`available`: false, `unavailable_because`: `no driver`"
    assert_variants(offers, 2,
                    "{`variants`: [" PLAIN ", " TILED WHY "}, " WIDE_NOWHERE WHY
                    ", `requires`: `compute capability 9.0`}, " OPEN WHY SOURCES "], `default`: `auto`}");
}

/* Without a device, attributes come from the compiler, and the number of blocks from the table of chips. */
static void test_compiled(void **state) {
    static const struct mm_compiled compiled[] = {
        {1, 80, 16, MM_FLOAT32, 0, 0, {256, 30, 2048, 0, 0, 0}},
        {1, 90, 0, MM_FLOAT64, 64, 84, {256, 40, 8192, 1024, 48, 0}},
        {0},
    };
    struct mm_backend backend = plain;
    backend.compiled = compiled;
    const struct mm_offer offer = {&backend, NULL, 0, "no driver"};
    assert_variants(
        &offer, 1,
        "{`variants`: [{`op`: `matmul`, `name`: `naive`, `backend`: `plain`, `summary`: `one by one`, "
        "`dtypes`: [], `tile`: null, " WHY "}, {`op`: `matmul`, `name`: `tiled_16`, `backend`: `plain`, "
        "`summary`: ``, `dtypes`: [], `tile`: null, " WHY ", `compiled`: [{`compute_capability`: `8.0`, "
        "`tile`: 16, `dtype`: `float32`, `threads_per_block`: 256, `registers_per_thread`: 30, "
        "`static_shared_bytes`: 2048, `dynamic_shared_bytes`: 0, `local_bytes`: 0, "
        "`blocks_per_multiprocessor`: 8, `spill_store_bytes`: 0, `spill_load_bytes`: 0}, "
        "{`compute_capability`: `9.0`, `tile`: null, `dtype`: `float64`, `threads_per_block`: 256, "
        "`registers_per_thread`: 40, `static_shared_bytes`: 8192, `dynamic_shared_bytes`: 1024, "
        "`local_bytes`: 48, `blocks_per_multiprocessor`: 6, `spill_store_bytes`: 64, `spill_load_bytes`: "
        "84}], `wrong_on_purpose`: true}], `default`: `auto`}");
}

static void test_unknown_chip(void **state) {
    struct mm_device strange = {.backend = &fast, .compute_capability = 87};
    struct mm_device *const all[] = {&strange};
    const struct mm_offer offer = {&fast, all, 1, ""};
    size_t length = 0;
    char *text = mm_describe_variants(&offer, 1, &length);
    assert_non_null(text);
    assert_non_null(strstr(text, quoted("`blocks`: 6, `warps`: 48, `warps_max`: null, `limiters`: null}]")));
    free(text);
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
                             .shared_bank_bytes = 4,
                             .peers = 5};
    struct mm_device host = {.backend = &plain, .name = "Host", .memory_bytes = 64, .failed = 1};
    struct mm_device lost = {.backend = &fast, .name = "Lost", .memory_bytes = 64, .failed = 1};
    struct mm_device *const devices[] = {&card, &host, &lost};
    static const char expected[] =
        "{`devices`: [{`index`: 3, `backend`: `fast`, `name`: `Card \xef\xbf\xbd`, `compute_capability`: "
        "`12.1`, `multiprocessors`: 132, `memory_bytes`: 1000, `memory_free_bytes`: 500, `driver`: `13.0`, "
        "`shared_bank_bytes`: 4, `shared_bytes_per_block_max`: 232448, `peers`: [0, 2], `state`: `ready`}, "
        "{`index`: 0, `backend`: `plain`, `name`: `Host`, `memory_bytes`: 64, `peers`: [], `state`: "
        "`failed`}, "
        "{`index`: 0, `backend`: `fast`, `name`: `Lost`, `memory_bytes`: 64, `peers`: [], `state`: "
        "`failed`}]}";
    size_t length = 0;
    char *text = mm_describe_devices(devices, 3, &length);
    expect_text(text, length, quoted(expected));
}

static void each_row_has_its_files(void **state) {
    for (const struct mm_backend *const *known = mm_backends_known(); *known != NULL; known++)
        for (size_t row = 0; row < (*known)->variant_count; row++) {
            const char *const *path = (*known)->variants[row].sources;
            assert_non_null(path);
            assert_non_null(*path);
            for (; *path != NULL; path++) {
                const struct mm_embedded_file *file = mm_embedded_find(&mm_source_files, *path);
                assert_non_null(file);
                assert_memory_equal(file->text, "/* ", 3);
                assert_int_equal(strlen((const char *)file->text), file->bytes);
            }
        }
    assert_null(mm_embedded_find(&mm_source_files, "gpu/device/engine.c"));
}

RUN_TESTS(each_row_has_its_files, test_variants, test_variants_of_no_device, test_compiled, test_unknown_chip,
          test_devices)
