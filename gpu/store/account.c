/* Counts the store's bytes by state and by namespace. Drops reservations of slow uploads if needed. */
#include "gpu/store/account.h"

#include <assert.h>

void mm_account_init(struct mm_account *account, const struct mm_store_limits *limits) {
    account->limits = limits;
    TAILQ_INIT(&account->slots);
    account->space_count = 1; /* for namespace 0 */
}

static struct mm_space *find(struct mm_account *account, uint64_t number) {
    for (size_t index = 0; index < account->space_count; index++)
        if (account->spaces[index].number == number)
            return &account->spaces[index];
    return NULL;
}

struct mm_space *mm_account_space(struct mm_account *account, uint64_t number) {
    struct mm_space *found = find(account, number);
    if (found != NULL || number <= account->newest || account->space_count == MM_STORE_SPACES_MAX)
        return found;
    found = &account->spaces[account->space_count++];
    *found = (struct mm_space){.number = number};
    return found;
}

void mm_account_set_spaces(struct mm_account *account, const uint64_t *numbers, size_t count,
                           uint64_t newest) {
    size_t kept = 0;
    for (size_t index = 0; index < count; index++) {
        struct mm_space *space = mm_account_space(account, numbers[index]);
        assert(space != NULL);
        if (space < account->spaces + kept) /* `numbers` can contain a number several times */
            continue;
        const struct mm_space moved = *space;
        *space = account->spaces[kept];
        account->spaces[kept++] = moved;
    }
    account->newest = newest;
    account->space_count = kept;
}

void mm_account_move(struct mm_account *account, enum mm_store_state from, enum mm_store_state to,
                     size_t bytes) {
    assert(account->bytes[from] >= bytes);
    account->bytes[from] -= bytes;
    account->bytes[to] += bytes;
}

void mm_account_free(struct mm_account *account, enum mm_store_state state, uint64_t number, size_t bytes) {
    struct mm_space *space = find(account, number);
    assert(account->bytes[state] >= bytes && (space == NULL || space->bytes >= bytes));
    account->bytes[state] -= bytes;
    if (space != NULL)
        space->bytes -= bytes;
}

static size_t used_bytes(const struct mm_account *account) {
    size_t bytes = 0;
    for (unsigned state = 0; state < MM_STORE_STATES; state++)
        bytes += account->bytes[state];
    return bytes;
}

/* Whether an upload is too slow (struct mm_store_slot). */
static bool is_too_slow(const struct mm_store_slot *slot, uint64_t now_ns) {
    enum { GRACE_NS = 1000000000 };
    if (slot->arrived_bytes == NULL || now_ns < slot->started_ns + GRACE_NS)
        return false;
    const double passed = (double)(now_ns - slot->started_ns - GRACE_NS);
    const double whole = (double)(slot->deadline_ns - slot->started_ns);
    const double arrived = (double)__atomic_load_n(slot->arrived_bytes, __ATOMIC_RELAXED);
    return arrived * whole < (double)slot->upload_bytes * passed;
}

/* Drops one slow upload's reservation in this namespace, or in any namespace if `space` is NULL. Returns
 * false if there is no such reservation. */
static bool drop_slow_slot(struct mm_account *account, const struct mm_space *space, uint64_t now_ns) {
    for (struct mm_store_slot *slot = TAILQ_FIRST(&account->slots); slot != NULL;
         slot = TAILQ_NEXT(slot, reserved)) {
        if (slot->bytes == 0 || (space != NULL && slot->space != space->number) || !is_too_slow(slot, now_ns))
            continue;
        mm_account_free(account, MM_BYTES_RESERVED, slot->space, slot->bytes);
        slot->bytes = 0;
        __atomic_store_n(&slot->is_lost, true, __ATOMIC_RELAXED);
        return true;
    }
    return false;
}

size_t mm_account_new_names(const struct mm_account *account, const struct mm_space *space, uint64_t now_ns) {
    const struct mm_store_slot *slot;
    size_t count = 0;
    for (slot = TAILQ_FIRST(&account->slots); slot != NULL; slot = TAILQ_NEXT(slot, reserved))
        count +=
            slot->is_new && (space == NULL || slot->space == space->number) && !is_too_slow(slot, now_ns);
    return count;
}

