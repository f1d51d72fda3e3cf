/* Opens and tests the devices, and finds backends and variants by the names that clients use. */
#include "gpu/device/engine.h"

#include "gpu/plan/tiling.h"
#include "gpu/queue/self_test.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mm_engine {
    struct mm_device *devices[MM_DEVICES_MAX];
    size_t device_count;
    struct mm_offer offers[MM_BACKENDS_MAX];
    size_t offer_count;
    struct mm_watch *watch;
    struct mm_queue *queue;
    size_t device_bytes_max;
    uint64_t kernel_ms_max;
    char note[512];
};

static void add_note(struct mm_engine *engine, const char *who, const char *why) {
    size_t length = strlen(engine->note);
    snprintf(engine->note + length, sizeof engine->note - length, "%s%s: %s", length > 0 ? "; " : "", who,
             why);
}

static bool is_chosen(const struct mm_engine_options *options, unsigned device_index) {
    if (options->devices == NULL)
        return true;
    for (size_t index = 0; index < options->device_count; index++)
        if (options->devices[index] == device_index)
            return true;
    return false;
}

/* Fails if the options name a GPU that does not exist. This is an error even with the backend "auto". */
static enum mm_status check_devices(const struct mm_engine_options *options, unsigned count,
                                    struct mm_error *error) {
    for (size_t index = 0; options->devices != NULL && index < options->device_count; index++)
        if (options->devices[index] >= count)
            return mm_fail(error, MM_UNSUPPORTED, "there is no device %u; there are %u, counted from 0",
                           options->devices[index], count);
    return MM_OK;
}

static enum mm_status open_device(struct mm_engine *engine, const struct mm_backend *backend, unsigned index,
                                  unsigned host_jobs, struct mm_error *error) {
    struct mm_device *device = NULL;
    if (engine->device_count == MM_DEVICES_MAX)
        return mm_fail(error, MM_NOT_READY, "there are more than %d devices", MM_DEVICES_MAX);
    enum mm_status status = backend->open(index, &device, error);
    if (status != MM_OK)
        return status;
    status = mm_self_test(device, error);
    if (status == MM_OK)
        status = mm_self_test_rates(device, error);
    if (status != MM_OK) {
        backend->close(device);
        return status;
    }
    if (backend->is_host && host_jobs != 0 && host_jobs < device->lane_count)
        device->lane_count = host_jobs;
    device->number = (unsigned)engine->device_count;
    engine->devices[engine->device_count++] = device;
    return MM_OK;
}

/* Opens those devices of a backend that work. Records why the other devices did not open. */
static enum mm_status open_backend(struct mm_engine *engine, const struct mm_backend *backend,
                                   const struct mm_engine_options *options, struct mm_error *error) {
    unsigned count = 0;
    enum mm_status status = backend->count(&count, error);
    if (status == MM_OK && !backend->is_host)
        status = check_devices(options, count, error);
    if (status != MM_OK) {
        add_note(engine, backend->name, error->detail);
        return status;
    }
    for (unsigned index = 0; index < count; index++) {
        if (!backend->is_host && !is_chosen(options, index))
            continue;
        enum mm_status opened = open_device(engine, backend, index, options->host_jobs, error);
        if (opened == MM_OK)
            continue;
        char who[64];
        snprintf(who, sizeof who, "%s:%u", backend->name, index);
        add_note(engine, who, error->detail);
    }
    return MM_OK;
}

/* Adds a backend to engine->offers, with the devices from index `before` on. If there are no such devices,
 * `error` says why. */
static void add_offer(struct mm_engine *engine, const struct mm_backend *backend, size_t before,
                      const struct mm_error *error) {
    assert(engine->offer_count < MM_BACKENDS_MAX);
    struct mm_offer *offer = &engine->offers[engine->offer_count++];
    *offer = (struct mm_offer){backend, engine->devices + before, engine->device_count - before, ""};
    if (offer->device_count == 0)
        snprintf(offer->missing, sizeof offer->missing, "%.*s", MM_MISSING_MAX, error->detail);
}

