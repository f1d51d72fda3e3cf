/* The store: an array of values, sorted by namespace and name, and guarded by one mutex. Memory is freed only
 * after the mutex is unlocked, because freeing can take long. */
#include "gpu/store/account.h"

#include "gpu/mutex.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* An element of the array. Copies value->expires_ns, so a search for expired values reads only the array. */
struct entry {
    struct mm_stored *value;
    uint64_t expires_ns; /* UINT64_MAX if the value does not expire */
};

SLIST_HEAD(dropped, mm_stored);

struct mm_store {
    struct mm_store_limits limits;
    struct mm_budget *budget;
    pthread_mutex_t mutex; /* guards the members below, references to values, and reservations */
    struct mm_account account;
    uint64_t expires_ns; /* no value expires before this time */
    size_t host_bytes;   /* bytes of named values in host memory */
    size_t count;
    struct entry *entries;
};

struct mm_store *mm_store_open(const struct mm_store_limits *limits, struct mm_budget *budget) {
    struct mm_store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return NULL;
    store->limits = *limits;
    store->budget = budget;
    store->expires_ns = UINT64_MAX;
    store->entries = calloc(limits->count_max, sizeof *store->entries);
    if (store->entries == NULL) {
        free(store);
        return NULL;
    }
    mm_account_init(&store->account, &store->limits);
    store->mutex = MM_MUTEX_INITIALIZER;
    return store;
}

void mm_store_limit(struct mm_store *store, const struct mm_store_limits *limits) {
    pthread_mutex_lock(&store->mutex);
    assert(store->count == 0 && TAILQ_EMPTY(&store->account.slots));
    store->limits = *limits;
    pthread_mutex_unlock(&store->mutex);
}

bool mm_store_is_name(const char *name) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const size_t length = strspn(name, letters);
    return length >= 1 && length <= MM_STORE_NAME_MAX && name[length] == '\0' && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

static size_t host_bytes(const struct mm_stored *value) {
    return value->only_copy == NULL ? value->bytes : 0;
}

/* Drops a reference. If it was the last, adds the value to *dropped. `unlock` frees the values in *dropped.
 * The caller of a function with a parameter `dropped` holds the mutex. */
static void drop_reference(struct mm_store *store, struct mm_stored *value, struct dropped *dropped) {
    assert(value->references > 0);
    if (--value->references > 0)
        return;
    mm_account_free(&store->account, MM_BYTES_RELEASED, value->space, value->bytes);
    SLIST_INSERT_HEAD(dropped, value, dropped);
}

static void unname(struct mm_store *store, struct mm_stored *value, struct dropped *dropped) {
    __atomic_store_n(&value->is_named, 0, __ATOMIC_RELAXED);
    store->host_bytes -= host_bytes(value);
    mm_account_move(&store->account, MM_BYTES_STORED, MM_BYTES_RELEASED, value->bytes);
    drop_reference(store, value, dropped);
}

static void unlock(struct mm_store *store, struct dropped *dropped) {
    struct mm_stored *value;
    pthread_mutex_unlock(&store->mutex);
    while ((value = SLIST_FIRST(dropped)) != NULL) {
        SLIST_REMOVE_HEAD(dropped, dropped);
        mm_budget_free(store->budget, &value->memory);
        mm_stored_free(value);
    }
}

/* Returns the index of a name, or the index at which a new name must be inserted. Sets *is_there to whether
 * the name exists. */
static size_t find(const struct mm_store *store, uint64_t space, const char *name, bool *is_there) {
    size_t first = 0, past = store->count;
    *is_there = false;
    while (first < past) {
        const size_t middle = first + (past - first) / 2;
        const struct mm_stored *value = store->entries[middle].value;
        const int order = value->space != space ? (value->space < space ? -1 : 1) : strcmp(value->name, name);
        if (order < 0)
            first = middle + 1;
        else
            past = middle;
        *is_there |= order == 0;
    }
    return first;
}

static struct mm_stored *look_up(const struct mm_store *store, uint64_t space, const char *name,
                                 uint64_t now_ns) {
    bool is_there;
    const struct entry *entry = &store->entries[find(store, space, name, &is_there)];
    return is_there && entry->expires_ns > now_ns ? entry->value : NULL;
}

