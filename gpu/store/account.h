/* How many bytes each namespace has stored or reserved. Callers of these functions hold the store's mutex. */
#pragma once

#include "gpu/store/store.h"

/* MM_BYTES_RELEASED is for values that have no name any more, but are still in use. */
enum mm_store_state { MM_BYTES_STORED, MM_BYTES_RESERVED, MM_BYTES_RELEASED, MM_STORE_STATES };

struct mm_space {
    uint64_t number;
    size_t bytes; /* sum over all states */
};

struct mm_account {
    const struct mm_store_limits *limits;
    size_t bytes[MM_STORE_STATES]; /* by state; the sum never exceeds limits->bytes_max */
    TAILQ_HEAD(mm_store_slots, mm_store_slot) slots;
    uint64_t newest; /* the highest number of a namespace that mm_account_set_spaces knew */
    size_t space_count;
    struct mm_space spaces[MM_STORE_SPACES_MAX];
};

void mm_account_init(struct mm_account *account, const struct mm_store_limits *limits);

/* Finds a namespace. Adds the namespace if its number is above account->newest, because then it is new.
 * Returns NULL if the namespace was dropped, or if there are too many namespaces. */
struct mm_space *mm_account_space(struct mm_account *account, uint64_t number);

/* Drops all namespaces that are not in `numbers`. `newest` is the highest number of any namespace so far. */
void mm_account_set_spaces(struct mm_account *account, const uint64_t *numbers, size_t count,
                           uint64_t newest);

/* Moves the bytes of a value from one state to another. */
void mm_account_move(struct mm_account *account, enum mm_store_state from, enum mm_store_state to,
                     size_t bytes);

/* Subtracts bytes from the total of this state, and from the namespace's total if the namespace still
 * exists. */
void mm_account_free(struct mm_account *account, enum mm_store_state state, uint64_t number, size_t bytes);

/* Adds the sizes and the limit to *error, and returns MM_STORE_FULL. The caller has set the other members of
 * *error. The value needs needed_bytes, of which own_bytes are already reserved. error may be NULL. */
enum mm_status mm_account_fail_full(const struct mm_account *account, const struct mm_space *space,
                                    size_t needed_bytes, size_t own_bytes, struct mm_error *error);

/* Reserves slot->bytes. MM_STORE_FULL if there is no space. MM_UNAUTHORIZED if the namespace was dropped. */
enum mm_status mm_account_reserve(struct mm_account *account, struct mm_store_slot *slot, uint64_t now_ns,
                                  struct mm_error *error);

/* Releases the slot's reservation, if the slot has one. */
void mm_account_unreserve(struct mm_account *account, struct mm_store_slot *slot);

/* Returns how many reservations are for new names in this namespace, or in all namespaces if `space` is NULL.
 * Reservations of slow uploads do not count. */
size_t mm_account_new_names(const struct mm_account *account, const struct mm_space *space, uint64_t now_ns);

/* Grows or shrinks a reservation to `bytes`. From now on, the reservation cannot be lost. MM_STORE_FULL if
 * there is no space. MM_UNAUTHORIZED if the namespace was dropped. On failure the size does not change. */
enum mm_status mm_account_resize(struct mm_account *account, struct mm_store_slot *slot, size_t bytes,
                                 uint64_t now_ns, struct mm_error *error);
