/* Texts of the status table, and functions that set an error. */
#include "gpu/status.h"

#include "gpu/names.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

MM_DEFINE_NAMES(mm_status_name, mm_status, MM_STATUS_COUNT, MM_STATUS_TABLE)
MM_DEFINE_NAMES(mm_busy_name, mm_busy, MM_BUSY_COUNT, MM_BUSY_TABLE)
MM_DEFINE_TEXTS(mm_status_title, mm_status, MM_STATUS_COUNT, MM_STATUS_TABLE, MM_TITLE_ROW)

__attribute__((format(printf, 4, 0))) static enum mm_status fill(struct mm_error *error,
                                                                 enum mm_status status, const char *field,
                                                                 const char *format, va_list arguments) {
    if (error == NULL)
        return status;
    memset(error, 0, sizeof *error);
    error->status = status;
    snprintf(error->field, sizeof error->field, "%s", field);
    vsnprintf(error->detail, sizeof error->detail, format, arguments);
    return status;
}

enum mm_status mm_fail_field(struct mm_error *error, enum mm_status status, const char *field,
                             const char *format, ...) {
    va_list arguments;
    assert(status != MM_BUSY);
    va_start(arguments, format);
    fill(error, status, field, format, arguments);
    va_end(arguments);
    return status;
}

enum mm_status mm_fail_busy(struct mm_error *error, enum mm_busy cause, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fill(error, MM_BUSY, "", format, arguments);
    va_end(arguments);
    if (error != NULL)
        error->busy = cause;
    return MM_BUSY;
}

enum mm_status mm_fail_limit(struct mm_error *error, const char *field, uint64_t limit, const char *format,
                             ...) {
    va_list arguments;
    va_start(arguments, format);
    fill(error, MM_TOO_LARGE, field, format, arguments);
    va_end(arguments);
    if (error != NULL) {
        error->limit = limit;
        error->has_limit = true;
    }
    return MM_TOO_LARGE;
}

enum mm_status mm_fail_device_memory(struct mm_error *error, const char *place, uint64_t needed_bytes,
                                     uint64_t free_bytes) {
    static const char advice[] = "use smaller matrices, or retry later";
    if (needed_bytes == 0)
        mm_fail(error, MM_NO_DEVICE_MEMORY, "%s is out of memory, with %" PRIu64 " bytes free; %s", place,
                free_bytes, advice);
    else
        mm_fail(error, MM_NO_DEVICE_MEMORY,
                "%" PRIu64 " bytes of the memory of %s are needed, but %" PRIu64 " are free%s; %s",
                needed_bytes, place, free_bytes,
                needed_bytes > free_bytes ? "" : ", and no single block is large enough", advice);
    if (error != NULL) {
        error->needed_bytes = needed_bytes;
        error->free_bytes = free_bytes;
    }
    return MM_NO_DEVICE_MEMORY;
}

void mm_fail_expected(struct mm_error *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (error != NULL)
        vsnprintf(error->expected, sizeof error->expected, format, arguments);
    va_end(arguments);
}

void mm_fail_got(struct mm_error *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (error != NULL)
        vsnprintf(error->got, sizeof error->got, format, arguments);
    va_end(arguments);
}
