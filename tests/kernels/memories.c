/* Measures every access pattern in every memory of each CUDA device, and prints tables. Checks physical
 * limits: a bank serves one word per cycle, and a memory farther from the cores is slower. Exits with 77
 * without a device. */
#include "api/lab/access.h"
#include "gpu/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { EXIT_SKIPPED = 77 };

/* the longest time that a slice of a probe may take after the kernels are loaded */
#define SLICE_NS_MAX UINT64_C(200000000)

static unsigned failures;

/* Prints a failure if `less` is not below `more`. `access` is NULL if the law concerns the whole device. */
static void expect_less(double less, double more, const char *law, const struct mm_access *access) {
    if (isfinite(less) && isfinite(more) && less < more)
        return;
    failures++;
    printf("FAIL: %s: %g and %g", law, less, more);
    if (access != NULL)
        printf(" (%s, %s, stride %u, words of %u bytes%s)", mm_memory_name(access->memory),
               mm_pattern_name(access->pattern), access->stride, access->word_bytes,
               access->padded ? ", padded" : "");
    printf("\n");
}

/* Measured times may be one cycle too small, so the limits are one cycle lower. */
static void check_access(const struct mm_probe *probe, size_t index) {
    const struct mm_access *access = &probe->accesses[index];
    const struct mm_access_time *time = &probe->times[index];
    uint32_t offsets[MM_WARP_LANES];
    expect_less(0, time->cycles, "an access takes time", access);
    if (access->memory == MM_MEMORY_GLOBAL)
        return;
    mm_access_offsets(access, offsets);
    const struct mm_bank_cost cost = mm_banks_predict(offsets, access->word_bytes, 4);
    expect_less(cost.passes - 1.0, time->cycles, "a bank serves one word in a cycle", access);
    expect_less(time->cycles - 1, time->latency_cycles, "reads that wait for each other are not faster",
                access);
}

static const struct mm_access_time *find(const struct mm_probe *probe, unsigned stride, bool padded) {
    for (size_t index = 0; index < probe->count; index++) {
        const struct mm_access *access = &probe->accesses[index];
        if (access->memory == MM_MEMORY_SHARED && access->word_bytes == 4 &&
            access->pattern == MM_PATTERN_STRIDE && access->stride == stride && access->padded == padded)
            return &probe->times[index];
    }
    abort();
}

/* The stride is a power of two, so the number of threads that use the same bank equals the stride. With
 * padding, each thread uses a different bank. */
static void check_strides(const struct mm_probe *probe) {
    for (unsigned stride = 2; stride <= 32; stride *= 2)
        expect_less(find(probe, stride / 2, false)->latency_cycles,
                    find(probe, stride, false)->latency_cycles, "a higher degree takes longer", NULL);
    const struct mm_access_time *column = find(probe, 32, false);
    const struct mm_access_time *padded = find(probe, 32, true);
    expect_less(2 * padded->cycles, column->cycles, "padding undoes the conflict, by cycles", NULL);
    expect_less(padded->latency_cycles, column->latency_cycles, "padding undoes the conflict, by latency",
                NULL);
}

static void check_speed(const struct mm_memory_speed *speed) {
    expect_less(0, speed->shared_latency_cycles, "shared memory takes time", NULL);
    expect_less(speed->shared_latency_cycles, speed->cache_latency_cycles, "shared memory is nearer than L2",
                NULL);
    expect_less(speed->cache_latency_cycles, speed->global_latency_cycles, "L2 is nearer than memory", NULL);
    expect_less(0, speed->global_bytes_per_second, "global memory gives something", NULL);
    expect_less(speed->global_bytes_per_second, speed->shared_bytes_per_second, "shared memory is faster",
                NULL);
}

/* Runs a whole probe. Returns false on failure. Sets *longest_ns to the time of its longest slice. */
static bool run(struct mm_device *device, struct mm_probe *probe, uint64_t *longest_ns) {
    struct mm_task task = mm_probe_task(probe, device->backend);
    enum mm_task_state state = MM_TASK_AGAIN;
    probe->done = 0;
    *longest_ns = 0;
    while (state == MM_TASK_AGAIN) {
        const uint64_t begun_ns = mm_clock_ns();
        state = task.run(&task, device, false);
        const uint64_t slice_ns = mm_clock_ns() - begun_ns;
        *longest_ns = slice_ns > *longest_ns ? slice_ns : *longest_ns;
    }
    if (probe->done == probe->count)
        return true;
    printf("FAIL: after %zu accesses: %s\n", probe->done, task.work.error.detail);
    failures++;
    return false;
}

/* Runs the probe twice, because the first run also loads the kernels. */
static void check_device(struct mm_device *device) {
    struct mm_probe probe;
    uint64_t longest_ns;
    size_t length;
    static const struct mm_access_request everything;
    if (mm_access_combine(&everything, &probe, NULL) != MM_OK)
        abort();
    if (!run(device, &probe, &longest_ns) || !run(device, &probe, &longest_ns))
        return;
    char *table = mm_access_table(&probe, &length);
    printf("%slongest slice: %.1f ms\n", table != NULL ? table : "", (double)longest_ns / 1e6);
    free(table);
    expect_less((double)longest_ns, (double)SLICE_NS_MAX, "a slice is short", NULL);
    for (size_t index = 0; index < probe.count; index++)
        check_access(&probe, index);
    check_strides(&probe);
    check_speed(&probe.speed);
}

int main(void) {
    const struct mm_backend *cuda = mm_backend_find("cuda");
    struct mm_error error = {.detail = "CUDA is not built in"};
    unsigned count = 0;
    if (cuda == NULL || cuda->count(&count, &error) != MM_OK) {
        printf("no device: %s\n", error.detail);
        return EXIT_SKIPPED;
    }
    for (unsigned index = 0; index < count; index++) {
        struct mm_device *device;
        if (cuda->open(index, &device, &error) == MM_OK) {
            check_device(device);
            cuda->close(device);
        } else {
            printf("FAIL: %s\n", error.detail);
            failures++;
        }
    }
    printf("%u devices, %u failures\n", count, failures);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
