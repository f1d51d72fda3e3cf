/* Stored matrices: names, and the immutable values (stored.h) that they stand for. A value lives until its
 * name is replaced, removed or expires and the last reference is released. Every byte counts from the moment
 * that it is reserved until then. Knows no HTTP, no JSON and no API keys: a key's names are a namespace,
 * which is a number.
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

/* Room that is reserved for a value that is still to come. If others need the room, it is lost once the
 * upload is a second behind the even rate that completes it at its deadline. All zeros: none. The owner does
 * not move it while it is reserved. */
struct mm_store_room {
    uint64_t space;
    size_t bytes;
    const size_t *arrived_bytes; /* of the upload; __atomic access. NULL: this room cannot be lost */
    size_t upload_bytes;
    uint64_t started_ns;
    uint64_t deadline_ns;
    bool is_reserved;
    bool is_lost;                        /* __atomic access while it is reserved */
    bool is_new;                         /* its name has no value yet: it counts as one */
    TAILQ_ENTRY(mm_store_room) reserved; /* on the store's list, then */
};

/* What is to be stored. */
struct mm_store_content {
    struct mm_shape shape;
    enum mm_dtype dtype;
    void *data;               /* within `memory`, or NULL */
    struct mm_buffer *memory; /* holds the data and little else; the store takes it over if it succeeds */
    struct mm_reservation *reservation; /* in which `memory` counts until then */
    struct mm_device_copy *only_copy;   /* of the elements, in device memory; the store's after success. NULL:
                                           they are in `data` */
    uint64_t ttl_ns;                    /* 0: as long as the limits allow */
    const char *expected;               /* stores only if the name's value has this ETag, or none if it is "";
                                           NULL: always */
};

struct mm_store;

/* `budget` outlives the store. NULL if memory runs out. */
struct mm_store *mm_store_open(const struct mm_store_limits *limits, struct mm_budget *budget);

/* Sets other limits, of the same count_max, before anything is stored or has room. */
void mm_store_limit(struct mm_store *store, const struct mm_store_limits *limits);

/* No references and no rooms are left. NULL is allowed. */
void mm_store_close(struct mm_store *store);

/* Whether a text is a name: [A-Za-z0-9._-]{1,128}, but not . or .. */
bool mm_store_is_name(const char *name);

/* Empties all namespaces but these, of which there are at most MM_STORE_SPACES_MAX / 2, and refuses the rest
 * of those up to `newest`, the highest number given so far, also if they were never used. Namespaces numbered
 * later need not be told. Namespace 0 is for servers without keys. */
void mm_store_keep_spaces(struct mm_store *store, const uint64_t *spaces, size_t count, uint64_t newest);

/* Reserves room->bytes for a value of this name; the caller has set the members before is_reserved. A room
 * under a new name also counts as a value, unless its upload is behind. MM_STORE_FULL, with the namespace's
 * limit and free bytes whatever limit it was, or MM_UNAUTHORIZED if the namespace was emptied by
 * mm_store_keep_spaces. */
enum mm_status mm_store_reserve(struct mm_store *store, struct mm_store_room *room, const char *name,
                                uint64_t now_ns, struct mm_error *error);

/* Gives the room back, if there is any. */
void mm_store_unreserve(struct mm_store *store, struct mm_store_room *room);

/* Stores a value under the name for which the room was reserved, in the room's namespace and in its room,
 * which grows or shrinks to what the value needs and is used up. *value is a reference to the value; release
 * it. *is_new: the name had none. MM_STORE_FULL, also if the room was lost and there is none now;
 * MM_PRECONDITION_FAILED, if the name has another value than expected; MM_UNAUTHORIZED; MM_INTERNAL. On
 * failure the old value stays, and the memory and the room are still the caller's. */
enum mm_status mm_store_put(struct mm_store *store, struct mm_store_room *room, const char *name,
                            const struct mm_store_content *content, uint64_t now_ns, struct mm_stored **value,
                            bool *is_new, struct mm_error *error);

/* A reference to the value of this name; NULL if there is none, which takes the same time whether other
 * namespaces have the name or not. Allocates nothing. used: the value is held for use, which `used_ns`
 * notes. */
struct mm_stored *mm_store_hold(struct mm_store *store, uint64_t space, const char *name, bool used,
                                uint64_t now_ns);

/* MM_NO_SUCH_MATRIX: there is none of this name, which `field` gives. */
enum mm_status mm_store_fail_missing(const char *field, const char *name, struct mm_error *error);

/* Releases a reference. NULL is allowed. */
void mm_store_release(struct mm_store *store, struct mm_stored *value);

/* Takes the name away from its value, which must have the ETag `expected` unless that is NULL. False if it
 * has none, or another. */
bool mm_store_remove(struct mm_store *store, uint64_t space, const char *name, const char *expected,
                     uint64_t now_ns);

/* References to the values of a namespace whose names come after `after`, sorted by name, at most count_max
 * of them. Returns how many; release each. */
size_t mm_store_list(struct mm_store *store, uint64_t space, const char *after, struct mm_stored **values,
                     size_t count_max, uint64_t now_ns);

/* Bytes that a namespace takes, and its limit. */
struct mm_store_usage {
    size_t bytes; /* also those reserved, and those of values without a name that are still held */
    size_t limit;
};

struct mm_store_usage mm_store_usage(struct mm_store *store, uint64_t space);

/* Drops expired values. Takes no time to speak of if none has expired. */
void mm_store_expire(struct mm_store *store, uint64_t now_ns);

/* What all namespaces take. The last four sizes add up to the limit. */
struct mm_store_totals {
    size_t count;          /* values with a name */
    size_t host_bytes;     /* what of them lies in host memory */
    size_t stored_bytes;   /* of values with a name */
    size_t reserved_bytes; /* of values still to come */
    size_t released_bytes; /* of values without a name that are still held */
    size_t free_bytes;
};

struct mm_store_totals mm_store_totals(struct mm_store *store);
