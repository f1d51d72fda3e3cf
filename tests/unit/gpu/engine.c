/* Tests when the engine rejects long or large products, and its error for a backend without devices. */
#include "gpu/device/backend.h"
#include "gpu/device/engine.h"
#include "tests/unit/unit.h"

/* The CPU backend with two devices and one variant. */
static struct mm_backend twins;

static enum mm_status count_none(unsigned *count, struct mm_error *error) {
    return mm_fail(error, MM_NOT_READY, "no driver");
}

static const struct mm_backend driverless = {.name = "driverless", .count = count_none};
static bool driverless_is_built_in;

const struct mm_backend *const *mm_backends_known(void) {
    static const struct mm_backend *const known[] = {&driverless, &twins, NULL};
    return known;
}

const struct mm_backend *const *mm_backends(void) {
    return mm_backends_known() + (driverless_is_built_in ? 0 : 1);
}

static enum mm_status count_two(unsigned *count, struct mm_error *error) {
    *count = 2;
    return MM_OK;
}

static enum mm_status open_twin(unsigned index, struct mm_device **device, struct mm_error *error) {
    const enum mm_status status = mm_cpu_backend.open(0, device, error);
    assert_int_equal(status, MM_OK);
    (*device)->backend = &twins;
    (*device)->index = index;
    return MM_OK;
}

static void make_twins(void) {
    twins = mm_cpu_backend;
    twins.name = "twins";
    twins.variant_count = 1;
    twins.count = count_two;
    twins.open = open_twin;
}

/* A product is accepted if at least one device can compute it in time. */
static void one_device_that_is_fast_enough_suffices(void **state) {
    static const struct {
        double rates[2]; /* nanoseconds per operation */
        enum mm_status status;
    } cases[] = {{{1.0, 1.0}, MM_OK}, {{1e6, 1.0}, MM_OK}, {{1.0, 1e6}, MM_OK}, {{1e6, 1e6}, MM_TOO_LARGE}};
    const struct mm_matrix square = mm_matrix_dense(MM_FLOAT32, 100, 100, NULL);
    struct mm_job job = {.work.backend = &twins, .product = {.a = square, .b = square, .c = square}};
    /* The option `devices` selects GPUs, so it keeps both devices of the host. */
    static const unsigned chosen[] = {0};
    const struct mm_engine_options options = {.backend = "twins",
                                              .devices = chosen,
                                              .device_count = COUNT(chosen),
                                              .queue = {.jobs_max = 4},
                                              .device_bytes_max = 7,
                                              .kernel_ms_max = 1000};
    struct mm_engine *engine = NULL;
    size_t count = 0;
    make_twins();
    assert_int_equal(mm_engine_open(&options, &engine, NULL), MM_OK);
    struct mm_device *const *devices = mm_engine_devices(engine, &count);
    assert_int_equal(count, 2);
    job.variant = &twins.variants[0];
    assert_int_equal(mm_product_conform(MM_MATMUL, &job.product, NULL), MM_OK);
    for (size_t index = 0; index < COUNT(cases); index++) {
        struct mm_error error = {.status = MM_OK};
        for (size_t device = 0; device < 2; device++)
            devices[device]->forecast.kernel_ns[0][MM_FLOAT32] = cases[index].rates[device];
        assert_int_equal(mm_engine_check(engine, &job, &error), cases[index].status);
        assert_int_equal(error.status, cases[index].status);
    }
    mm_engine_close(engine);
}

enum { WORKSPACE_BYTES = 1000, SMALLEST_TILE_BYTES = 64 };

static enum mm_status plan_with_workspace(const struct mm_product *product, struct mm_plan *plan,
                                          struct mm_error *error) {
    plan->workspace_bytes = WORKSPACE_BYTES;
    return MM_OK;
}

static bool find_tiles(const struct mm_job *job, const struct mm_plan *plan, size_t bytes,
                       struct mm_tiling *tiling) {
    assert_int_equal(plan->workspace_bytes, WORKSPACE_BYTES);
    return bytes >= SMALLEST_TILE_BYTES;
}

/* A product with a generated operand runs in tiles if it exceeds the limit, and is refused if no tile is
 * small enough. A product whose operands come with the request is never refused. Without the option, the
 * limit is an eighth of the device's memory. */
