/* Tests which accesses a probe measures in which step. */
#include "gpu/lab/probe.h"
#include "tests/unit/unit.h"

/* Calls of the fake backend. */
static struct {
    unsigned calls;
    unsigned speeds;
    size_t most;
    bool fails;
    uint64_t takes_ns;
} asked;

/* The fake time of an access is computed from its stride. */
static enum mm_status fake_probe(struct mm_device *device, const struct mm_access *accesses, size_t count,
                                 struct mm_access_time *times, struct mm_memory_speed *speed,
                                 struct mm_error *error) {
    asked.calls++;
    asked.speeds += speed != NULL;
    asked.most = count > asked.most ? count : asked.most;
    const uint64_t until_ns = mm_clock_ns() + asked.takes_ns;
    while (mm_clock_ns() < until_ns)
        continue;
    if (asked.fails)
        return mm_fail(error, MM_DEVICE_FAILED, "simulated failure");
    for (size_t index = 0; index < count; index++)
        times[index].cycles = accesses[index].stride;
    if (speed != NULL)
        speed->global_latency_cycles = 600;
    return MM_OK;
}

static const struct mm_backend able = {.name = "able", .probe = fake_probe};

static struct mm_task make(struct mm_probe *probe, size_t count) {
    *probe = (struct mm_probe){.count = 0};
    memset(&asked, 0, sizeof asked);
    probe->count = count;
    for (size_t index = 0; index < count; index++)
        probe->accesses[index].stride = (unsigned)index + 1;
    return mm_probe_task(probe, &able);
}

static void test_steps(void **state) {
    static const size_t counts[] = {1, MM_PROBE_STEP - 1, MM_PROBE_STEP, MM_PROBE_STEP + 1,
                                    MM_PROBE_ACCESSES_MAX};
    struct mm_device device = {.backend = &able};
    struct mm_probe probe;
    for (size_t one = 0; one < COUNT(counts); one++) {
        const size_t count = counts[one];
        struct mm_task task = make(&probe, count);
        assert_int_equal(task.run(&task, &device, false), MM_TASK_OVER);
        assert_int_equal(asked.calls, (count + MM_PROBE_STEP - 1) / MM_PROBE_STEP);
        assert_int_equal(asked.speeds, 1);
        assert_in_range(asked.most, 1, MM_PROBE_STEP);
        assert_true(probe.speed.global_latency_cycles == 600);
        for (size_t index = 0; index < count; index++)
            assert_true(probe.times[index].cycles == (double)index + 1);
        for (size_t index = count; index < MM_PROBE_ACCESSES_MAX; index++)
            assert_true(probe.times[index].cycles == 0);
    }
}

static void test_task(void **state) {
    struct mm_device device = {.backend = &able};
    struct mm_probe probe;
    struct mm_task task = make(&probe, 3 * MM_PROBE_STEP);
    uint64_t begun_ns = mm_clock_ns();
    while (task.run(&task, &device, false) != MM_TASK_OVER) {
        /* A step must use its whole slice. */
        assert_true(mm_clock_ns() - begun_ns >= MM_TASK_SLICE_NS);
        begun_ns = mm_clock_ns();
    }
    assert_int_equal(probe.done, probe.count);
    assert_int_equal(task.work.error.status, MM_OK);
    assert_ptr_equal(probe.device, &device);

    task = make(&probe, 2 * MM_PROBE_STEP); /* each step takes a whole slice */
    asked.takes_ns = MM_TASK_SLICE_NS;
    assert_int_equal(task.run(&task, &device, false), MM_TASK_AGAIN);
    assert_int_equal(asked.calls, 1);
    assert_int_equal(task.run(&task, &device, false), MM_TASK_OVER);
    assert_int_equal(probe.done, probe.count);

    task = make(&probe, 2 * MM_PROBE_STEP);
    task.work.error.status = MM_STOPPING;
    assert_int_equal(task.run(&task, &device, true), MM_TASK_OVER);
    assert_int_equal(asked.calls, 0);
    assert_int_equal(task.work.error.status, MM_STOPPING);
    asked.fails = true;
    assert_int_equal(task.run(&task, &device, false), MM_TASK_OVER);
    assert_int_equal(task.work.error.status, MM_DEVICE_FAILED);
    assert_int_equal(probe.done, 0);
}

/* A device measures only reads by all lanes, and only with banks of its own width. */
static void test_can_time(void **state) {
    static const struct mm_backend plain = {.name = "plain"};
    struct mm_device device = {.backend = &able, .shared_bank_bytes = 4};
    struct mm_device host = {.backend = &plain};
    struct mm_probe probe;
    make(&probe, 2);
    assert_true(mm_probe_can_time(&probe, &device));
    assert_false(mm_probe_can_time(&probe, &host));
    probe.bank_bytes = 4;
    assert_true(mm_probe_can_time(&probe, &device));
    probe.bank_bytes = 8;
    assert_false(mm_probe_can_time(&probe, &device));
    probe.device = &device;
    assert_int_equal(mm_probe_bank_bytes(&probe), 8);
    make(&probe, 2);
    probe.writes = true;
    assert_false(mm_probe_can_time(&probe, &device));
    make(&probe, 2);
    probe.accesses[1].pattern = MM_PATTERN_OFFSETS;
    assert_true(mm_probe_can_time(&probe, &device));
    probe.accesses[1].words[31] = MM_LANE_INACTIVE;
    assert_false(mm_probe_can_time(&probe, &device));
    device.shared_bank_bytes = 8;
    probe.device = &device;
    assert_int_equal(mm_probe_bank_bytes(&probe), 8);
    probe.device = &host;
    assert_int_equal(mm_probe_bank_bytes(&probe), 4);
}

RUN_TESTS(test_steps, test_task, test_can_time)
