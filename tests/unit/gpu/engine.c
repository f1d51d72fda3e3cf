/* The engine on the CPU: it opens, multiplies, and says what there is where a name is unknown. */
#include "gpu/engine.h"
#include "tests/unit/unit.h"

static struct mm_engine *open_engine(const char *backend) {
    const struct mm_engine_options options = {.backend = backend, .queue = {.jobs_max = 4}};
    struct mm_engine *engine = NULL;
    struct mm_error error;
    if (mm_engine_open(&options, &engine, &error) != MM_OK)
        return NULL;
    return engine;
}

static void opens_the_cpu(void **state) {
    size_t count = 0;
    struct mm_engine *engine = open_engine("cpu");
    assert_non_null(engine);
    struct mm_device *const *devices = mm_engine_devices(engine, &count);
    assert_int_equal(count, 1);
    assert_string_equal(devices[0]->backend->name, "cpu");
    assert_true(devices[0]->name[0] != '\0');
    assert_false(mm_engine_is_lost(engine));
    __atomic_store_n(&devices[0]->failed, 1, __ATOMIC_RELAXED);
    assert_true(mm_engine_is_lost(engine));
    mm_engine_close(engine);
}

static void an_unknown_backend_does_not_open(void **state) {
    const struct mm_engine_options options = {.backend = "tpu", .queue = {.jobs_max = 4}};
    struct mm_engine *engine = NULL;
    struct mm_error error;
    assert_int_equal(mm_engine_open(&options, &engine, &error), MM_NOT_READY);
    assert_non_null(strstr(error.detail, "tpu"));
    assert_null(engine);
}

static void names_resolve_or_tell_what_there_is(void **state) {
    static const struct {
        const char *backend, *variant;
        enum mm_status status;
        const char *words;
    } cases[] = {
        {"auto", "auto", MM_OK, ""},
        {"cpu", "naive", MM_OK, ""},
        {"auto", "tiled_16", MM_OK, ""},
        {"cpu", "tiled_17", MM_UNSUPPORTED, "naive, tiled_8, tiled_16, tiled_32"},
        {"cpu", "", MM_UNSUPPORTED, "variant is ''"},
        {"npu", "naive", MM_UNSUPPORTED, "auto, cpu"},
        {"cuda", "naive", MM_UNSUPPORTED, "auto, cpu"},
    };
    struct mm_engine *engine = open_engine("cpu");
    assert_non_null(engine);
    for (size_t index = 0; index < COUNT(cases); index++) {
        struct mm_job job = {0};
        struct mm_error error = {0};
        job.product.a.dtype = MM_FLOAT32;
        assert_int_equal(
            mm_engine_choose(engine, MM_MATMUL, cases[index].backend, cases[index].variant, &job, &error),
            cases[index].status);
        assert_non_null(strstr(error.detail, cases[index].words));
        if (cases[index].status == MM_OK)
            assert_string_equal(job.variant->name, cases[index].variant);
    }
    mm_engine_close(engine);
}

static void devices_are_for_gpus(void **state) {
    static const unsigned chosen[] = {0};
    const struct mm_engine_options options = {
        .backend = "cpu", .devices = chosen, .device_count = 1, .queue = {.jobs_max = 4}};
    struct mm_engine *engine = NULL;
    assert_int_equal(mm_engine_open(&options, &engine, NULL), MM_OK);
    mm_engine_close(engine);
}

RUN_TESTS(opens_the_cpu, an_unknown_backend_does_not_open, names_resolve_or_tell_what_there_is,
          devices_are_for_gpus)
