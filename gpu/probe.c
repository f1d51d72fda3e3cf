/* The steps of a probe. The backend does the timing. */
#include "gpu/probe.h"

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
