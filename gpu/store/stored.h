/* A stored matrix is an immutable value. Its elements are either in host memory, of which devices can have
 * copies, or only in device memory: on one device, or in parts on several devices. store.h maps names to
 * values. */
#pragma once

#include "gpu/memory/budget.h"
#include "gpu/product/shape.h"
#include "gpu/matrix/window.h"

#include <sys/queue.h>

struct mm_device;

/* Bytes of a value: from `first` to before `end`. */
struct mm_stored_range {
    size_t first;
    size_t end;
};

/* A value's elements in device memory. The backend embeds this as the first member of its own struct. */
struct mm_device_copy {
    const struct mm_device *device;
    void *data;                                   /* device memory of the backend; __atomic access only */
    void (*release)(struct mm_device_copy *copy); /* frees the copy; any thread, no lock held */
    struct mm_device_copy *next;

    /* What of the value is in `data`, unless this is a part. A job can need only some rows, so the rest of
     * `data` is undefined. The device's thread writes this. Other threads only estimate times by it, so they
     * may read one member before and one after a change; __atomic access only. */
    struct mm_stored_range filled;

    /* For a part of a value: the number of bytes of the value before this part, and the part after this one.
     * The parts have all bytes of the value. */
    size_t first;
    struct mm_device_copy *next_part;

    /* Copies a part of the elements to host memory, without gaps between rows, and waits. Any thread. NULL
     * unless this is the value's only_copy or a part of it. */
    enum mm_status (*read)(struct mm_device_copy *copy, const struct mm_window *part, enum mm_dtype dtype,
                           void *to, struct mm_error *error);

    /* Copies bytes from host memory to `offset` in `data`, and waits. Only called before the value is stored,
     * by one thread at a time. NULL unless this is the value's only_copy. */
    enum mm_status (*write)(struct mm_device_copy *copy, size_t offset, const void *from, size_t bytes,
                            struct mm_error *error);
};

enum { MM_STORE_NAME_MAX = 128, MM_ETAG_MAX = 34 };

/* A value. It exists as long as it has references, and its elements never change. */
struct mm_stored {
    struct mm_shape shape;
    enum mm_dtype dtype;

    /* The elements in host memory, row by row without gaps. NULL if the elements are only on devices, or if
     * the matrix is empty. */
    void *data;

    size_t bytes;
    char etag[MM_ETAG_MAX + 1]; /* 128 random bits, quoted as in HTTP */
    uint64_t created_ns;        /* when the value was made (mm_clock_ns) */
    uint64_t expires_ns;        /* 0 if the value does not expire */
    uint64_t used_ns;           /* when a request last used it; __atomic access only */
    char name[MM_STORE_NAME_MAX + 1];

    /* The device copy that is the only place of the elements, or the first of the parts that are. NULL if the
     * elements are in host memory. */
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

/* Returns the value's copy on this device, which is no part, or NULL. Any thread that has a reference. */
struct mm_device_copy *mm_stored_find_copy(const struct mm_stored *value, const struct mm_device *device);

/* Returns MM_DEVICE_FAILED if the device of the copy, or of one of its parts, has failed, because then the
 * elements are lost. `copy` may be NULL. */
enum mm_status mm_device_copy_check(const struct mm_device_copy *copy, struct mm_error *error);

/* Releases the copy and the parts after it. `copy` may be NULL. */
void mm_device_copy_release(struct mm_device_copy *copy);

/* The bytes that one part has of some rows of a value. All members begin as 0. */
struct mm_stored_block {
    struct mm_device_copy *part;
    size_t at;        /* the block's first byte in the part */
    size_t row;       /* the block's first row */
    size_t byte;      /* where the block begins in the row */
    size_t rows;      /* 1 if the block does not have whole rows */
    size_t row_bytes; /* bytes of each row in the block */
};

/* Finds the next block of `rows` rows of `row_bytes` bytes. The first row begins at byte `first` of the
 * value, and each row begins `pitch` bytes after the row before. Returns false after the last block. The
 * value has an only_copy. */
bool mm_stored_next_block(const struct mm_stored *value, size_t first, size_t pitch, size_t rows,
                          size_t row_bytes, struct mm_stored_block *block);

/* If one part on this device has all of these bytes, returns the address at which the value would begin.
 * Otherwise returns NULL. */
void *mm_stored_find_part(const struct mm_stored *value, struct mm_stored_range range,
                          const struct mm_device *device);

/* Returns how many of some bytes of the value are not on this device. */
size_t mm_stored_absent_bytes(const struct mm_stored *value, struct mm_stored_range range,
                              const struct mm_device *device);

/* Copies a part of the value's elements to host memory, without gaps between rows. If the elements are only
 * on devices, waits for the devices. MM_DEVICE_FAILED if a device has failed. */
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
