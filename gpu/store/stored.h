/* A stored matrix: an immutable value, whose elements lie in host memory, or in the memory of one device
 * alone. Devices may have copies. Knows no names: store.h. */
#pragma once

#include "gpu/memory/budget.h"
#include "gpu/product/shape.h"
#include "gpu/matrix/window.h"

#include <sys/queue.h>

struct mm_device;

/* A value's elements in the memory of a device, whose backend makes and embeds this. */
struct mm_replica {
    const struct mm_device *device;
    void *data;                                  /* the backend's; __atomic access */
    void (*release)(struct mm_replica *replica); /* frees it. Any thread, no lock held */
    struct mm_replica *next;

    /* Copies a part to host memory, where it lies dense. Any thread. Of the elements that the device alone
     * has; else NULL. */
    enum mm_status (*read)(struct mm_replica *replica, const struct mm_window *part, enum mm_dtype dtype,
                           void *to, struct mm_error *error);

    /* Copies bytes from host memory to the place `offset`, and returns when they are there. Before the value
     * is stored; any thread, one at a time. Of the same elements. */
    enum mm_status (*write)(struct mm_replica *replica, size_t offset, const void *from, size_t bytes,
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
    uint64_t used_ns;                      /* when it was last held for use; __atomic access only */
    char name[MM_STORE_NAME_MAX + 1];

    struct mm_replica *home;     /* one of the replicas: what that device alone has; NULL: nothing */
    struct mm_replica *replicas; /* only added to while the value lives; __atomic access */

    /* The store's own. */
    uint64_t space;
    size_t references; /* that of its name among them */
    int is_named;      /* __atomic access only */
    struct mm_buffer memory;
    SLIST_ENTRY(mm_stored) dropped;
};

/* Makes a value with an ETag of its own, without a name and memory; `data` and `home` are as in struct
 * mm_stored. NULL if the system has no memory or no random bits. */
struct mm_stored *mm_stored_make(const struct mm_shape *shape, enum mm_dtype dtype, void *data,
                                 struct mm_replica *home);

/* Releases the replicas, and frees the value. The caller frees `memory`. */
void mm_stored_free(struct mm_stored *value);

/* Adds a replica, which is released when the value ends. The thread that may use this device. */
void mm_stored_add_replica(struct mm_stored *value, struct mm_replica *replica);

/* The value's replica on this device; NULL: none. Any thread that holds the value. */
struct mm_replica *mm_stored_find_replica(const struct mm_stored *value, const struct mm_device *device);

/* Whether the elements that a device alone has are still there: MM_DEVICE_FAILED if it has failed. NULL, no
 * home, is allowed. */
enum mm_status mm_replica_check_home(const struct mm_replica *home, struct mm_error *error);

/* Copies a part of the value's elements to host memory, where it lies dense. If a device alone has them, that
 * takes about as long as any copy from it; MM_DEVICE_FAILED. */
enum mm_status mm_stored_read(const struct mm_stored *value, const struct mm_window *part, void *to,
                              struct mm_error *error);

/* Whether the value still has its name: else it ends with its last reference. Any thread that holds it. */
static inline bool mm_stored_is_named(const struct mm_stored *value) {
    return __atomic_load_n(&value->is_named, __ATOMIC_RELAXED) != 0;
}

/* Whether this is memory of the value. */
static inline bool mm_stored_has(const struct mm_stored *value, const void *data) {
    return value->data != NULL && (uintptr_t)data - (uintptr_t)value->data < value->bytes;
}
