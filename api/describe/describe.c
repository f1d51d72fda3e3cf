/* Writes the variants and the devices as JSON. */
#include "api/describe/describe.h"

#include "api/json/json_value.h"
#include "api/lab/occupancy.h"

#include <stdio.h>
#include <string.h>

static const char *const device_failed = "its device has failed";

static json_t *make_dtypes(unsigned dtypes) {
    json_t *list = json_array();
    int failed = 0;
    for (unsigned dtype = 0; dtype < MM_DTYPE_COUNT; dtype++)
        if (dtypes & MM_DTYPE_BIT(dtype))
            failed |= json_array_append_new(list, json_string(mm_dtype_name((enum mm_dtype)dtype)));
    return mm_json_finish(list, failed);
}

static int put_tiles(json_t *row, const unsigned *tiles) {
    json_t *list = json_array();
    int failed = mm_json_put(row, "tiles", list);
    for (; *tiles != 0 && failed == 0; tiles++)
        failed |= json_array_append_new(list, mm_json_count(*tiles));
    return failed;
}

static int put_sources(json_t *row, const char *const *sources) {
    json_t *list = json_array();
    int failed = mm_json_put(row, "sources", list);
    for (; *sources != NULL && failed == 0; sources++)
        failed |= json_array_append_new(list, json_string(*sources));
    return failed;
}

static int put_multiple(json_t *dimensions, const char *name, unsigned multiple) {
    return multiple > 1 ? mm_json_put(dimensions, name, mm_json_count(multiple)) : 0;
}

/* For each element type that has its own rules, adds the numbers of which m, n and k must be multiples. For
 * example, {"int8": {"k": 4}} means that k must be a multiple of 4. */
static int put_multiples(json_t *row, const struct mm_variant *variant, unsigned dtypes) {
    json_t *types = NULL;
    int failed = 0;
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
        const struct mm_multiples *own = &variant->multiples[dtype];
        if ((dtypes & MM_DTYPE_BIT(dtype)) == 0 || (own->m == 0 && own->n == 0 && own->k == 0))
            continue;
        const struct mm_multiples of = mm_variant_multiples(variant, dtype);
        json_t *dimensions = json_object();
        if (types == NULL)
            failed |= mm_json_put(row, "multiples", types = json_object());
        failed |= mm_json_put(types, mm_dtype_name(dtype), dimensions);
        failed |= put_multiple(dimensions, "m", of.m);
        failed |= put_multiple(dimensions, "n", of.n);
        failed |= put_multiple(dimensions, "k", of.k);
    }
    return failed;
}

static json_t *make_capability(unsigned compute_capability) {
    char text[16];
    snprintf(text, sizeof text, "%u.%u", compute_capability / 10, compute_capability % 10);
    return json_string(text);
}

/* Reads the attributes of the kernel that computes the variant's smallest product with this tile. If `tile`
 * is 0, any tile will do. *dtype becomes the product's type. */
static bool read_attributes(struct mm_device *device, const struct mm_variant *variant, unsigned tile,
                            struct mm_attributes *attributes, enum mm_dtype *dtype) {
    const struct mm_backend *backend = device->backend;
    struct mm_plan plan;
    return backend->attributes != NULL &&
           mm_plan_smallest(device, variant, tile, &plan, dtype, NULL) == MM_OK &&
           backend->attributes(device, &plan, attributes, NULL) == MM_OK;
}

static int put_attributes(json_t *row, const struct mm_attributes *attributes) {
    return json_object_update_new(
        row, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "threads_per_block",
                       mm_json_count(attributes->threads_per_block), "registers_per_thread",
                       mm_json_count(attributes->registers_per_thread), "static_shared_bytes",
                       mm_json_count(attributes->static_shared_bytes), "dynamic_shared_bytes",
                       mm_json_count(attributes->dynamic_shared_bytes), "local_bytes",
                       mm_json_count(attributes->local_bytes), "blocks_per_multiprocessor",
                       mm_json_count(attributes->blocks_per_multiprocessor)));
}

static int put_read_attributes(json_t *row, struct mm_device *device, const struct mm_variant *variant) {
    struct mm_attributes attributes;
    enum mm_dtype dtype;
    return read_attributes(device, variant, 0, &attributes, &dtype) ? put_attributes(row, &attributes) : 0;
}

static struct mm_block_use block_use_of(const struct mm_attributes *attributes) {
    return (struct mm_block_use){.threads = attributes->threads_per_block,
                                 .registers_per_thread = attributes->registers_per_thread,
                                 .shared_bytes =
                                     attributes->static_shared_bytes + attributes->dynamic_shared_bytes};
}