static enum mm_status open_backends(struct mm_engine *engine, const struct mm_engine_options *options,
                                    struct mm_error *error) {
    const bool is_any = strcmp(options->backend, "auto") == 0;
    if (!is_any && mm_backend_find(options->backend) == NULL)
        return mm_fail(error, MM_NOT_READY, "this build has no backend '%s'", options->backend);
    for (const struct mm_backend *const *known = mm_backends_known(); *known != NULL; known++) {
        const size_t before = engine->device_count;
        unsigned none;
        if (mm_backend_find((*known)->name) == NULL)
            (void)(*known)->count(&none, error);
        else if (!is_any && strcmp((*known)->name, options->backend) != 0)
            mm_fail(error, MM_NOT_READY, "the server was started with --backend %s", options->backend);
        else if (open_backend(engine, *known, options, error) == MM_UNSUPPORTED && is_any)
            return MM_UNSUPPORTED;
        add_offer(engine, *known, before, error);
    }
    if (engine->device_count == 0)
        return mm_fail(error, MM_NOT_READY, "no device works: %s", engine->note);
    return MM_OK;
}

enum mm_status mm_engine_open(const struct mm_engine_options *options, struct mm_engine **engine,
                              struct mm_error *error) {
    struct mm_engine *opened = calloc(1, sizeof *opened);
    struct mm_error ignored;
    if (error == NULL)
        error = &ignored;
    if (opened == NULL)
        return mm_fail(error, MM_INTERNAL, "the system is out of memory (engine); free some and start again");
    opened->device_bytes_max = options->device_bytes_max;
    opened->kernel_ms_max = options->kernel_ms_max;
    enum mm_status status = open_backends(opened, options, error);
    if (status == MM_OK)
        opened->watch = mm_watch_open(opened->devices, opened->device_count, &options->watch);
    if (status == MM_OK && opened->watch == NULL)
        status = mm_fail(error, MM_INTERNAL,
                         "the system is out of memory (device watch); free some and start again");
    if (status == MM_OK)
        status = mm_queue_open(opened->devices, opened->device_count, &options->queue, &opened->queue, error);
    if (status != MM_OK) {
        mm_engine_close(opened);
        return status;
    }
    *engine = opened;
    return MM_OK;
}

void mm_engine_close(struct mm_engine *engine) {
    if (engine == NULL)
        return;
    mm_queue_close(engine->queue);
    mm_watch_close(engine->watch);
    for (size_t index = 0; index < engine->device_count; index++)
        engine->devices[index]->backend->close(engine->devices[index]);
    free(engine);
}

const char *mm_engine_note(const struct mm_engine *engine) {
    return engine->note;
}

const struct mm_page_locking *mm_engine_page_locking(const struct mm_engine *engine) {
    for (size_t index = 0; index < engine->device_count; index++)
        if (engine->devices[index]->backend->page_locking != NULL)
            return engine->devices[index]->backend->page_locking;
    return NULL;
}

struct mm_queue *mm_engine_queue(struct mm_engine *engine) {
    return engine->queue;
}

struct mm_device *const *mm_engine_devices(const struct mm_engine *engine, size_t *count) {
    *count = engine->device_count;
    return engine->devices;
}

const struct mm_offer *mm_engine_offers(const struct mm_engine *engine, size_t *count) {
    *count = engine->offer_count;
    return engine->offers;
}

static bool has_working(const struct mm_engine *engine, const struct mm_backend *backend) {
    for (size_t index = 0; index < engine->device_count; index++)
        if (engine->devices[index]->backend == backend && !mm_device_has_failed(engine->devices[index]))
            return true;
    return false;
}

bool mm_engine_is_lost(const struct mm_engine *engine) {
    for (size_t index = 0; index < engine->device_count; index++)
        if (!has_working(engine, engine->devices[index]->backend))
            return true;
    return false;
}

static bool stores_matrices(const struct mm_device *device) {
    return device->backend->acquire_copy != NULL && !mm_device_has_failed(device);
}

size_t mm_engine_stored_bytes_max(const struct mm_engine *engine) {
    size_t bytes = 0;
    for (size_t index = 0; index < engine->device_count; index++)
        bytes +=
            stores_matrices(engine->devices[index]) ? mm_device_stored_bytes_max(engine->devices[index]) : 0;
    return bytes;
}

static double free_for_stored(const struct mm_device *device) {
    return (double)mm_device_stored_bytes_max(device) - (double)mm_device_stored_bytes(device);
}

enum mm_status mm_engine_acquire_copy(const struct mm_engine *engine, size_t bytes,
                                      struct mm_device_copy **copy, struct mm_error *error) {
    uint64_t tried = 0; /* bit i is set if device i was tried */
    enum mm_status status = MM_OK;
    *copy = NULL;
    for (;;) {
        struct mm_device *best = NULL;
        for (size_t index = 0; index < engine->device_count; index++) {
            struct mm_device *device = engine->devices[index];
            if (stores_matrices(device) && (tried >> index & 1) == 0 &&
                (best == NULL || free_for_stored(device) > free_for_stored(best)))
                best = device;
        }
        if (best == NULL)
            return status;
        tried |= UINT64_C(1) << best->number;
        struct mm_error failure;
        const enum mm_status acquired = best->backend->acquire_copy(best, bytes, copy, &failure);
        if (acquired == MM_OK)
            return MM_OK;
        if (status == MM_OK) { /* the failure of the first device is returned */
            status = acquired;
            *error = failure;
        }
    }
}

