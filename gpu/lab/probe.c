/* The steps of a probe. The backend measures the times. */
#include "gpu/lab/probe.h"

#include <assert.h>
#include <stdlib.h>

/* Does a slice of a probe. The first step also measures the speed of the memories. A probe acquires no
 * device memory between steps, so a cancelled probe has nothing to release. */
static enum mm_task_state run(struct mm_task *task, struct mm_device *device, bool cancelled) {
    struct mm_probe *probe = task->subject;
    const uint64_t until_ns = mm_clock_ns() + MM_TASK_SLICE_NS;
    assert(probe->count <= MM_PROBE_ACCESSES_MAX);
    probe->device = device;
    while (!cancelled && probe->done < probe->count) {
        const size_t done = probe->done;
        const size_t count = mm_size_min(probe->count - done, MM_PROBE_STEP);
        if (device->backend->probe(device, probe->accesses + done, count, probe->times + done,
                                   done == 0 ? &probe->speed : NULL, &task->work.error) != MM_OK)
            return MM_TASK_OVER;
        probe->done += count;
        if (probe->done < probe->count && mm_clock_ns() >= until_ns)
            return MM_TASK_AGAIN;
    }
    return MM_TASK_OVER;
}

struct mm_task mm_probe_task(struct mm_probe *probe, const struct mm_backend *backend) {
    return (struct mm_task){.work = {.kind = MM_WORK_TASK, .backend = backend}, .subject = probe, .run = run};
}

static bool has_inactive_lane(const struct mm_access *access) {
    unsigned lane = 0;
    while (lane < MM_WARP_LANES && access->words[lane] != MM_LANE_INACTIVE)
        lane++;
    return access->pattern == MM_PATTERN_OFFSETS && lane < MM_WARP_LANES;
}

bool mm_probe_can_time(const struct mm_probe *probe, const struct mm_device *device) {
    bool can = device->backend->probe != NULL && !probe->writes &&
               (probe->bank_bytes == 0 || probe->bank_bytes == device->shared_bank_bytes);
    for (size_t index = 0; index < probe->count; index++)
        can = can && !has_inactive_lane(&probe->accesses[index]);
    return can;
}

unsigned mm_probe_bank_bytes(const struct mm_probe *probe) {
    const unsigned bank_bytes = probe->bank_bytes != 0 ? probe->bank_bytes : probe->device->shared_bank_bytes;
    return bank_bytes != 0 ? bank_bytes : 4;
}

struct mm_probe *mm_probe_copy(const struct mm_probe *probe) {
    struct mm_probe *copy = malloc(sizeof *copy);
    if (copy != NULL)
        *copy = *probe;
    return copy;
}
