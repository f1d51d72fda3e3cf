/* Which devices the harness runs on, and which of their rows. */
#include "tests/kernels/options.h"

#include <stdio.h>
#include <string.h>

struct mm_device *device_open_first(const struct mm_backend *backend) {
    unsigned count = 0;
    struct mm_error error = {0};
    struct mm_device *device = NULL;
    enum mm_status status = backend->count(&count, &error);
    if (status == MM_OK)
        status = backend->open(0, &device, &error);
    if (status != MM_OK) {
        printf("- %s: %s: skipped\n", backend->name, error.detail);
        return NULL;
    }
    printf("- %s: %s", backend->name, device->name);
    if (device->compute_capability > 0)
        printf(", compute capability %u.%u, %u multiprocessors, driver for CUDA %s",
               device->compute_capability / 10, device->compute_capability % 10, device->multiprocessors,
               device->driver);
    printf("\n");
    return device;
}

static bool selected(const struct options *options, const char *name) {
    for (unsigned index = 0; index < options->variant_count; index++)
        if (strcmp(options->variants[index], name) == 0)
            return true;
    return options->variant_count == 0;
}

struct subject *subjects_choose(const struct options *options, struct mm_device *device,
                                const struct mm_variant *rows, size_t row_count, size_t *count) {
    struct subject *subjects = harness_allocate(row_count * sizeof *subjects);
    *count = 0;
    for (size_t index = 0; index < row_count; index++) {
        const struct mm_variant *row = &rows[index];
        const char *missing = mm_variant_missing(row, device);
        if (!selected(options, row->name) || row->op != MM_MATMUL ||
            !(row->dtypes & MM_DTYPE_BIT(MM_FLOAT32)))
            continue;
        if (missing != NULL)
            printf("- %s:%s: %s: skipped\n", device->backend->name, row->name, missing);
        else
            subjects[(*count)++] = (struct subject){.device = device, .variant = row};
    }
    return subjects;
}
