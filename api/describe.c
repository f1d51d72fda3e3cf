/* The variants and the devices as JSON, told from the tables of the backends and from the devices
 * themselves: nothing of them is typed in here. */
#include "api/describe.h"

#include "api/json_value.h"

#include <stdio.h>
#include <string.h>

static const char *const device_failed = "its device has failed";

static int put(json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, value);
}

/* Numbers that a backend has not are 0, texts "". */
static int put_known_count(json_t *object, const char *key, uint64_t value) {
    return value == 0 ? 0 : put(object, key, mm_json_count(value));
}

static int put_known_text(json_t *object, const char *key, const char *text) {
    return text == NULL || text[0] == '\0' ? 0 : put(object, key, mm_json_text(text));
}

static json_t *make_dtypes(unsigned dtypes) {
    json_t *list = json_array();
    int failed = 0;
    for (unsigned dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        if (dtypes & MM_DTYPE_BIT(dtype))
            failed |= json_array_append_new(list, mm_json_text(mm_dtype_name((enum mm_dtype)dtype)));
    if (failed == 0)
        return list;
    json_decref(list);
    return NULL;
}

static int put_tiles(json_t *row, const struct mm_variant *variant) {
    json_t *tile = variant->tile > 0 ? mm_json_count(variant->tile) : json_null();
    int failed = put(row, "tile", tile);
    if (variant->tiles == NULL)
        return failed;
    json_t *list = json_array();
    failed |= put(row, "tiles", list);
    for (const unsigned *edge = variant->tiles; *edge != 0 && failed == 0; edge++)
        failed |= json_array_append_new(list, mm_json_count(*edge));
    return failed;
}

static int put_attributes(json_t *row, struct mm_device *device, const struct mm_variant *variant) {
    struct mm_attributes attributes;
    if (device->backend->attributes == NULL ||
        device->backend->attributes(device, variant, 0, &attributes, NULL) != MM_OK)
        return 0;
    int failed = put(row, "threads_per_block", mm_json_count(attributes.threads_per_block));
    failed |= put(row, "registers_per_thread", mm_json_count(attributes.registers_per_thread));
    failed |= put(row, "static_shared_bytes", mm_json_count(attributes.static_shared_bytes));
    failed |= put(row, "dynamic_shared_bytes", mm_json_count(attributes.dynamic_shared_bytes));
    failed |= put(row, "local_bytes", mm_json_count(attributes.local_bytes));
    failed |= put(row, "blocks_per_multiprocessor", mm_json_count(attributes.blocks_per_multiprocessor));
    return failed;
}

/* The first of a backend's devices that can run the variant; or NULL, and why the first of all cannot. */
static struct mm_device *find_able(struct mm_device *const *devices, size_t count,
                                   const struct mm_variant *variant, const char **reason) {
    *reason = NULL;
    for (size_t index = 0; index < count; index++) {
        const char *missing = mm_device_has_failed(devices[index])
                                  ? device_failed
                                  : mm_variant_missing(variant, devices[index]);
        if (missing == NULL)
            return devices[index];
        if (*reason == NULL)
            *reason = missing;
    }
    return NULL;
}

static json_t *make_variant(struct mm_device *const *devices, size_t count,
                            const struct mm_variant *variant) {
    const char *reason;
    struct mm_device *able = find_able(devices, count, variant, &reason);
    json_t *row = json_object();
    int failed = put(row, "op", mm_json_text(mm_op_name(variant->op)));
    failed |= put(row, "name", mm_json_text(variant->name));
    failed |= put(row, "backend", mm_json_text(devices[0]->backend->name));
    failed |= put(row, "summary", mm_json_text(variant->summary));
    failed |= put(row, "dtypes", make_dtypes(variant->dtypes));
    failed |= put_tiles(row, variant);
    if (variant->multiple_of > 0)
        failed |= put(row, "multiple_of", mm_json_count(variant->multiple_of));
    failed |= put(row, "available", json_boolean(able != NULL));
    if (able != NULL)
        failed |= put_attributes(row, able, variant);
    else
        failed |= put(row, "unavailable_because", mm_json_text(reason));
    failed |= put_known_text(row, "requires", variant->needs);
    if (failed == 0)
        return row;
    json_decref(row);
    return NULL;
}

/* The variants of one backend, of which these are the devices. */
static int append_variants(json_t *list, struct mm_device *const *devices, size_t count) {
    const struct mm_backend *backend = devices[0]->backend;
    int failed = 0;
    for (size_t index = 0; index < backend->variant_count; index++)
        failed |= json_array_append_new(list, make_variant(devices, count, &backend->variants[index]));
    return failed;
}

static json_t *make_device(const struct mm_device *device) {
    char capability[16] = "";
    if (device->compute_capability > 0)
        snprintf(capability, sizeof capability, "%u.%u", device->compute_capability / 10,
                 device->compute_capability % 10);
    json_t *row = json_object();
    int failed = put(row, "index", mm_json_count(device->index));
    failed |= put(row, "backend", mm_json_text(device->backend->name));
    failed |= put(row, "name", mm_json_text(device->name));
    failed |= put_known_text(row, "compute_capability", capability);
    failed |= put_known_count(row, "multiprocessors", device->multiprocessors);
    failed |= put(row, "memory_bytes", mm_json_count(device->memory_bytes));
    if (device->backend->memory_free != NULL && !mm_device_has_failed(device))
        failed |= put(row, "memory_free_bytes", mm_json_count(device->backend->memory_free(device)));
    failed |= put_known_text(row, "driver", device->driver);
    failed |= put_known_count(row, "shared_bank_bytes", device->shared_bank_bytes);
    failed |= put_known_count(row, "shared_bytes_per_block_max", device->shared_bytes_per_block_max);
    failed |= put(row, "state", mm_json_text(mm_device_has_failed(device) ? "failed" : "ready"));
    if (failed == 0)
        return row;
    json_decref(row);
    return NULL;
}

/* Ends the building of a body: its text, or NULL where memory ran out on the way. Frees the tree. */
static char *finish(json_t *body, int failed, size_t *length) {
    char *text = failed == 0 ? mm_json_print(body, 0, length) : NULL;
    json_decref(body);
    return text;
}

char *mm_describe_variants(struct mm_device *const *devices, size_t count, size_t *length) {
    json_t *body = json_object();
    json_t *list = json_array();
    int failed = put(body, "variants", list);
    for (size_t first = 0, end; first < count && failed == 0; first = end) {
        for (end = first + 1; end < count && devices[end]->backend == devices[first]->backend; end++)
            ;
        failed |= append_variants(list, devices + first, end - first);
    }
    failed |= put(body, "default", mm_json_text("auto"));
    return finish(body, failed, length);
}

char *mm_describe_devices(struct mm_device *const *devices, size_t count, size_t *length) {
    json_t *body = json_object();
    json_t *list = json_array();
    int failed = put(body, "devices", list);
    for (size_t index = 0; index < count && failed == 0; index++)
        failed |= json_array_append_new(list, make_device(devices[index]));
    return finish(body, failed, length);
}
