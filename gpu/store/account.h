/* The store's account: which namespace has taken how many bytes, and whether there is room for more. Knows no
 * names. All functions are called with the store's mutex held. */
#pragma once

#include "gpu/store/store.h"

enum mm_store_state { MM_BYTES_STORED, MM_BYTES_RESERVED, MM_BYTES_RELEASED, MM_STORE_STATES };

struct mm_space {
    uint64_t number;
    size_t bytes; /* in all states */
};

struct mm_account {
    const struct mm_store_limits *limits;
    size_t bytes[MM_STORE_STATES]; /* together never over limits->bytes_max */
    TAILQ_HEAD(mm_store_rooms, mm_store_room) rooms;
    uint64_t newest; /* the highest number of a namespace when they were last dropped */
    size_t space_count;
    struct mm_space spaces[MM_STORE_SPACES_MAX];
};

void mm_account_init(struct mm_account *account, const struct mm_store_limits *limits);

/* NULL: it was dropped, and holds what it holds without a namespace. Numbers past `newest` are added. */
struct mm_space *mm_account_space(struct mm_account *account, uint64_t number);

/* As mm_store_keep_spaces. */
void mm_account_keep(struct mm_account *account, const uint64_t *numbers, size_t count, uint64_t newest);

/* Moves the bytes of a value from one state to another. */
void mm_account_move(struct mm_account *account, enum mm_store_state from, enum mm_store_state to,
                     size_t bytes);

/* Takes bytes off a state, and off the namespace if that is still there. */
void mm_account_free(struct mm_account *account, enum mm_store_state state, uint64_t space, size_t bytes);

/* Completes MM_STORE_FULL in *error, of a value for which `own` of the bytes that it needs are reserved.
 * error may be NULL. */
enum mm_status mm_account_fail_full(const struct mm_account *account, const struct mm_space *space,
                                    size_t needed_bytes, size_t own, struct mm_error *error);

/* As mm_store_reserve and mm_store_unreserve, of bytes alone. */
enum mm_status mm_account_reserve(struct mm_account *account, struct mm_store_room *room, uint64_t now_ns,
                                  struct mm_error *error);
void mm_account_unreserve(struct mm_account *account, struct mm_store_room *room);

/* Rooms for values under new names, of a namespace or of all (NULL), but not of uploads that are behind. */
size_t mm_account_new_names(const struct mm_account *account, const struct mm_space *space, uint64_t now_ns);

/* Makes a room as large as `bytes`, or leaves it as it is: MM_STORE_FULL, MM_UNAUTHORIZED. */
enum mm_status mm_account_resize(struct mm_account *account, struct mm_store_room *room, size_t bytes,
                                 uint64_t now_ns, struct mm_error *error);
