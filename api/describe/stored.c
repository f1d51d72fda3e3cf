/* Writes stored matrices as JSON text. The connection's thread writes lists of up to 1000 matrices. Building
 * a tree of JSON values would be too slow for this. */
#include "api/describe/stored.h"

#include "api/text.h"
#include "gpu/device/backend.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Writes a time in the format of RFC 3339, with milliseconds. */
static void write_time(FILE *out, const char *name, uint64_t ns) {
    struct tm at = {0};
    const time_t seconds = (time_t)(ns / 1000000000);
    (void)gmtime_r(&seconds, &at);
    fprintf(out, ", \"%s\": \"%04d-%02d-%02dT%02d:%02d:%02d.%03uZ\"", name, at.tm_year + 1900, at.tm_mon + 1,
            at.tm_mday, at.tm_hour, at.tm_min, at.tm_sec, (unsigned)(ns / 1000000 % 1000));
}

/* Writes "cpu", or the device of each part, as in "cuda:0,cuda:1". */
static void write_devices(FILE *out, const struct mm_device_copy *part) {
    fputs(part == NULL ? "cpu" : "", out);
    for (; part != NULL; part = part->next_part)
        fprintf(out, "%s:%u%s", part->device->backend->name, part->device->index,
                part->next_part != NULL ? "," : "");
    putc_unlocked('"', out);
}

/* Writes one matrix. Only the entity tag needs escapes, because the tag includes quotes. */
static void write_entry(FILE *out, const struct mm_stored *value, uint64_t epoch_ns) {
    const uint64_t used_ns = __atomic_load_n(&value->used_ns, __ATOMIC_RELAXED);
    const int tag_length = (int)strlen(value->etag) - 2;
    fprintf(out, "{\"name\": \"%s\", \"shape\": [", value->name);
    for (unsigned dim = 0; dim < value->shape.rank; dim++)
        fprintf(out, "%s%zu", dim > 0 ? ", " : "", value->shape.dims[dim]);
    fprintf(out, "], \"dtype\": \"%s\", \"bytes\": %zu, \"etag\": \"\\\"%.*s\\\"\", \"device\": \"",
            mm_dtype_name(value->dtype), value->bytes, tag_length, value->etag + 1);
    write_devices(out, value->only_copy);
    write_time(out, "created", epoch_ns + value->created_ns);
    write_time(out, "last_used", epoch_ns + used_ns);
    if (value->expires_ns != 0)
        write_time(out, "expires", epoch_ns + value->expires_ns);
    putc_unlocked('}', out);
}

char *mm_stored_json(const struct mm_stored *value, uint64_t epoch_ns, size_t *length) {
    struct mm_text text;
    FILE *out = mm_text_open(&text);
    if (out == NULL)
        return NULL;
    write_entry(out, value, epoch_ns);
    return mm_text_close(out, &text, length);
}

char *mm_stored_list_json(struct mm_stored *const *values, size_t count, bool has_more,
                          const struct mm_store_usage *usage, uint64_t epoch_ns, size_t *length) {
    struct mm_text text;
    FILE *out = mm_text_open(&text);
    if (out == NULL)
        return NULL;
    fputs("{\"matrices\": [", out);
    for (size_t index = 0; index < count; index++) {
        fputs(index > 0 ? ", " : "", out);
        write_entry(out, values[index], epoch_ns);
    }
    fprintf(out, "], \"bytes\": %zu, \"limit\": %zu", usage->bytes, usage->limit);
    if (has_more)
        fprintf(out, ", \"next\": \"%s\"", values[count - 1]->name);
    putc_unlocked('}', out);
    return mm_text_close(out, &text, length);
}