enum mm_status mm_engine_watch(struct mm_engine *engine, struct mm_error *error) {
    return mm_watch_look(engine->watch, engine->queue, mm_clock_ns(), error);
}

struct mm_watch_counts mm_engine_watch_counts(const struct mm_engine *engine) {
    return mm_watch_counts(engine->watch);
}

const struct mm_backend *mm_engine_backend(const struct mm_engine *engine) {
    for (size_t index = 0; index < engine->device_count; index++)
        if (!mm_device_has_failed(engine->devices[index]))
            return engine->devices[index]->backend;
    return engine->devices[0]->backend;
}

/* Returns the backend of this name that has open devices, or that has none if !is_open. Returns NULL if
 * there is no such backend. */
static const struct mm_backend *find_backend(const struct mm_engine *engine, const char *name, bool is_open) {
    for (size_t index = 0; index < engine->offer_count; index++)
        if ((engine->offers[index].device_count > 0) == is_open &&
            strcmp(engine->offers[index].backend->name, name) == 0)
            return engine->offers[index].backend;
    return NULL;
}

static enum mm_status fail_backend(const struct mm_engine *engine, const char *name, struct mm_error *error) {
    char list[128] = "auto";
    for (size_t index = 0; index < engine->offer_count; index++) {
        const size_t length = strlen(list);
        if (engine->offers[index].device_count > 0)
            snprintf(list + length, sizeof list - length, ", %s", engine->offers[index].backend->name);
    }
    return mm_fail_field(error, MM_UNSUPPORTED, "backend", "backend is '%.64s', but must be one of: %s%s%s%s",
                         name, list, engine->note[0] != '\0' ? " (" : "", engine->note,
                         engine->note[0] != '\0' ? ")" : "");
}

/* Returns why no open device of the backend can run the variant with this type, or NULL if a device can. */
static const char *missing_everywhere(const struct mm_engine *engine, const struct mm_backend *backend,
                                      const struct mm_variant *variant, enum mm_dtype dtype) {
    const char *reason = NULL;
    for (size_t index = 0; index < engine->device_count; index++) {
        if (engine->devices[index]->backend != backend)
            continue;
        reason = mm_variant_missing(variant, engine->devices[index], dtype);
        if (reason == NULL)
            return NULL;
    }
    return reason;
}

static enum mm_status fail_variant(const struct mm_engine *engine, const struct mm_backend *backend,
                                   enum mm_op op, const char *name, enum mm_dtype dtype, const char *reason,
                                   struct mm_error *error) {
    char list[512] = "";
    for (size_t index = 0; index < backend->variant_count; index++) {
        const struct mm_variant *variant = &backend->variants[index];
        size_t length = strlen(list);
        if (variant->op == op && missing_everywhere(engine, backend, variant, dtype) == NULL)
            snprintf(list + length, sizeof list - length, "%s%s", length > 0 ? ", " : "", variant->name);
    }
    if (reason != NULL)
        return mm_fail_field(error, MM_UNSUPPORTED, "variant",
                             "variant %s cannot run on %s (%s); choose one of: %s", name, backend->name,
                             reason, list);
    return mm_fail_field(error, MM_UNSUPPORTED, "variant", "variant is '%.64s', but on %s must be one of: %s",
                         name, backend->name, list);
}

enum mm_status mm_engine_choose(const struct mm_engine *engine, enum mm_op op, const char *backend_name,
                                const char *variant_name, struct mm_job *job, struct mm_error *error) {
    const struct mm_backend *backend = strcmp(backend_name, "auto") == 0
                                           ? mm_engine_backend(engine)
                                           : find_backend(engine, backend_name, true);
    if (backend == NULL)
        return fail_backend(engine, backend_name, error);
    const struct mm_variant *variant = mm_backend_variant(backend, op, variant_name);
    const enum mm_dtype dtype = job->product.a.dtype;
    const char *reason = variant == NULL ? NULL : missing_everywhere(engine, backend, variant, dtype);
    if (variant == NULL || reason != NULL)
        return fail_variant(engine, backend, op, variant_name, dtype, reason, error);
    if (!mm_variant_has_dtype(variant, dtype))
        return mm_fail_field(error, MM_UNSUPPORTED, "dtype",
                             "variant %s on %s does not support %s; choose another variant", variant_name,
                             backend->name, mm_dtype_name(dtype));
    enum mm_status status = mm_variant_check_tile(variant, job->product.tile, error);
    if (status != MM_OK)
        return status;
    job->work.backend = backend;
    job->variant = variant;
    return MM_OK;
}

