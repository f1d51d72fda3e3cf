/* Makes stored values, finds their device copies, and reads their elements. */
#include "gpu/store/stored.h"

#include "gpu/device/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Makes a random ETag, so no client can guess the ETag of another client's value. */
static bool make_etag(char etag[MM_ETAG_MAX + 1]) {
    static const char digits[] = "0123456789abcdef";
    unsigned char random[(MM_ETAG_MAX - 2) / 2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return false;
    *etag++ = '"';
    for (size_t index = 0; index < sizeof random; index++) {
        *etag++ = digits[random[index] >> 4];
        *etag++ = digits[random[index] & 15];
    }
    *etag++ = '"';
    *etag = '\0';
    return true;
}

struct mm_stored *mm_stored_make(const struct mm_shape *shape, enum mm_dtype dtype, void *data,
                                 struct mm_device_copy *only_copy) {
    const struct mm_matrix view = mm_shape_view(shape, false, dtype);
    struct mm_stored *value = calloc(1, sizeof *value);
    if (value == NULL || !make_etag(value->etag)) {
        free(value);
        return NULL;
    }
    value->shape = *shape;
    value->dtype = dtype;
    value->data = data;
    value->bytes = mm_matrix_bytes(&view);
    value->only_copy = only_copy;
    if (only_copy == NULL)
        strcpy(value->device, "cpu");
    else
        snprintf(value->device, sizeof value->device, "%s:%u", only_copy->device->backend->name,
                 only_copy->device->index);
    return value;
}

void mm_stored_free(struct mm_stored *value) {
    struct mm_device_copy *copy;
    while ((copy = value->copies) != NULL) {
        value->copies = copy->next;
        copy->release(copy);
    }
    free(value);
}

void mm_stored_add_copy(struct mm_stored *value, struct mm_device_copy *copy) {
    copy->next = __atomic_load_n(&value->copies, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&value->copies, &copy->next, copy, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        ;
}

struct mm_device_copy *mm_stored_find_copy(const struct mm_stored *value, const struct mm_device *device) {
    struct mm_device_copy *copy = __atomic_load_n(&value->copies, __ATOMIC_ACQUIRE);
    while (copy != NULL && copy->device != device)
        copy = copy->next;
    return copy;
}

enum mm_status mm_device_copy_check(const struct mm_device_copy *copy, struct mm_error *error) {
    if (copy == NULL || !mm_device_has_failed(copy->device))
        return MM_OK;
    return mm_fail(error, MM_DEVICE_FAILED,
                   "the matrix was only in the memory of %s:%u, which has failed; store it again",
                   copy->device->backend->name, copy->device->index);
}

enum mm_status mm_stored_read(const struct mm_stored *value, const struct mm_window *part, void *to,
                              struct mm_error *error) {
    const enum mm_status status = mm_device_copy_check(value->only_copy, error);
    if (status != MM_OK || mm_window_elements(part) == 0)
        return status;
    if (value->only_copy != NULL)
        return value->only_copy->read(value->only_copy, part, value->dtype, to, error);
    mm_window_pack(part, value->dtype, value->data, to);
    return MM_OK;
}
