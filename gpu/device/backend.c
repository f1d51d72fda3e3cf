/* Finds backends and variants by name, and runs one job on any device. */
#include "gpu/device/backend.h"

#include <stddef.h>
#include <string.h>

enum mm_status mm_device_run(struct mm_device *device, struct mm_job *job) {
    const struct mm_error *error = &job->work.error;
    mm_job_clear(job);
    if (mm_job_plan(job, device, &job->work.error) != MM_OK)
        return error->status;
    mm_job_begin(job, device);
    do {
        job->more = false;
        device->backend->begin(device, 0, &job, 1);
        if (error->status == MM_OK)
            device->backend->end(device, 0, &job, 1);
    } while (error->status == MM_OK && job->more);
    return error->status;
}

const struct mm_backend *mm_backend_find(const char *name) {
    for (const struct mm_backend *const *backend = mm_backends(); *backend != NULL; backend++)
        if (strcmp((*backend)->name, name) == 0)
            return *backend;
    return NULL;
}

const struct mm_variant *mm_backend_variant(const struct mm_backend *backend, enum mm_op op,
                                            const char *name) {
    for (size_t index = 0; index < backend->variant_count; index++) {
        const struct mm_variant *variant = &backend->variants[index];
        if (variant->op == op && strcmp(variant->name, name) == 0)
            return variant;
    }
    return NULL;
}
