/* A stored matrix is an immutable value. Its elements are in host memory, and devices may have copies. Or its
 * elements are only in the memory of one device. store.h maps names to values. */
#pragma once

#include "gpu/memory/budget.h"
#include "gpu/product/shape.h"
#include "gpu/matrix/window.h"

#include <sys/queue.h>

struct mm_device;

/* A copy of a value's elements in device memory. A backend's own struct has this as its first member. */
struct mm_device_copy {
    const struct mm_device *device;
    void *data;                                   /* device memory, owned by the backend; __atomic access */
    void (*release)(struct mm_device_copy *copy); /* frees the copy; any thread, no lock held */
    struct mm_device_copy *next;                  /* the value's next copy */

    /* Copies a part of the elements to dense host memory. NULL unless this is the value's only_copy. Any
     * thread. */
    enum mm_status (*read)(struct mm_device_copy *copy, const struct mm_window *part, enum mm_dtype dtype,
                           void *to, struct mm_error *error);

    /* Copies bytes from host memory to `offset`, and waits. One thread at a time calls this before the value
     * is stored. NULL unless this is the value's only_copy. */
    enum mm_status (*write)(struct mm_device_copy *copy, size_t offset, const void *from, size_t bytes,
                            struct mm_error *error);
};

enum { MM_STORED_DEVICE_MAX = 15, MM_STORE_NAME_MAX = 128, MM_ETAG_MAX = 34 };

/* A value. It is valid while a reference to it exists. Only the store changes it. */
struct mm_stored {
    struct mm_shape shape;
    enum mm_dtype dtype;

    /* Elements in host memory, dense and row by row. NULL if they are only on a device, or none exist. */
    void *data;

    size_t bytes;

    /* "cpu", or for example "cuda:0" if the elements are only on that device. */
    char device[MM_STORED_DEVICE_MAX + 1];

    char etag[MM_ETAG_MAX + 1]; /* 128 random bits, quoted as in HTTP */
    uint64_t created_ns;        /* time of creation (mm_clock_ns) */
    uint64_t expires_ns;        /* time of expiry; 0 if the value never expires */
    uint64_t used_ns;           /* when a request last used it; __atomic access only */
    char name[MM_STORE_NAME_MAX + 1];

    /* The copy in `copies` that has the only elements. NULL if the elements are in host memory. */
    struct mm_device_copy *only_copy;

    /* All device copies. No copy is removed while the value exists. __atomic access. */
    struct mm_device_copy *copies;

    /* Only the store uses these. */
    uint64_t space;
    size_t references; /* the name counts as one reference */
    int is_named;      /* __atomic access only */
    struct mm_buffer memory;
    SLIST_ENTRY(mm_stored) dropped;
};

/* Makes a value with a new ETag, but without a name and without `memory`. The value does not own `data` or
 * `only_copy` yet. NULL if the system has no memory or no random bits. */
struct mm_stored *mm_stored_make(const struct mm_shape *shape, enum mm_dtype dtype, void *data,
                                 struct mm_device_copy *only_copy);

/* Releases the copies, and frees the value. The caller frees `memory`. */
void mm_stored_free(struct mm_stored *value);

/* Adds a copy, which mm_stored_free will release. Only the thread that uses the copy's device calls this. */
void mm_stored_add_copy(struct mm_stored *value, struct mm_device_copy *copy);

/* Returns the value's copy on this device, or NULL if there is none. Any thread that has a reference. */
struct mm_device_copy *mm_stored_find_copy(const struct mm_stored *value, const struct mm_device *device);

/* MM_DEVICE_FAILED if the copy's device has failed, because its elements are lost. MM_OK if copy is NULL. */
enum mm_status mm_device_copy_check(const struct mm_device_copy *copy, struct mm_error *error);

/* Copies a part of the value's elements to host memory, where the part is dense. If the elements are only on
 * a device, waits for the copy from there. MM_DEVICE_FAILED if the device has failed. */
enum mm_status mm_stored_read(const struct mm_stored *value, const struct mm_window *part, void *to,
                              struct mm_error *error);

/* Whether the value still has its name. Any thread that has a reference. */
static inline bool mm_stored_is_named(const struct mm_stored *value) {
    return __atomic_load_n(&value->is_named, __ATOMIC_RELAXED) != 0;
}

/* Whether an address is in the value's host memory. */
static inline bool mm_stored_has(const struct mm_stored *value, const void *data) {
    return value->data != NULL && (uintptr_t)data - (uintptr_t)value->data < value->bytes;
}
