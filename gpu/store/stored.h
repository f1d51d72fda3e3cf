/* A stored matrix is an immutable value. Its elements lie in host memory, and devices may have copies; or
 * they lie in the memory of one device alone. This file knows nothing of how names are found: store.h. */
#pragma once

#include "gpu/memory/budget.h"
#include "gpu/product/shape.h"
#include "gpu/matrix/window.h"

#include <sys/queue.h>

struct mm_device;

/* A value's elements in the memory of a device. The device's backend allocates this, as the head of a struct
 * of its own. */
struct mm_device_copy {
    const struct mm_device *device;
    void *data;                                   /* the backend's; __atomic access */
    void (*release)(struct mm_device_copy *copy); /* frees it. Any thread, no lock held */
    struct mm_device_copy *next;

    /* Copies a part to host memory, where it lies dense. Any thread. NULL unless this is the value's only
     * copy.
     */
    enum mm_status (*read)(struct mm_device_copy *copy, const struct mm_window *part, enum mm_dtype dtype,
                           void *to, struct mm_error *error);

    /* Copies bytes from host memory to the place `offset`, and returns when they are there. Called before the
     * value is stored, by any thread, one at a time. NULL unless this is the value's only copy. */
    enum mm_status (*write)(struct mm_device_copy *copy, size_t offset, const void *from, size_t bytes,
                            struct mm_error *error);
};

enum { MM_STORED_DEVICE_MAX = 15, MM_STORE_NAME_MAX = 128, MM_ETAG_MAX = 34 };

/* A value. Valid while a reference is held, and immutable: only the store writes to it. */
struct mm_stored {
    struct mm_shape shape;
    enum mm_dtype dtype;
    void *data; /* in host memory, dense, in row-major order; NULL: a device alone has it, or it is empty */
    size_t bytes;
    char device[MM_STORED_DEVICE_MAX + 1]; /* where the elements lie: "cpu", or "cuda:0" for a device alone */
    char etag[MM_ETAG_MAX + 1];            /* 128 random bits, quoted as in HTTP */
    uint64_t created_ns;                   /* mm_clock_ns */
    uint64_t expires_ns;                   /* 0: never */
    uint64_t used_ns;                      /* when it was last acquired for use; __atomic access only */
    char name[MM_STORE_NAME_MAX + 1];

    struct mm_device_copy *only_copy; /* the one of `copies` that is the only place of the elements;
                                         NULL: they are in host memory */
    struct mm_device_copy *copies;    /* only added to while the value lives; __atomic access */

    /* The store's own. */
    uint64_t space;
    size_t references; /* the name holds one of them */
    int is_named;      /* __atomic access only */
    struct mm_buffer memory;
    SLIST_ENTRY(mm_stored) dropped;
};

/* Makes a value with a new ETag, without a name and without `memory`. `data` and `only_copy` become its
 * members. NULL if the system has no memory or no random bits. */
struct mm_stored *mm_stored_make(const struct mm_shape *shape, enum mm_dtype dtype, void *data,
                                 struct mm_device_copy *only_copy);

/* Releases the copies, and frees the value. The caller frees `memory`. */
void mm_stored_free(struct mm_stored *value);

/* Adds a copy, which is released when the value ends. The thread that may use this device. */
void mm_stored_add_copy(struct mm_stored *value, struct mm_device_copy *copy);

/* The value's copy on this device; NULL: none. Any thread that holds the value. */
struct mm_device_copy *mm_stored_find_copy(const struct mm_stored *value, const struct mm_device *device);

/* MM_DEVICE_FAILED if the copy's device has failed, because its elements are lost then. NULL is allowed:
 * MM_OK.
 */
enum mm_status mm_device_copy_check(const struct mm_device_copy *copy, struct mm_error *error);

/* Copies a part of the value's elements to host memory, where it lies dense. If a device alone has them, this
 * waits for a copy from the device: MM_DEVICE_FAILED if the device has failed. */
enum mm_status mm_stored_read(const struct mm_stored *value, const struct mm_window *part, void *to,
                              struct mm_error *error);

/* Whether the value still has its name. Without one it ends with its last reference. Any thread that holds a
 * reference. */
static inline bool mm_stored_is_named(const struct mm_stored *value) {
    return __atomic_load_n(&value->is_named, __ATOMIC_RELAXED) != 0;
}

/* Whether this is memory of the value. */
static inline bool mm_stored_has(const struct mm_stored *value, const void *data) {
    return value->data != NULL && (uintptr_t)data - (uintptr_t)value->data < value->bytes;
}