static void insert(struct mm_store *store, struct mm_stored *value) {
    bool is_there;
    const size_t index = find(store, value->space, value->name, &is_there);
    struct entry *entry = &store->entries[index];
    if (!is_there)
        memmove(entry + 1, entry, (store->count++ - index) * sizeof *entry);
    *entry = (struct entry){value, value->expires_ns == 0 ? UINT64_MAX : value->expires_ns};
    if (entry->expires_ns < store->expires_ns)
        store->expires_ns = entry->expires_ns;
}

/* Drops expired values. If `spaces`, also drops the values of dropped namespaces. */
static void clean(struct mm_store *store, bool spaces, uint64_t now_ns, struct dropped *dropped) {
    size_t kept = 0;
    if (!spaces && now_ns < store->expires_ns)
        return;
    store->expires_ns = UINT64_MAX;
    for (size_t index = 0; index < store->count; index++) {
        const struct entry entry = store->entries[index];
        if (entry.expires_ns <= now_ns ||
            (spaces && mm_account_space(&store->account, entry.value->space) == NULL)) {
            unname(store, entry.value, dropped);
            continue;
        }
        store->entries[kept++] = entry;
        if (entry.expires_ns < store->expires_ns)
            store->expires_ns = entry.expires_ns;
    }
    store->count = kept;
}

void mm_store_expire(struct mm_store *store, uint64_t now_ns) {
    struct dropped dropped = SLIST_HEAD_INITIALIZER(dropped);
    pthread_mutex_lock(&store->mutex);
    clean(store, false, now_ns, &dropped);
    unlock(store, &dropped);
}

void mm_store_set_spaces(struct mm_store *store, const uint64_t *spaces, size_t count, uint64_t newest) {
    struct dropped dropped = SLIST_HEAD_INITIALIZER(dropped);
    pthread_mutex_lock(&store->mutex);
    mm_account_set_spaces(&store->account, spaces, count, newest);
    clean(store, true, 0, &dropped);
    unlock(store, &dropped);
}

void mm_store_close(struct mm_store *store) {
    if (store == NULL)
        return;
    mm_store_set_spaces(store, NULL, 0, UINT64_MAX);
    for (unsigned state = 0; state < MM_STORE_STATES; state++)
        assert(store->account.bytes[state] == 0);
    assert(store->host_bytes == 0);
    pthread_mutex_destroy(&store->mutex);
    free(store->entries);
    free(store);
}

/* Returns the number of values in a namespace. The values of a namespace are neighbours in the array. */
static size_t count_of(const struct mm_store *store, uint64_t space) {
    bool unused;
    return find(store, space + 1, "", &unused) - find(store, space, "", &unused);
}

/* Checks that one more name is allowed. Counts the names that exist, and the reservations for new names. But
 * if slot->is_new, the slot has passed this check before, so only the names that exist count. */
static enum mm_status check_count(struct mm_store *store, const struct mm_store_slot *slot, uint64_t now_ns,
                                  struct mm_error *error) {
    const struct mm_store_limits *limits = &store->limits;
    const struct mm_account *account = &store->account;
    const struct mm_space *space = mm_account_space(&store->account, slot->space);
    assert(space != NULL); /* because the reservation exists */
    const size_t reserved = slot->is_new ? 0 : mm_account_new_names(account, NULL, now_ns);
    const size_t reserved_here = slot->is_new ? 0 : mm_account_new_names(account, space, now_ns);
    if (store->count + reserved >= limits->count_max)
        mm_fail(error, MM_STORE_FULL,
                "the store has its limit of %zu matrices, with uploads in progress (--store-count); "
                "delete what you no longer need, or try again later",
                limits->count_max);
    else if (count_of(store, slot->space) + reserved_here >= limits->space_count_max)
        mm_fail(error, MM_STORE_FULL,
                "you have the limit of %zu matrices for an API key, with uploads in progress (half of "
                "--store-count); delete what you no longer need",
                limits->space_count_max);
    else
        return MM_OK;
    return mm_account_fail_full(account, space, slot->bytes, slot->bytes, error);
}

enum mm_status mm_store_reserve(struct mm_store *store, struct mm_store_slot *slot, const char *name,
                                uint64_t now_ns, struct mm_error *error) {
    struct dropped dropped = SLIST_HEAD_INITIALIZER(dropped);
    pthread_mutex_lock(&store->mutex);
    clean(store, false, now_ns, &dropped);
    slot->is_new = false;
    enum mm_status status = mm_account_reserve(&store->account, slot, now_ns, error);
    const bool is_new = look_up(store, slot->space, name, now_ns) == NULL;
    if (status == MM_OK && is_new)
        status = check_count(store, slot, now_ns, error);
    if (status == MM_OK)
        slot->is_new = is_new;
    else
        mm_account_unreserve(&store->account, slot);
    unlock(store, &dropped);
    return status;
}

