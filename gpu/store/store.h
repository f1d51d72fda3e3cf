/* Stored matrices. A name stands for an immutable value (stored.h), until the value is replaced or removed,
 * or expires. A value is freed when it has no name and no references. The bytes of a value count from the
 * reservation until the value is freed. Each name belongs to a namespace, which is a number. The store knows
 * no HTTP, no JSON and no API keys.
 *
 * Any thread may call these functions. now_ns is mm_clock_ns(). */
#pragma once

#include "gpu/store/stored.h"

enum { MM_STORE_SPACES_MAX = 4096 };

struct mm_store_limits {
    size_t bytes_max;
    size_t space_bytes_max; /* bytes of all values in one namespace */
    size_t host_bytes_max;  /* bytes of all values in host memory */
    size_t count_max;
    size_t space_count_max;
    uint64_t ttl_ns_max; /* longest lifetime of a value; 0 for no limit */
};

/* A reservation of memory for a value during its upload. An upload should arrive at a constant rate that
 * completes the upload at its deadline. An upload that is more than a second behind this rate is too slow. A
 * slow upload loses its reservation if another upload needs the memory. A slot of zeros has no reservation. A
 * reserved slot must not move. */
struct mm_store_slot {
    uint64_t space;
    size_t bytes;

    /* How many bytes of the upload have arrived; __atomic access only. NULL if the upload is never slow. */
    const size_t *arrived_bytes;

    size_t upload_bytes;
    uint64_t started_ns;
    uint64_t deadline_ns;
    bool is_reserved;
    bool is_lost; /* another upload got the memory; __atomic access while is_reserved */
    bool is_new;  /* the name has no value yet, so the slot counts as a value */
    TAILQ_ENTRY(mm_store_slot) reserved; /* entry in the store's list of reservations */
};

struct mm_store_content {
    struct mm_shape shape;
    enum mm_dtype dtype;
    void *data;                         /* the elements in host memory, or NULL */
    struct mm_buffer *memory;           /* the buffer that contains `data`; the store owns it after success */
    struct mm_reservation *reservation; /* the reservation in which `memory` counts until success */

    /* The elements in device memory, or NULL. The store owns this copy after success. */
    struct mm_device_copy *only_copy;

    uint64_t ttl_ns; /* lifetime; 0 for the longest that the limits allow */

    /* The ETag that the old value must have. "" if there must be no old value, NULL for no condition. */
    const char *expected;
};

struct mm_store;

/* Opens a store. The budget must outlive the store. Returns NULL if memory runs out. */
struct mm_store *mm_store_open(const struct mm_store_limits *limits, struct mm_budget *budget);

/* Sets new limits. Call this before anything is stored or reserved. count_max must not change. */
void mm_store_limit(struct mm_store *store, const struct mm_store_limits *limits);

/* Frees the store. The caller must first release all references and reservations. NULL is allowed. */
void mm_store_close(struct mm_store *store);

/* Whether a name is valid: [A-Za-z0-9._-]{1,128}, but not . or .. */
bool mm_store_is_name(const char *name);

/* Drops all namespaces that are not in `spaces`, with their values, and rejects new values in them. `count`
 * is at most MM_STORE_SPACES_MAX / 2. `newest` is the highest number that any namespace has had. Namespaces
 * with higher numbers are new, and stay allowed. A server without API keys uses namespace 0. */
void mm_store_set_spaces(struct mm_store *store, const uint64_t *spaces, size_t count, uint64_t newest);

/* Reserves slot->bytes for a value of this name. The caller has set those members of the slot that precede
 * is_reserved. If the name is new, the reservation counts as a value. While the upload is too slow, the
 * reservation does not count. MM_STORE_FULL, with the limit and the free bytes of the namespace, if the value
 * does not fit. MM_UNAUTHORIZED if the namespace was dropped. */
enum mm_status mm_store_reserve(struct mm_store *store, struct mm_store_slot *slot, const char *name,
                                uint64_t now_ns, struct mm_error *error);

/* Releases the slot's reservation, if the slot has one. */
void mm_store_unreserve(struct mm_store *store, struct mm_store_slot *slot);

/* Stores a value under the name for which the slot was reserved. First changes the reservation to the value's
 * size. On success the reservation ends, and *value is a reference that the caller must release. *is_new is
 * true if the name had no value before. MM_STORE_FULL if the value does not fit, for example because the
 * reservation was lost. MM_PRECONDITION_FAILED if content->expected does not match. MM_UNAUTHORIZED if the
 * namespace was dropped. MM_INTERNAL if memory runs out. On failure the old value stays, and the caller still
 * owns the contents and the reservation. */
enum mm_status mm_store_put(struct mm_store *store, struct mm_store_slot *slot, const char *name,
                            const struct mm_store_content *content, uint64_t now_ns, struct mm_stored **value,
                            bool *is_new, struct mm_error *error);

/* Returns a reference to the value of this name, or NULL. The caller must release the reference. The time of
 * the call does not reveal whether other namespaces have the name. If `used`, sets the value's used_ns. */
struct mm_stored *mm_store_acquire(struct mm_store *store, uint64_t space, const char *name, bool used,
                                   uint64_t now_ns);

/* Fails with MM_NO_SUCH_MATRIX for a name that the request gave in `field`. */
enum mm_status mm_store_fail_missing(const char *field, const char *name, struct mm_error *error);

/* Releases a reference. NULL is allowed. */
void mm_store_release(struct mm_store *store, struct mm_stored *value);

/* Removes the name if its value has the ETag `expected`, or if `expected` is NULL. Returns whether the name
 * was removed. */
bool mm_store_remove(struct mm_store *store, uint64_t space, const char *name, const char *expected,
                     uint64_t now_ns);

/* Lists a namespace in the order of names, from the first name after `after` on. Writes at most count_max
 * references to `values`, and returns how many. The caller must release each reference. */
size_t mm_store_list(struct mm_store *store, uint64_t space, const char *after, struct mm_stored **values,
                     size_t count_max, uint64_t now_ns);

struct mm_store_usage {
    size_t bytes; /* sum over all states (account.h) */
    size_t limit;
};

struct mm_store_usage mm_store_usage(struct mm_store *store, uint64_t space);

/* Drops expired values. This is fast if no value has expired. */
void mm_store_expire(struct mm_store *store, uint64_t now_ns);

/* Sums over all namespaces. The sum of the last four members is limits.bytes_max. */
struct mm_store_totals {
    size_t count;
    size_t host_bytes;   /* bytes of named values in host memory */
    size_t stored_bytes; /* bytes of named values */
    size_t reserved_bytes;
    size_t released_bytes; /* bytes of values that have no name, but are still in use */
    size_t free_bytes;
};

struct mm_store_totals mm_store_totals(struct mm_store *store);
