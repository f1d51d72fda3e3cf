/* A stored matrix is an immutable value. Its elements are either in host memory, of which devices can have
 * copies, or only in the memory of one device. store.h maps names to values. */
#pragma once

#include "gpu/memory/budget.h"
#include "gpu/product/shape.h"
#include "gpu/matrix/window.h"

#include <sys/queue.h>

struct mm_device;

/* A value's elements in device memory. The backend embeds this as the first member of its own struct. */
struct mm_device_copy {
    const struct mm_device *device;
    void *data;                                   /* device memory of the backend; __atomic access only */
    void (*release)(struct mm_device_copy *copy); /* frees the copy; any thread, no lock held */
    struct mm_device_copy *next;

    /* Copies a part of the elements to host memory, without gaps between rows, and waits. Any thread. NULL
     * unless this is the value's only_copy. */
    enum mm_status (*read)(struct mm_device_copy *copy, const struct mm_window *part, enum mm_dtype dtype,
                           void *to, struct mm_error *error);

    /* Copies bytes from host memory to `offset` in `data`, and waits. Only called before the value is stored,
     * by one thread at a time. NULL unless this is the value's only_copy. */
    enum mm_status (*write)(struct mm_device_copy *copy, size_t offset, const void *from, size_t bytes,
                            struct mm_error *error);
};

enum { MM_STORED_DEVICE_MAX = 15, MM_STORE_NAME_MAX = 128, MM_ETAG_MAX = 34 };

/* A value. It exists as long as it has references, and its elements never change. */
struct mm_stored {
    struct mm_shape shape;
    enum mm_dtype dtype;

    /* The elements in host memory, row by row without gaps. NULL if the elements are only on a device, or if
     * the matrix is empty. */
    void *data;

    size_t bytes;

    /* Where the elements are: "cpu" for host memory, or a device such as "cuda:0". */
    char device[MM_STORED_DEVICE_MAX + 1];

    char etag[MM_ETAG_MAX + 1]; /* 128 random bits, quoted as in HTTP */
    uint64_t created_ns;        /* when the value was made (mm_clock_ns) */
    uint64_t expires_ns;        /* 0 if the value does not expire */
    uint64_t used_ns;           /* when a request last used it; __atomic access only */
    char name[MM_STORE_NAME_MAX + 1];

    /* The device copy that is the only place of the elements. NULL if the elements are in host memory. */
    struct mm_device_copy *only_copy;

    /* The list of all device copies. No copy is removed while the value exists. __atomic access only. */
    struct mm_device_copy *copies;

    /* Only the store uses these. */
    uint64_t space;
    size_t references;
    int is_named; /* __atomic access only */
    struct mm_buffer memory;
    SLIST_ENTRY(mm_stored) dropped;
};

/* Makes a value with a new ETag, but without a name. The caller still owns `data` and only_copy. Returns NULL
 * if the system has no memory or no random bits. */
struct mm_stored *mm_stored_make(const struct mm_shape *shape, enum mm_dtype dtype, void *data,
                                 struct mm_device_copy *only_copy);

/* Releases the device copies, and frees the value. The caller frees value->memory. */
void mm_stored_free(struct mm_stored *value);

/* Adds a device copy, which mm_stored_free will release. One thread at a time may add a copy for a device. */
void mm_stored_add_copy(struct mm_stored *value, struct mm_device_copy *copy);

/* Returns the value's copy on this device, or NULL. Any thread that has a reference. */
struct mm_device_copy *mm_stored_find_copy(const struct mm_stored *value, const struct mm_device *device);

/* Returns MM_DEVICE_FAILED if the copy's device has failed, because then the elements are lost. `copy` may be
 * NULL. */
enum mm_status mm_device_copy_check(const struct mm_device_copy *copy, struct mm_error *error);

/* Copies a part of the value's elements to host memory, without gaps between rows. If the elements are only
 * on a device, waits for the device. MM_DEVICE_FAILED if the device has failed. */
enum mm_status mm_stored_read(const struct mm_stored *value, const struct mm_window *part, void *to,
                              struct mm_error *error);

/* Whether the value still has its name. Any thread that has a reference. */
static inline bool mm_stored_is_named(const struct mm_stored *value) {
    return __atomic_load_n(&value->is_named, __ATOMIC_RELAXED) != 0;
}

/* Whether `data` points into the value's host memory. */
static inline bool mm_stored_has(const struct mm_stored *value, const void *data) {
    return value->data != NULL && (uintptr_t)data - (uintptr_t)value->data < value->bytes;
}