static int put_entries(json_t *row, const char *key, json_t *list, int failed) {
    if (json_array_size(list) > 0 || failed != 0)
        return failed | mm_json_put(row, key, list);
    json_decref(list);
    return 0;
}

/* Returns a compiled kernel as JSON. Predicts from the table of chips how many blocks fit on a
 * multiprocessor. The table has every architecture for which kernels are compiled. */
static json_t *make_compiled(const struct mm_compiled *compiled) {
    struct mm_attributes attributes = compiled->attributes;
    const struct mm_block_use use = block_use_of(&attributes);
    struct mm_occupancy occupancy = {0};
    (void)mm_occupancy_predict(compiled->compute_capability, &use, &occupancy);
    attributes.blocks_per_multiprocessor = occupancy.blocks;
    json_t *row =
        json_pack("{s:o, s:o, s:s}", "compute_capability", make_capability(compiled->compute_capability),
                  "tile", compiled->tile > 0 ? mm_json_count(compiled->tile) : json_null(), "dtype",
                  mm_dtype_name(compiled->dtype));
    int failed = put_attributes(row, &attributes);
    failed |= mm_json_put(row, "spill_store_bytes", mm_json_count(compiled->spill_store_bytes));
    failed |= mm_json_put(row, "spill_load_bytes", mm_json_count(compiled->spill_load_bytes));
    return mm_json_finish(row, failed);
}

/* Adds an entry for each compiled kernel. Adds nothing if the variant calls a library's kernel. */
static int put_compiled(json_t *row, const struct mm_backend *backend, const struct mm_variant *variant) {
    json_t *list = json_array();
    int failed = 0;
    for (const struct mm_compiled *one = backend->compiled; one != NULL && one->compute_capability > 0; one++)
        if (&backend->variants[one->variant] == variant)
            failed |= json_array_append_new(list, make_compiled(one));
    return put_entries(row, "compiled", list, failed);
}

/* Returns the occupancy of a kernel. The device reports the number of blocks. The table of chips predicts
 * this number and its limiters. `limiters` is null if the table lacks the chip or predicts another number. */
static json_t *make_occupancy(const struct mm_device *device, const struct mm_attributes *attributes,
                              enum mm_dtype dtype, unsigned tile) {
    const struct mm_block_use use = block_use_of(attributes);
    const unsigned blocks = attributes->blocks_per_multiprocessor;
    struct mm_occupancy predicted;
    const bool is_known = mm_occupancy_predict(device->compute_capability, &use, &predicted);
    return json_pack(
        "{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "tile", tile > 0 ? mm_json_count(tile) : json_null(),
        "dtype", mm_dtype_name(dtype), "threads_per_block", mm_json_count(use.threads),
        "registers_per_thread", mm_json_count(use.registers_per_thread), "shared_bytes",
        mm_json_count(use.shared_bytes), "blocks", mm_json_count(blocks), "warps",
        mm_json_count((uint64_t)blocks * mm_occupancy_block_warps(use.threads)), "warps_max",
        is_known ? mm_json_count(predicted.warps_max) : json_null(), "limiters",
        is_known && predicted.blocks == blocks ? mm_occupancy_limiters(&predicted) : json_null());
}

/* Adds an entry for each tile that a request may choose and the device can run. */
static int put_occupancy(json_t *row, struct mm_device *device, const struct mm_variant *variant) {
    static const unsigned only[] = {0, 0};
    const unsigned *tile = variant->tiles != NULL ? variant->tiles : only;
    struct mm_attributes attributes;
    enum mm_dtype dtype;
    json_t *list = json_array();
    int failed = 0;
    do
        if (read_attributes(device, variant, *tile, &attributes, &dtype))
            failed |= json_array_append_new(
                list, make_occupancy(device, &attributes, dtype, *tile > 0 ? *tile : variant->tile));
    while (*++tile != 0);
    return put_entries(row, "occupancy", list, failed);
}

/* Returns the first device that can run the variant on float32. If there is none, returns NULL, and *reason
 * says why the first device cannot run the variant, or why the backend has no device. */
static struct mm_device *find_able(const struct mm_offer *offer, const struct mm_variant *variant,
                                   const char **reason) {
    *reason = offer->device_count == 0 ? offer->missing : NULL;
    for (size_t index = 0; index < offer->device_count; index++) {
        struct mm_device *device = offer->devices[index];
        const char *missing =
            mm_device_has_failed(device) ? device_failed : mm_variant_missing(variant, device, MM_FLOAT32);
        if (missing == NULL)
            return device;
        if (*reason == NULL)
            *reason = missing;
    }
    return NULL;
}

