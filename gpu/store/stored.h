/* A stored matrix is an immutable value. Its elements are in host memory, and devices may have copies; or
 * they are only in the memory of one device. store.h has the names. */
#pragma once

#include "gpu/memory/budget.h"
#include "gpu/product/shape.h"
#include "gpu/matrix/window.h"

#include <sys/queue.h>

struct mm_device;

/* The elements of a value in the memory of a device. The device's backend allocates this as the first
 * member of a struct of its own. */
struct mm_device_copy {
    const struct mm_device *device;
    void *data;                                   /* device memory, which the backend owns; __atomic access */
    void (*release)(struct mm_device_copy *copy); /* frees the copy. Any thread that holds no lock */
    struct mm_device_copy *next;                  /* the value's next copy */

    /* Copies a part of the elements to host memory, where it is dense. NULL unless this is the value's
     * only copy. Any thread. */
    enum mm_status (*read)(struct mm_device_copy *copy, const struct mm_window *part, enum mm_dtype dtype,
                           void *to, struct mm_error *error);

    /* Copies bytes from host memory to `offset`, and returns when the copy is complete. Called before the
     * value is stored, by one thread at a time. NULL unless this is the value's only copy. */
    enum mm_status (*write)(struct mm_device_copy *copy, size_t offset, const void *from, size_t bytes,
                            struct mm_error *error);
};

enum { MM_STORED_DEVICE_MAX = 15, MM_STORE_NAME_MAX = 128, MM_ETAG_MAX = 34 };

/* A value. It is valid while a reference is held. Only the store writes to it. */
struct mm_stored {
    struct mm_shape shape;
    enum mm_dtype dtype;
    void *data; /* elements in host memory, dense and row by row; NULL: they are only on a device, or the
                   matrix is empty */
    size_t bytes;
    char device[MM_STORED_DEVICE_MAX +
                1];             /* where the elements are: "cpu", or "cuda:0" if they are only on a device */
    char etag[MM_ETAG_MAX + 1]; /* 128 random bits, quoted as in HTTP */
    uint64_t created_ns;        /* time of creation (mm_clock_ns) */
    uint64_t expires_ns;        /* time of expiry; 0: never */
    uint64_t used_ns;           /* when a request last used it; __atomic access only */
    char name[MM_STORE_NAME_MAX + 1];

    struct mm_device_copy
        *only_copy; /* the copy that is the only place of the elements; NULL: they are in host memory */
    struct mm_device_copy *copies; /* all copies; none is removed while the value lives; __atomic access */

    /* For the store only. */
    uint64_t space;
    size_t references; /* the name counts as one reference */
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

/* Adds a copy, which is released at the end of the value. Only the thread that uses the copy's device
 * calls this. */
void mm_stored_add_copy(struct mm_stored *value, struct mm_device_copy *copy);

/* Returns the value's copy on this device; NULL if there is none. Any thread that has a reference. */
struct mm_device_copy *mm_stored_find_copy(const struct mm_stored *value, const struct mm_device *device);

/* Checks that the elements of a copy are not lost: MM_DEVICE_FAILED if its device has failed. MM_OK if
 * copy is NULL. */
enum mm_status mm_device_copy_check(const struct mm_device_copy *copy, struct mm_error *error);

/* Copies a part of the value's elements to host memory, where it is dense. If the elements are only on a
 * device, waits for a copy from the device: MM_DEVICE_FAILED if the device has failed. */
enum mm_status mm_stored_read(const struct mm_stored *value, const struct mm_window *part, void *to,
                              struct mm_error *error);

/* Whether the value still has its name. A value without a name ends with its last reference. Any thread
 * that has a reference. */
static inline bool mm_stored_is_named(const struct mm_stored *value) {
    return __atomic_load_n(&value->is_named, __ATOMIC_RELAXED) != 0;
}

/* Whether an address is in the value's host memory. */
static inline bool mm_stored_has(const struct mm_stored *value, const void *data) {
    return value->data != NULL && (uintptr_t)data - (uintptr_t)value->data < value->bytes;
}
