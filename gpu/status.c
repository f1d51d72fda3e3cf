/* The texts of the status table, and how an error is filled in. */
#include "gpu/status.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    const char *title;
} statuses[MM_STATUS_COUNT] = {
#define X(constant, name, title) [constant] = {name, title},
    MM_STATUS_TABLE(X)
#undef X
};

const char *mm_status_name(enum mm_status status) {
    assert(status < MM_STATUS_COUNT);
    return statuses[status].name;
}

const char *mm_status_title(enum mm_status status) {
    assert(status < MM_STATUS_COUNT);
    return statuses[status].title;
}

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

enum mm_status mm_fail(struct mm_error *error, enum mm_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fill(error, status, "", format, arguments);
    va_end(arguments);
    return status;
}

enum mm_status mm_fail_field(struct mm_error *error, enum mm_status status, const char *field,
                             const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fill(error, status, field, format, arguments);
    va_end(arguments);
    return status;
}
