/* The memory budget: how many bytes of host memory requests and stored matrices have together. The
 * reservation of a request counts its memory to the byte. A sixteenth of the budget is for small requests
 * alone. The budget does not know in which order requests wait: server/http/line.h. */
#pragma once

#include "gpu/memory/buffer.h"

/* The parts: fifteen sixteenths for all requests and for what is stored, a sixteenth for small requests. */
enum { MM_BUDGET_MAIN, MM_BUDGET_SMALL, MM_BUDGET_PARTS };

/* How many requests wait for memory of a part. __atomic access only; server/http/line.c changes them. */
struct mm_budget_waiting {
    size_t all;
    size_t holders; /* those that have memory already, which go first */
};

struct mm_budget {
    struct mm_buffers *buffers;
    size_t bytes;
    size_t part_bytes[MM_BUDGET_PARTS];
    size_t small_bytes_max;                 /* a request that needs no more is small */
    size_t reserved_bytes[MM_BUDGET_PARTS]; /* __atomic access only */
    struct mm_budget_waiting waiting[MM_BUDGET_PARTS];
};

/* What one request has of the budget. Begins as zeros, with `budget` set. One thread at a time changes it;
 * others may read `part` and `bytes` by __atomic access. */
struct mm_reservation {
    struct mm_budget *budget;
    size_t expected_bytes; /* what the request is known to need in all; 0: not known */
    bool is_for_store;     /* the memory will be the store's, so the request never counts as small */
    int part;              /* of the budget: MM_BUDGET_MAIN or MM_BUDGET_SMALL */
    size_t bytes;          /* reserved */
    size_t used_bytes;     /* of the reserved bytes, those in buffers */
};

/* Bytes of the main part of a budget of `bytes`. No request can have more. */
size_t mm_budget_main_bytes(size_t bytes);

/* Opens a budget. False if memory runs out. */
bool mm_budget_open(struct mm_budget *budget, size_t bytes);

/* Closes a budget. All reservations were closed, and the memory of the store freed before. */
void mm_budget_close(struct mm_budget *budget);

/* Bytes of all reservations and of stored matrices. Any thread. */
size_t mm_budget_used(const struct mm_budget *budget);

/* Bytes of a part that nobody has reserved. Any thread. */
size_t mm_budget_free_bytes(const struct mm_budget *budget, int part);

/* Whether a request waits for memory. Any thread. */
bool mm_budget_is_awaited(const struct mm_budget *budget);

/* Frees a buffer that was handed over (mm_reservation_hand_over). Any thread. */
void mm_budget_free(struct mm_budget *budget, struct mm_buffer *buffer);

/* The part of the budget in whose line a reservation waits for `more` bytes. */
int mm_reservation_line(const struct mm_reservation *reservation, size_t more);

/* Reserves `more` bytes, or nothing and returns false. A small request counts in the main part while no
 * request waits for that and there is room, else in the sixteenth. If the part changes, all of the
 * reservation moves there. */
bool mm_reservation_extend(struct mm_reservation *reservation, size_t more);

/* Reserves `more` bytes by mm_reservation_extend, but returns false if a request waits that goes
 * first. */
bool mm_reservation_try(struct mm_reservation *reservation, size_t more);

/* How many bytes a request that has `bytes` reserves next while its body arrives or is decoded: as many as it
 * has, but 64 KiB to 2 MiB. */
size_t mm_reservation_step(size_t bytes);

/* Reserved bytes that are in no buffer. */
size_t mm_reservation_unused(const struct mm_reservation *reservation);

/* Makes sure that `bytes` are reserved and in no buffer. Reserves the missing bytes if that is possible at
 * once. Else MM_BUSY, with `bytes` in error->needed_bytes. */
enum mm_status mm_reservation_ensure(struct mm_reservation *reservation, size_t bytes,
                                     struct mm_error *error);

/* Call the functions of buffer.h, for memory of the reservation. If the reservation has too little, these
 * extend it as mm_reservation_ensure does. */
enum mm_status mm_reservation_acquire(struct mm_reservation *reservation, size_t bytes,
                                      struct mm_buffer *buffer, struct mm_error *error);
enum mm_status mm_reservation_grow(struct mm_reservation *reservation, size_t bytes, size_t bytes_max,
                                   struct mm_buffer *buffer, struct mm_error *error);
void mm_reservation_shrink(struct mm_reservation *reservation, struct mm_buffer *buffer, size_t bytes);
void mm_reservation_settle(struct mm_reservation *reservation, struct mm_buffer *buffer);
void mm_reservation_free(struct mm_reservation *reservation, struct mm_buffer *buffer);

/* Releases reserved bytes that are in no buffer. */
void mm_reservation_trim(struct mm_reservation *reservation);

/* Releases all bytes of the reservation. Its buffers stay, without being counted: mm_buffers_release frees
 * them. */
void mm_reservation_close(struct mm_reservation *reservation);

/* Hands a buffer over to the store. It counts until mm_budget_free. is_for_store was set before it was
 * acquired. */
void mm_reservation_hand_over(struct mm_reservation *reservation, const struct mm_buffer *buffer);
