/* The steps of a probe. The backend does the timing. */
#include "gpu/lab/probe.h"

#include <assert.h>

enum mm_status mm_probe_step(struct mm_probe *probe, struct mm_device *device, struct mm_error *error) {
    const struct mm_backend *backend = device->backend;
    const size_t left = probe->count - probe->done;
    const size_t count = left < MM_PROBE_STEP ? left : MM_PROBE_STEP;
    assert(probe->count <= MM_PROBE_ACCESSES_MAX);
    assert(probe->done < probe->count);
    if (backend->probe == NULL)
        return mm_fail(error, MM_UNSUPPORTED, "the devices of backend '%s' have no shared memory in banks",
                       backend->name);
    const enum mm_status status =
        backend->probe(device, probe->accesses + probe->done, count, probe->times + probe->done,
                       probe->done == 0 ? &probe->speed : NULL, error);
    if (status == MM_OK)
        probe->done += count;
    return status;
}

/* It holds nothing of the device between two steps, so that a cancelled one has nothing to give back. */
static enum mm_task_state run(struct mm_task *task, struct mm_device *device, bool cancelled,
                              struct mm_error *error) {
    struct mm_probe_task *probing = (struct mm_probe_task *)task; /* its first member */
    struct mm_probe *probe = &probing->probe;
    const uint64_t until_ns = mm_clock_ns() + MM_TASK_SLICE_NS;
    probing->device = device;
    while (!cancelled && probe->done < probe->count) {
        if (mm_probe_step(probe, device, error) != MM_OK)
            return MM_TASK_OVER;
        if (probe->done < probe->count && mm_clock_ns() >= until_ns)
            return MM_TASK_AGAIN;
    }
    return MM_TASK_OVER;
}

void mm_probe_task_init(struct mm_probe_task *task) {
    task->task = (struct mm_task){.run = run};
    task->device = NULL;
}