static void too_large_products_run_in_tiles(void **state) {
    enum { NEEDED = 2 * 4 * 4 * 4 + WORKSPACE_BYTES }; /* the generated operand, C and the workspace */
    static const struct {
        enum mm_source_kind kind;
        bool is_option, has_tiles;
        size_t limit;
        enum mm_status status;
        size_t of_job;
    } cases[] = {
        {MM_SOURCE_UNIFORM, true, false, NEEDED, MM_OK, NEEDED},
        {MM_SOURCE_UNIFORM, true, false, NEEDED - 1, MM_TOO_LARGE, NEEDED - 1},
        {MM_SOURCE_UNIFORM, true, true, NEEDED - 1, MM_OK, NEEDED - 1},
        {MM_SOURCE_UNIFORM, true, true, SMALLEST_TILE_BYTES - 1, MM_TOO_LARGE, SMALLEST_TILE_BYTES - 1},
        {MM_SOURCE_UNIFORM, false, true, NEEDED, MM_OK, 0},
        {MM_SOURCE_UNIFORM, false, true, NEEDED - 1, MM_OK, NEEDED - 1},
        {MM_SOURCE_HOST, true, true, SMALLEST_TILE_BYTES - 1, MM_OK, SMALLEST_TILE_BYTES - 1},
        {MM_SOURCE_HOST, false, false, 1, MM_OK, 0}};
    const struct mm_matrix square = mm_matrix_dense(MM_FLOAT32, 4, 4, NULL);
    struct mm_job job = {.work.backend = &twins, .product = {.a = square, .b = square, .c = square}};
    assert_int_equal(mm_product_conform(MM_MATMUL, &job.product, NULL), MM_OK);
    for (size_t index = 0; index < COUNT(cases); index++) {
        const struct mm_engine_options options = {.backend = "twins",
                                                  .queue = {.jobs_max = 4},
                                                  .device_bytes_max =
                                                      cases[index].is_option ? cases[index].limit : 0};
        struct mm_engine *engine = NULL;
        struct mm_error error;
        size_t count;
        make_twins();
        assert_int_equal(mm_engine_open(&options, &engine, NULL), MM_OK);
        for (unsigned device = 0; device < 2; device++)
            mm_engine_devices(engine, &count)[device]->memory_bytes = 8 * cases[index].limit;
        twins.is_host = false;
        twins.plan = plan_with_workspace;
        twins.find_tiles = cases[index].has_tiles ? find_tiles : NULL;
        job.variant = &twins.variants[0];
        job.sources[MM_OPERAND_A].kind = cases[index].kind;
        assert_int_equal(mm_engine_check(engine, &job, &error), cases[index].status);
        assert_int_equal(job.device_bytes_max, cases[index].of_job);
        twins.is_host = true;
        mm_engine_close(engine);
    }
}

/* The log names only backends that the program contains. */
static void a_backend_without_devices_says_why(void **state) {
    static const struct {
        bool is_built_in;
        const char *backend, *missing, *note;
    } cases[] = {{false, "auto", "no driver", ""},
                 {false, "twins", "no driver", ""},
                 {true, "auto", "no driver", "driverless: no driver"},
                 {true, "twins", "the server was started with --backend twins", ""}};
    make_twins();
    for (size_t index = 0; index < COUNT(cases); index++) {
        const struct mm_engine_options options = {.backend = cases[index].backend, .queue = {.jobs_max = 4}};
        struct mm_engine *engine = NULL;
        size_t count = 0;
        driverless_is_built_in = cases[index].is_built_in;
        assert_int_equal(mm_engine_open(&options, &engine, NULL), MM_OK);
        const struct mm_offer *offers = mm_engine_offers(engine, &count);
        assert_int_equal(count, 2);
        assert_ptr_equal(offers[0].backend, &driverless);
        assert_int_equal(offers[0].device_count, 0);
        assert_string_equal(offers[0].missing, cases[index].missing);
        assert_ptr_equal(offers[1].devices[1]->backend, &twins);
        assert_int_equal(offers[1].device_count, 2);
        assert_string_equal(offers[1].missing, "");
        assert_string_equal(mm_engine_note(engine), cases[index].note);
        mm_engine_close(engine);
    }
}

/* status that each device returns, by the device's index */
static enum mm_status copy_statuses[2];

static enum mm_status acquire_copy(struct mm_device *device, size_t bytes, struct mm_device_copy **copy,
                                   struct mm_error *error) {
    const enum mm_status status = copy_statuses[device->index];
    return status == MM_OK ? MM_OK : mm_fail(error, status, "simulated failure");
}

/* The second device has more free memory, so it is asked first and its error is reported. */
static void refused_copy_has_the_error_of_the_device_with_most_memory(void **state) {
    static const enum mm_status cases[][3] = {{MM_STORE_FULL, MM_NO_DEVICE_MEMORY, MM_NO_DEVICE_MEMORY},
                                              {MM_OK, MM_NO_DEVICE_MEMORY, MM_OK},
                                              {MM_STORE_FULL, MM_OK, MM_OK}};
    const struct mm_engine_options options = {.backend = "twins", .queue = {.jobs_max = 4}};
    struct mm_engine *engine = NULL;
    size_t count;
    make_twins();
    assert_int_equal(mm_engine_open(&options, &engine, NULL), MM_OK);
    twins.acquire_copy = acquire_copy;
    mm_engine_devices(engine, &count)[0]->stored_bytes = 1;
    for (size_t index = 0; index < COUNT(cases); index++) {
        struct mm_device_copy *copy;
        struct mm_error error = {.status = MM_OK};
        memcpy(copy_statuses, cases[index], sizeof copy_statuses);
        assert_int_equal(mm_engine_acquire_copy(engine, 8, &copy, &error), cases[index][2]);
        if (cases[index][2] != MM_OK)
            assert_int_equal(error.status, cases[index][2]);
    }
    mm_engine_close(engine);
}

RUN_TESTS(one_device_that_is_fast_enough_suffices, too_large_products_run_in_tiles,
          a_backend_without_devices_says_why, refused_copy_has_the_error_of_the_device_with_most_memory)