void mm_store_unreserve(struct mm_store *store, struct mm_store_slot *slot) {
    pthread_mutex_lock(&store->mutex);
    mm_account_unreserve(&store->account, slot);
    pthread_mutex_unlock(&store->mutex);
}

/* Returns the requested lifetime, but at most the longest allowed lifetime. 0 stands for no limit. */
static uint64_t life_ns(const struct mm_store_limits *limits, uint64_t asked_ns) {
    const uint64_t most_ns = limits->ttl_ns_max;
    return most_ns == 0 || (asked_ns != 0 && asked_ns < most_ns) ? asked_ns : most_ns;
}

/* Makes a value that does not own its memory yet. NULL if the system has no memory or no random bits. */
static struct mm_stored *make_value(const struct mm_store *store, uint64_t space, const char *name,
                                    const struct mm_store_content *content, uint64_t now_ns) {
    const uint64_t ttl_ns = life_ns(&store->limits, content->ttl_ns);
    struct mm_stored *value =
        mm_stored_make(&content->shape, content->dtype, content->data, content->only_copy);
    if (value == NULL)
        return NULL;
    value->created_ns = value->used_ns = now_ns;
    value->expires_ns = ttl_ns == 0 ? 0 : now_ns + ttl_ns;
    value->space = space;
    assert(mm_store_is_name(name));
    strcpy(value->name, name);
    return value;
}

static enum mm_status check_expected(const struct mm_stored *old, const char *expected,
                                     struct mm_error *error) {
    if (expected == NULL || strcmp(old == NULL ? "" : old->etag, expected) == 0)
        return MM_OK;
    return mm_fail(error, MM_PRECONDITION_FAILED,
                   "another request changed the matrix; read it again and repeat the request");
}

/* Checks that values in host memory do not exceed their limit. */
static enum mm_status check_host(struct mm_store *store, const struct mm_store_slot *slot,
                                 const struct mm_stored *value, struct mm_error *error) {
    const size_t limit = store->limits.host_bytes_max;
    if (host_bytes(value) <= limit - mm_size_min(limit, store->host_bytes))
        return MM_OK;
    mm_fail(error, MM_STORE_FULL,
            "the value needs %zu bytes of host memory, but stored matrices use %zu of %zu bytes (half of "
            "--memory-budget); delete some, or compute it on a GPU",
            value->bytes, store->host_bytes, limit);
    return mm_account_fail_full(&store->account, mm_account_space(&store->account, slot->space), value->bytes,
                                slot->bytes, error);
}

/* Turns the reservation into stored bytes, and gives the value its name. `old` is the value that had the name
 * before, or NULL. */
static void name_value(struct mm_store *store, struct mm_store_slot *slot, struct mm_stored *value,
                       struct mm_stored *old, struct dropped *dropped) {
    mm_account_move(&store->account, MM_BYTES_RESERVED, MM_BYTES_STORED, value->bytes);
    TAILQ_REMOVE(&store->account.slots, slot, reserved);
    slot->is_reserved = false;
    __atomic_store_n(&value->is_named, 1, __ATOMIC_RELAXED);
    store->host_bytes += host_bytes(value);
    value->references = 2; /* one for the name, one for the caller */
    insert(store, value);
    if (old != NULL)
        unname(store, old, dropped);
}

enum mm_status mm_store_put(struct mm_store *store, struct mm_store_slot *slot, const char *name,
                            const struct mm_store_content *content, uint64_t now_ns,
                            struct mm_stored **stored, bool *is_new, struct mm_error *error) {
    struct dropped dropped = SLIST_HEAD_INITIALIZER(dropped);
    struct mm_stored *value = make_value(store, slot->space, name, content, now_ns);
    if (value == NULL)
        return mm_fail(error, MM_INTERNAL, "the system is out of memory (name of a matrix); try again later");
    pthread_mutex_lock(&store->mutex);
    clean(store, false, now_ns, &dropped);
    struct mm_stored *old = look_up(store, slot->space, name, now_ns);
    enum mm_status status = check_expected(old, content->expected, error);
    if (status == MM_OK)
        status = mm_account_resize(&store->account, slot, value->bytes, now_ns, error);
    if (status == MM_OK)
        status = check_host(store, slot, value, error);
    if (status == MM_OK && old == NULL)
        status = check_count(store, slot, now_ns, error);
    if (status == MM_OK)
        name_value(store, slot, value, old, &dropped);
    if (status == MM_OK) {
        mm_reservation_hand_over(content->reservation, content->memory);
        value->memory = *content->memory;
        *content->memory = (struct mm_buffer){0};
        for (struct mm_device_copy *part = content->only_copy; part != NULL; part = part->next_part)
            mm_stored_add_copy(value, part);
        *stored = value;
        *is_new = old == NULL;
    }
    unlock(store, &dropped);
    if (status != MM_OK)
        mm_stored_free(value);
    return status;
}

