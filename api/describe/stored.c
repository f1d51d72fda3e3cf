/* Entries of the list of stored matrices. */
#include "api/describe/stored.h"

#include "api/json/json_value.h"

#include <time.h>

/* As RFC 3339 writes it, in milliseconds. */
static json_t *make_time(uint64_t ns) {
    char text[40], whole[32];
    struct tm broken_down;
    const time_t seconds = (time_t)(ns / 1000000000);
    if (gmtime_r(&seconds, &broken_down) == NULL)
        return NULL;
    strftime(whole, sizeof whole, "%Y-%m-%dT%H:%M:%S", &broken_down);
    snprintf(text, sizeof text, "%s.%03uZ", whole, (unsigned)(ns / 1000000 % 1000));
    return json_string(text);
}

static json_t *make_entry(const struct mm_stored *value, uint64_t epoch_ns) {
    const uint64_t used_ns = __atomic_load_n(&value->used_ns, __ATOMIC_RELAXED);
    json_t *entry =
        json_pack("{s:s, s:o, s:s, s:o, s:s, s:s, s:o, s:o}", "name", value->name, "shape",
                  mm_json_shape(&value->shape), "dtype", mm_dtype_name(value->dtype), "bytes",
                  mm_json_count(value->bytes), "etag", value->etag, "device", value->device, "created",
                  make_time(epoch_ns + value->created_ns), "last_used", make_time(epoch_ns + used_ns));
    int failed = 0;
    if (value->expires_ns != 0)
        failed = mm_json_put(entry, "expires", make_time(epoch_ns + value->expires_ns));
    return mm_json_made(entry, failed);
}

char *mm_stored_json(const struct mm_stored *value, uint64_t epoch_ns, size_t *length) {
    return mm_json_print(make_entry(value, epoch_ns), 0, length);
}

char *mm_stored_list_json(struct mm_stored *const *values, size_t count, bool has_more,
                          const struct mm_store_usage *usage, uint64_t epoch_ns, size_t *length) {
    json_t *entries = json_array();
    int failed = 0;
    for (size_t index = 0; index < count; index++)
        failed |= json_array_append_new(entries, make_entry(values[index], epoch_ns));
    json_t *list = json_pack("{s:o, s:o, s:o}", "matrices", entries, "bytes", mm_json_count(usage->bytes),
                             "limit", mm_json_count(usage->limit));
    if (has_more)
        failed |= mm_json_put(list, "next", json_string(values[count - 1]->name));
    return mm_json_print(mm_json_made(list, failed), 0, length);
}