enum mm_status mm_account_fail_full(const struct mm_account *account, const struct mm_space *space,
                                    size_t needed_bytes, size_t own_bytes, struct mm_error *error) {
    if (error != NULL) {
        error->needed_bytes = needed_bytes;
        error->limit = account->limits->space_bytes_max;
        error->free_bytes = error->limit - space->bytes + own_bytes;
        error->has_limit = true;
    }
    return MM_STORE_FULL;
}

static enum mm_status fail_full(const struct mm_account *account, const struct mm_space *space, size_t bytes,
                                size_t own_bytes, bool was_lost, struct mm_error *error) {
    const size_t limit = account->limits->space_bytes_max;
    const size_t free_bytes = limit - space->bytes + own_bytes;
    mm_fail(error, MM_STORE_FULL, "the value needs %zu bytes, but %s%s; %s", bytes,
            bytes > free_bytes && limit < account->limits->bytes_max
                ? "you may store only so much (--store-memory-per-key)"
                : "the store is full (--store-memory)",
            was_lost ? ", because the upload was too slow for its deadline and other uploads got its memory"
                     : "",
            bytes > limit ? "store a smaller one" : "delete what you no longer need, or try again later");
    return mm_account_fail_full(account, space, bytes, own_bytes, error);
}

static enum mm_status fail_space(struct mm_error *error) {
    return mm_fail(error, MM_UNAUTHORIZED, "the API key in Authorization is no longer valid");
}

/* Reserves `more` bytes, besides own_bytes that are already reserved. If necessary, drops slow uploads'
 * reservations. */
static enum mm_status reserve(struct mm_account *account, uint64_t number, size_t more, size_t own_bytes,
                              bool was_lost, uint64_t now_ns, struct mm_error *error) {
    struct mm_space *space = mm_account_space(account, number);
    if (space == NULL)
        return fail_space(error);
    while (more > account->limits->space_bytes_max - space->bytes)
        if (!drop_slow_slot(account, space, now_ns))
            return fail_full(account, space, own_bytes + more, own_bytes, was_lost, error);
    while (more > account->limits->bytes_max - used_bytes(account))
        if (!drop_slow_slot(account, NULL, now_ns))
            return fail_full(account, space, own_bytes + more, own_bytes, was_lost, error);
    account->bytes[MM_BYTES_RESERVED] += more;
    space->bytes += more;
    return MM_OK;
}

enum mm_status mm_account_reserve(struct mm_account *account, struct mm_store_slot *slot, uint64_t now_ns,
                                  struct mm_error *error) {
    assert(!slot->is_reserved);
    const enum mm_status status = reserve(account, slot->space, slot->bytes, 0, false, now_ns, error);
    if (status != MM_OK)
        return status;
    slot->is_reserved = true;
    __atomic_store_n(&slot->is_lost, false, __ATOMIC_RELAXED);
    TAILQ_INSERT_TAIL(&account->slots, slot, reserved);
    return MM_OK;
}

void mm_account_unreserve(struct mm_account *account, struct mm_store_slot *slot) {
    if (!slot->is_reserved)
        return;
    TAILQ_REMOVE(&account->slots, slot, reserved);
    mm_account_free(account, MM_BYTES_RESERVED, slot->space, slot->bytes);
    slot->is_reserved = false;
    slot->bytes = 0;
}

enum mm_status mm_account_resize(struct mm_account *account, struct mm_store_slot *slot, size_t bytes,
                                 uint64_t now_ns, struct mm_error *error) {
    assert(slot->is_reserved);
    slot->arrived_bytes = NULL;
    if (mm_account_space(account, slot->space) == NULL)
        return fail_space(error);
    if (bytes > slot->bytes) {
        const enum mm_status status =
            reserve(account, slot->space, bytes - slot->bytes, slot->bytes, slot->is_lost, now_ns, error);
        if (status != MM_OK)
            return status;
    } else {
        mm_account_free(account, MM_BYTES_RESERVED, slot->space, slot->bytes - bytes);
    }
    slot->bytes = bytes;
    __atomic_store_n(&slot->is_lost, false, __ATOMIC_RELAXED);
    return MM_OK;
}
