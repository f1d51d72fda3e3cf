/* Stored matrices: names and their immutable values (stored.h). A value ends when its name is replaced, is
 * removed or expires, and the last reference is released. Its bytes count from their reservation until then.
 * The store knows no HTTP, no JSON and no API keys: the names of a key are a namespace, which is a number.
 *
 * Any thread may call these functions. now_ns is mm_clock_ns(). Values lie in host memory of the budget, or
 * in the memory of a device alone. */
#pragma once

#include "gpu/store/stored.h"

enum { MM_STORE_SPACES_MAX = 4096 };

struct mm_store_limits {
    size_t bytes_max;       /* of all values together */
    size_t space_bytes_max; /* of one namespace */
    size_t host_bytes_max;  /* of those that lie in host memory */
    size_t count_max;       /* values */
    size_t space_count_max; /* of one namespace */
    uint64_t ttl_ns_max;    /* the longest life of a value; 0: no limit */
};

/* Room that is reserved for a value whose upload has not ended. An upload is late if it is more than a second
 * behind the even rate that would complete it at its deadline. A late upload loses its room if another one
 * needs it. All zeros: no room. The owner does not move this struct while it is reserved. */
struct mm_store_room {
    uint64_t space;
    size_t bytes;
    const size_t *arrived_bytes; /* of the upload so far; __atomic access. NULL if the room cannot be lost */
    size_t upload_bytes;
    uint64_t started_ns;
    uint64_t deadline_ns;
    bool is_reserved;
    bool is_lost;                        /* __atomic access while it is reserved */
    bool is_new;                         /* the name has no value yet, so this room counts as a value */
    TAILQ_ENTRY(mm_store_room) reserved; /* on the store's list, while it is reserved */
};

/* What is to be stored. */
struct mm_store_content {
    struct mm_shape shape;
    enum mm_dtype dtype;
    void *data;                         /* within `memory`, or NULL */
    struct mm_buffer *memory;           /* holds the data and little else; the store's after success */
    struct mm_reservation *reservation; /* counts `memory` until then */
    struct mm_device_copy *only_copy;   /* of the elements, in device memory; the store's after success. NULL:
                                           they are in `data` */
    uint64_t ttl_ns;                    /* 0: as long as the limits allow */
    const char *expected;               /* stores only if the name's value has this ETag, or none if it is "";
                                           NULL: always */
};

struct mm_store;

/* `budget` outlives the store. NULL if memory runs out. */
struct mm_store *mm_store_open(const struct mm_store_limits *limits, struct mm_budget *budget);

/* Sets other limits with the same count_max. Nothing may be stored or reserved yet. */
void mm_store_limit(struct mm_store *store, const struct mm_store_limits *limits);

/* Frees the store. All references and rooms were released before. NULL is allowed. */
void mm_store_close(struct mm_store *store);

/* Whether a text may be a name: [A-Za-z0-9._-]{1,128}, but not . or .. */
bool mm_store_is_name(const char *name);

/* Empties all namespaces except these, and refuses them from now on. There are at most MM_STORE_SPACES_MAX /
 * 2 of these. `newest` is the highest number of any namespace so far; higher numbers stay allowed. Namespace
 * 0 is for servers without keys. */
void mm_store_keep_spaces(struct mm_store *store, const uint64_t *spaces, size_t count, uint64_t newest);

/* Reserves room->bytes for a value of this name. The caller has set the members before is_reserved. A room
 * under a new name also counts as a value, unless its upload is too slow. MM_STORE_FULL, always with the
 * limit and the free bytes of the namespace; MM_UNAUTHORIZED if mm_store_keep_spaces has emptied the
 * namespace. */
enum mm_status mm_store_reserve(struct mm_store *store, struct mm_store_room *room, const char *name,
                                uint64_t now_ns, struct mm_error *error);

/* Releases the room, if it is reserved. */
void mm_store_unreserve(struct mm_store *store, struct mm_store_room *room);

/* Stores a value in the room, under the name for which the room was reserved. The room first grows or shrinks
 * to the value's size, and is used up. *value is a reference, which the caller releases. *is_new: the name
 * had no value. MM_STORE_FULL, also if the room was lost and there is none now; MM_PRECONDITION_FAILED if the
 * name has another value than expected; MM_UNAUTHORIZED; MM_INTERNAL. On failure the old value stays, and the
 * memory and the room still belong to the caller. */
enum mm_status mm_store_put(struct mm_store *store, struct mm_store_room *room, const char *name,
                            const struct mm_store_content *content, uint64_t now_ns, struct mm_stored **value,
                            bool *is_new, struct mm_error *error);

/* Returns a reference to the value of this name, or NULL if there is none. The time does not tell whether
 * other namespaces have the name. Allocates nothing. `used`: sets used_ns. */
struct mm_stored *mm_store_acquire(struct mm_store *store, uint64_t space, const char *name, bool used,
                                   uint64_t now_ns);

/* Fills in MM_NO_SUCH_MATRIX for this name, which the request gave in `field`, and returns it. */
enum mm_status mm_store_fail_missing(const char *field, const char *name, struct mm_error *error);

/* Releases a reference. NULL is allowed. */
void mm_store_release(struct mm_store *store, struct mm_stored *value);

/* Removes the name. Its value must have the ETag `expected`, unless that is NULL. False if the name has no
 * value, or one with another ETag. */
bool mm_store_remove(struct mm_store *store, uint64_t space, const char *name, const char *expected,
                     uint64_t now_ns);

/* Fills in references to the first count_max values of a namespace whose names come after `after`, sorted by
 * name. Returns how many. The caller releases each. */
size_t mm_store_list(struct mm_store *store, uint64_t space, const char *after, struct mm_stored **values,
                     size_t count_max, uint64_t now_ns);

/* The bytes of a namespace, and its limit. */
struct mm_store_usage {
    size_t bytes; /* stored, reserved, and of values without a name that are still referenced */
    size_t limit;
};

struct mm_store_usage mm_store_usage(struct mm_store *store, uint64_t space);

/* Drops expired values. Takes next to no time if none has expired. */
void mm_store_expire(struct mm_store *store, uint64_t now_ns);

/* Sums over all namespaces. The last four sizes add up to limits.bytes_max. */
struct mm_store_totals {
    size_t count;          /* values with a name */
    size_t host_bytes;     /* of values with a name that lie in host memory */
    size_t stored_bytes;   /* of values with a name */
    size_t reserved_bytes; /* of values still to come */
    size_t released_bytes; /* of values without a name that are still referenced */
    size_t free_bytes;
};

struct mm_store_totals mm_store_totals(struct mm_store *store);