enum mm_status mm_engine_divide(const struct mm_engine *engine, uint64_t devices, struct mm_job *job,
                                struct mm_error *error) {
    const struct mm_backend *backend = job->work.backend;
    unsigned count = 0;
    for (size_t index = 0; index < engine->device_count; index++)
        count += engine->devices[index]->backend == backend;
    if (devices > count && devices != MM_DEVICES_ALL)
        return mm_fail_field(error, MM_UNSUPPORTED, "devices",
                             "devices is %" PRIu64 ", but %s has %u; ask for at most %u, or for all", devices,
                             backend->name, count, count);
    job->weighs_devices = devices == MM_DEVICES_AUTO;
    job->devices = job->weighs_devices || devices == MM_DEVICES_ALL ? count : (unsigned)devices;
    if (job->weighs_devices && job->variant->needs_whole)
        job->devices = 1;
    if (job->devices > 1 && job->variant->needs_whole)
        return mm_fail_field(error, MM_UNSUPPORTED, "devices",
                             "several devices cannot share a product of variant %s, because its bits would "
                             "depend on the devices; leave devices out, or choose another variant",
                             job->variant->name);
    return MM_OK;
}

const struct mm_backend *mm_engine_closed_backend(const struct mm_engine *engine, const char *name) {
    return find_backend(engine, name, false);
}

/* Whether all operands come with the request. If not, an operand is stored or generated. */
static bool is_inline(const struct mm_job *job) {
    unsigned index = 0;
    while (index < MM_OPERANDS_MAX && job->sources[index].kind == MM_SOURCE_HOST)
        index++;
    return index == MM_OPERANDS_MAX;
}

/* Limits the device memory, because a tiny request can need much. A product that exceeds the limit runs in
 * tiles. */
static enum mm_status check_memory(const struct mm_engine *engine, const struct mm_device *device,
                                   const struct mm_variant *variant, struct mm_job *job,
                                   struct mm_error *error) {
    const size_t most = engine->device_bytes_max != 0 ? engine->device_bytes_max : device->memory_bytes / 8;
    const struct mm_backend *backend = device->backend;
    const struct mm_product product = mm_product_dense(&job->product);
    const bool is_empty = product.m == 0 || product.n == 0;
    struct mm_plan plan = {.workspace_bytes = 0};
    struct mm_tiling tiling;
    job->device_bytes_max = engine->device_bytes_max;
    if (backend->is_host || (!job->stores_c && is_inline(job)))
        return MM_OK;
    if (!is_empty && mm_plan_make(device, variant, &product, &plan, error) != MM_OK)
        return error->status;
    const size_t bytes = mm_job_generated_bytes(job) + mm_matrix_bytes(&product.c) + plan.workspace_bytes;
    if (bytes <= most)
        return MM_OK;
    job->device_bytes_max = most;
    if (!is_empty && backend->find_tiles != NULL && backend->find_tiles(job, &plan, most, &tiling))
        return MM_OK;
    mm_fail_limit(
        error, "variant", most,
        "%s would take %zu bytes of device memory for operands that the server generates, the result "
        "and its workspace, but the limit is %zu (--max-device-memory), and the product cannot be "
        "computed in tiles that need less",
        variant->name, bytes, most);
    mm_fail_got(error, "%zu", bytes);
    return MM_TOO_LARGE;
}

enum mm_status mm_engine_check(const struct mm_engine *engine, struct mm_job *job, struct mm_error *error) {
    struct mm_error refusal; /* error of the last device that cannot run the job */
    refusal.status = MM_OK;
    for (size_t index = 0; index < engine->device_count; index++) {
        const struct mm_device *device = engine->devices[index];
        if (device->backend != job->work.backend ||
            mm_variant_missing(job->variant, device, job->product.a.dtype) != NULL)
            continue;
        const struct mm_variant *variant = mm_variant_resolve(job->variant, device, &job->product);
        if (mm_forecast_check(device, variant, &job->product, engine->kernel_ms_max, &refusal) == MM_OK &&
            check_memory(engine, device, variant, job, &refusal) == MM_OK)
            return MM_OK;
    }
    if (refusal.status != MM_OK && error != NULL)
        *error = refusal;
    return refusal.status;
}
