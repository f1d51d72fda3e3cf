/* How many bytes each namespace has stored or reserved. Call all functions with the store's mutex held. */
#pragma once

#include "gpu/store/store.h"

/* Released bytes are bytes of values that have no name any more, but are still in use. */
enum mm_store_state { MM_BYTES_STORED, MM_BYTES_RESERVED, MM_BYTES_RELEASED, MM_STORE_STATES };

struct mm_space {
    uint64_t number;
    size_t bytes; /* in all states together */
};

struct mm_account {
    const struct mm_store_limits *limits;
    size_t bytes[MM_STORE_STATES]; /* by state; the sum never exceeds limits->bytes_max */
    TAILQ_HEAD(mm_store_slots, mm_store_slot) slots;
    uint64_t newest; /* `newest` of the last mm_account_set_spaces */
    size_t space_count;
    struct mm_space spaces[MM_STORE_SPACES_MAX];
};

void mm_account_init(struct mm_account *account, const struct mm_store_limits *limits);

/* Finds a namespace. Adds it if its number is above `newest`, because it is new. NULL if the namespace was
 * dropped, or if there are too many. */
struct mm_space *mm_account_space(struct mm_account *account, uint64_t number);

/* Drops all namespaces except these. `newest` is the highest number that any namespace has had. */
void mm_account_set_spaces(struct mm_account *account, const uint64_t *numbers, size_t count,
                           uint64_t newest);

/* Moves the bytes of a value from one state to another. */
void mm_account_move(struct mm_account *account, enum mm_store_state from, enum mm_store_state to,
                     size_t bytes);

/* Subtracts bytes from a state and from the namespace, unless the namespace was dropped. */
void mm_account_free(struct mm_account *account, enum mm_store_state state, uint64_t space, size_t bytes);

/* Adds sizes and limit to an *error of status MM_STORE_FULL, and returns that status. The value needs
 * needed_bytes, and own_bytes of them are already reserved. error may be NULL. */
enum mm_status mm_account_fail_full(const struct mm_account *account, const struct mm_space *space,
                                    size_t needed_bytes, size_t own_bytes, struct mm_error *error);

/* Reserves slot->bytes. MM_STORE_FULL if they do not fit. MM_UNAUTHORIZED if the namespace was dropped. */
enum mm_status mm_account_reserve(struct mm_account *account, struct mm_store_slot *slot, uint64_t now_ns,
                                  struct mm_error *error);

/* Releases the reservation, if there is one. */
void mm_account_unreserve(struct mm_account *account, struct mm_store_slot *slot);

/* Returns how many reservations are for new names in a namespace, or in all namespaces if `space` is NULL.
 * Uploads that are too slow do not count. */
size_t mm_account_new_names(const struct mm_account *account, const struct mm_space *space, uint64_t now_ns);

/* Grows or shrinks a reservation to `bytes`. Afterwards the reservation cannot be lost. MM_STORE_FULL if the
 * bytes do not fit. MM_UNAUTHORIZED if the namespace was dropped. On failure the size does not change. */
enum mm_status mm_account_resize(struct mm_account *account, struct mm_store_slot *slot, size_t bytes,
                                 uint64_t now_ns, struct mm_error *error);