static json_t *make_variant(const struct mm_offer *offer, const struct mm_variant *variant) {
    const char *reason;
    struct mm_device *able = find_able(offer, variant, &reason);
    const unsigned dtypes = able != NULL ? mm_variant_dtypes_on(variant, able) : mm_variant_dtypes(variant);
    json_t *row =
        json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "op", mm_op_name(variant->op), "name", variant->name,
                  "backend", offer->backend->name, "summary", variant->summary, "dtypes", make_dtypes(dtypes),
                  "tile", variant->tile > 0 ? mm_json_count(variant->tile) : json_null());
    int failed = variant->tiles != NULL ? put_tiles(row, variant->tiles) : 0;
    failed |= mm_json_put_known_count(row, "multiple_of", variant->multiple_of);
    failed |= put_multiples(row, variant, dtypes);
    failed |= mm_json_put(row, "available", json_boolean(able != NULL));
    failed |= able != NULL ? put_read_attributes(row, able, variant)
                           : mm_json_put(row, "unavailable_because", mm_json_text(reason));
    if (able != NULL)
        failed |= put_occupancy(row, able, variant);
    failed |= put_compiled(row, offer->backend, variant);
    failed |= mm_json_put_known_text(row, "requires", variant->needs);
    failed |= variant->sources != NULL ? put_sources(row, variant->sources) : 0;
    if (variant->wrong_on_purpose)
        failed |= mm_json_put(row, "wrong_on_purpose", json_true());
    return mm_json_finish(row, failed);
}

/* Adds the indices of the devices whose memory this device can read. */
static int put_peers(json_t *row, uint64_t peers) {
    json_t *list = json_array();
    int failed = 0;
    for (unsigned index = 0; index < MM_DEVICES_MAX; index++)
        if ((peers >> index & 1) != 0)
            failed |= json_array_append_new(list, mm_json_count(index));
    return failed | mm_json_put(row, "peers", list);
}

static json_t *make_device(const struct mm_device *device) {
    const bool has_failed = mm_device_has_failed(device);
    json_t *row = json_pack("{s:o, s:s, s:o}", "index", mm_json_count(device->index), "backend",
                            device->backend->name, "name", mm_json_text(device->name));
    int failed = device->compute_capability == 0
                     ? 0
                     : mm_json_put(row, "compute_capability", make_capability(device->compute_capability));
    failed |= mm_json_put_known_count(row, "multiprocessors", device->multiprocessors);
    failed |= mm_json_put(row, "memory_bytes", mm_json_count(device->memory_bytes));
    if (device->backend->memory_free != NULL && !has_failed)
        failed |= mm_json_put(row, "memory_free_bytes", mm_json_count(device->backend->memory_free(device)));
    failed |= mm_json_put_known_text(row, "driver", device->driver);
    failed |= mm_json_put_known_count(row, "shared_bank_bytes", device->shared_bank_bytes);
    failed |= mm_json_put_known_count(row, "shared_bytes_per_block_max", device->shared_bytes_per_block_max);
    if (!device->backend->is_host)
        failed |= put_peers(row, device->peers);
    failed |= mm_json_put(row, "state", json_string(has_failed ? "failed" : "ready"));
    return mm_json_finish(row, failed);
}

/* Adds the variants of some backends: those with devices if have_devices, otherwise those without. */
static int add_variants(json_t *list, const struct mm_offer *offers, size_t count, bool have_devices) {
    int failed = 0;
    for (size_t index = 0; index < count; index++) {
        const struct mm_backend *backend = offers[index].backend;
        for (size_t row = 0; row < backend->variant_count && failed == 0; row++)
            if ((offers[index].device_count > 0) == have_devices)
                failed |= json_array_append_new(list, make_variant(&offers[index], &backend->variants[row]));
    }
    return failed;
}

char *mm_describe_variants(const struct mm_offer *offers, size_t count, size_t *length) {
    json_t *list = json_array();
    int failed = add_variants(list, offers, count, true);
    failed |= add_variants(list, offers, count, false);
    return mm_json_print(json_pack("{s:o, s:s}", "variants", mm_json_finish(list, failed), "default", "auto"),
                         0, length);
}

char *mm_describe_devices(struct mm_device *const *devices, size_t count, size_t *length) {
    json_t *list = json_array();
    int failed = 0;
    for (size_t index = 0; index < count && failed == 0; index++)
        failed |= json_array_append_new(list, make_device(devices[index]));
    return mm_json_print(json_pack("{s:o}", "devices", mm_json_finish(list, failed)), 0, length);
}