struct mm_stored *mm_store_acquire(struct mm_store *store, uint64_t space, const char *name, bool used,
                                   uint64_t now_ns) {
    pthread_mutex_lock(&store->mutex);
    struct mm_stored *value = look_up(store, space, name, now_ns);
    if (value != NULL)
        value->references++;
    if (value != NULL && used)
        __atomic_store_n(&value->used_ns, now_ns, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&store->mutex);
    return value;
}

enum mm_status mm_store_fail_missing(const char *field, const char *name, struct mm_error *error) {
    return mm_fail_field(error, MM_NO_SUCH_MATRIX, field,
                         "there is no matrix '%s': it was never stored, or was deleted, or has expired, or "
                         "the server was restarted; store it by PUT /v1/matrices/%s",
                         name, name);
}

void mm_store_release(struct mm_store *store, struct mm_stored *value) {
    struct dropped dropped = SLIST_HEAD_INITIALIZER(dropped);
    if (value == NULL)
        return;
    pthread_mutex_lock(&store->mutex);
    drop_reference(store, value, &dropped);
    unlock(store, &dropped);
}

bool mm_store_remove(struct mm_store *store, uint64_t space, const char *name, const char *expected,
                     uint64_t now_ns) {
    struct dropped dropped = SLIST_HEAD_INITIALIZER(dropped);
    bool is_there;
    pthread_mutex_lock(&store->mutex);
    clean(store, false, now_ns, &dropped);
    const size_t index = find(store, space, name, &is_there);
    struct entry *entry = &store->entries[index];
    is_there = is_there && (expected == NULL || strcmp(entry->value->etag, expected) == 0);
    if (is_there) {
        unname(store, entry->value, &dropped);
        memmove(entry, entry + 1, (--store->count - index) * sizeof *entry);
    }
    unlock(store, &dropped);
    return is_there;
}

size_t mm_store_list(struct mm_store *store, uint64_t space, const char *after, struct mm_stored **values,
                     size_t count_max, uint64_t now_ns) {
    struct dropped dropped = SLIST_HEAD_INITIALIZER(dropped);
    size_t count = 0;
    bool is_there;
    pthread_mutex_lock(&store->mutex);
    clean(store, false, now_ns, &dropped);
    size_t index = find(store, space, after, &is_there);
    for (index += is_there; index < store->count && count < count_max; index++) {
        struct mm_stored *value = store->entries[index].value;
        if (value->space != space)
            break;
        value->references++;
        values[count++] = value;
    }
    unlock(store, &dropped);
    return count;
}

struct mm_store_usage mm_store_usage(struct mm_store *store, uint64_t number) {
    pthread_mutex_lock(&store->mutex);
    const struct mm_space *space = mm_account_space(&store->account, number);
    const struct mm_store_usage usage = {.bytes = space == NULL ? 0 : space->bytes,
                                         .limit = store->limits.space_bytes_max};
    pthread_mutex_unlock(&store->mutex);
    return usage;
}

struct mm_store_totals mm_store_totals(struct mm_store *store) {
    pthread_mutex_lock(&store->mutex);
    const size_t *bytes = store->account.bytes;
    const struct mm_store_totals totals = {.count = store->count,
                                           .host_bytes = store->host_bytes,
                                           .stored_bytes = bytes[MM_BYTES_STORED],
                                           .reserved_bytes = bytes[MM_BYTES_RESERVED],
                                           .released_bytes = bytes[MM_BYTES_RELEASED],
                                           .free_bytes = store->limits.bytes_max - bytes[MM_BYTES_STORED] -
                                                         bytes[MM_BYTES_RESERVED] - bytes[MM_BYTES_RELEASED]};
    pthread_mutex_unlock(&store->mutex);
    return totals;
}
