/* Chooses the devices and subjects to test. A variant with several tiles makes one subject for each tile. */
#include "tests/kernels/options.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { SUBJECTS_MAX = 64 };

static struct mm_device *open_first(const struct mm_backend *backend) {
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

size_t devices_open(const struct options *options, struct mm_device *devices[DEVICES_MAX]) {
    size_t count = 0;
    for (const struct mm_backend *const *backend = mm_backends(); *backend != NULL && count < DEVICES_MAX;
         backend++)
        if (options->backend == NULL || strcmp(options->backend, (*backend)->name) == 0) {
            devices[count] = open_first(*backend);
            count += devices[count] != NULL;
        }
    return count;
}

/* Returns whether the options select the subject. A variant that is wrong on purpose is selected only by its
 * name. */
static bool selected(const struct options *options, const struct subject *subject) {
    for (unsigned index = 0; index < options->variant_count; index++)
        if (strcmp(options->variants[index], subject->variant->name) == 0 ||
            strcmp(options->variants[index], subject->name) == 0)
            return true;
    return options->variant_count == 0 && !subject->variant->wrong_on_purpose;
}

/* Returns whether the device supports the subject's tile, which may need too much shared memory. */
static enum mm_status try_tile(const struct subject *subject, enum mm_dtype dtype, struct mm_error *error) {
    uint64_t elements[3] = {0};
    const struct mm_backend *backend = subject->device->backend;
    struct mm_job job = {.work.backend = backend, .variant = subject->variant};
    job.product.tile = subject->tile;
    job.product.a = mm_matrix_dense(dtype, 1, 1, &elements[0]);
    job.product.b = mm_matrix_dense(dtype, 1, 1, &elements[1]);
    job.product.c = mm_matrix_dense(mm_dtype_result(dtype), 1, 1, &elements[2]);
    mm_product_conform(MM_MATMUL, &job.product, NULL);
    (void)mm_device_run(subject->device, &job);
    *error = job.work.error;
    return error->status;
}

/* Sets subject->name. Appends the subject to `subjects` if it is selected and the device supports it. */
static void add_subject(const struct options *options, enum mm_dtype dtype, struct subject *subject,
                        struct subject *subjects, size_t *count) {
    struct mm_error error;
    char tile[16] = "";
    if (subject->tile != 0)
        snprintf(tile, sizeof tile, "/%u", subject->tile);
    snprintf(subject->name, sizeof subject->name, "%s%s", subject->variant->name, tile);
    if (!selected(options, subject))
        return;
    const char *reason = mm_variant_missing(subject->variant, subject->device, dtype);
    const bool is_choice = subject->tile != 0 && subject->tile != subject->variant->tile;
    if (reason == NULL && is_choice && try_tile(subject, dtype, &error) == MM_UNSUPPORTED)
        reason = error.detail;
    assert(*count < SUBJECTS_MAX);
    if (reason == NULL)
        subjects[(*count)++] = *subject;
    else
        printf("- %s:%s: %s: skipped\n", subject->device->backend->name, subject->name, reason);
}

struct subject *subjects_choose(const struct options *options, struct mm_device *device, enum mm_op op,
                                enum mm_dtype dtype, size_t *count) {
    struct subject *subjects = harness_allocate(SUBJECTS_MAX * sizeof *subjects);
    *count = 0;
    for (size_t index = 0; index < device->backend->variant_count; index++) {
        const struct mm_variant *row = &device->backend->variants[index];
        struct subject subject = {.device = device, .variant = row};
        if (row->op != op || !(mm_variant_dtypes(row) & MM_DTYPE_BIT(dtype)))
            continue;
        if (row->tiles == NULL)
            add_subject(options, dtype, &subject, subjects, count);
        for (size_t tile = 0; row->tiles != NULL && row->tiles[tile] != 0; tile++) {
            subject.tile = row->tiles[tile];
            add_subject(options, dtype, &subject, subjects, count);
        }
    }
    return subjects;
}

/* Plain kernels use no tensor cores and no library. */
static bool is_plain(const struct subject *subject) {
    return strcmp(subject->variant->name, "naive") == 0 || strncmp(subject->variant->name, "tiled", 5) == 0;
}

/* On a GPU, whether k is split depends on the shape of a part, so different parts may add in a different
 * order. */
bool subject_has_one_order(const struct subject *subject, enum mm_dtype dtype) {
    return !mm_dtype_is_float(dtype) || (subject->device->backend->is_host && is_plain(subject));
}

enum mm_arithmetic subject_arithmetic(const struct subject *subject, enum mm_dtype dtype) {
    const bool cuts_off = !subject->device->backend->is_host && dtype != MM_FLOAT32 && dtype != MM_FLOAT64 &&
                          !is_plain(subject);
    if (subject->variant->rounds_to_tf32)
        return MM_OF_TF32;
    return cuts_off ? MM_CUT_OFF : MM_ROUNDED;
}
