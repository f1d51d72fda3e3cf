/* The memory budget: how many bytes of host memory requests and stored matrices hold together. What a request
 * holds is counted in its reservation, to the byte that it asked for. A sixteenth of the budget is left to
 * small requests. Knows no order in which requests wait: server/http/line.h. */
#pragma once

#include "gpu/memory/buffer.h"

/* The parts: fifteen sixteenths for all requests and for what is stored, a sixteenth for small requests. */
enum { MM_BUDGET_MAIN, MM_BUDGET_SMALL, MM_BUDGET_PARTS };

/* How many requests wait for memory of a part. __atomic access only; server/http/line.c changes them. */
struct mm_budget_waiting {
    size_t all;
    size_t holders; /* those that hold memory already, which go first */
};

struct mm_budget {
    struct mm_buffers *buffers;
    size_t bytes;
    size_t part_bytes[MM_BUDGET_PARTS];
    size_t small_bytes_max;                 /* the most that a small request holds */
    size_t reserved_bytes[MM_BUDGET_PARTS]; /* __atomic access only */
    struct mm_budget_waiting waiting[MM_BUDGET_PARTS];
};

/* What one request holds of the budget. Begins as zeros, with `budget` set. One thread at a time changes it;
 * others may read `part` and `bytes` by __atomic access. */
struct mm_reservation {
    struct mm_budget *budget;
    size_t expected_bytes; /* what the request is known to need in all; 0: not known */
    bool is_for_store;     /* the store takes it over: it never counts as small */
    int part;              /* where it counts */
    size_t bytes;          /* reserved */
    size_t used_bytes;     /* of these, in buffers */
};

/* The main part of a budget: no request can hold more. */
size_t mm_budget_main_bytes(size_t bytes);

/* False if memory runs out. close: all reservations have ended, and what was stored is free. */
bool mm_budget_open(struct mm_budget *budget, size_t bytes);
void mm_budget_close(struct mm_budget *budget);

/* Bytes of all reservations and of what is stored. Any thread. */
size_t mm_budget_used(const struct mm_budget *budget);

/* Bytes of a part that nobody has reserved. Any thread. */
size_t mm_budget_free_bytes(const struct mm_budget *budget, int part);

/* Whether a request waits for memory. Any thread. */
bool mm_budget_is_awaited(const struct mm_budget *budget);

/* Frees a buffer that was handed over (mm_reservation_hand_over). Any thread. */
void mm_budget_free(struct mm_budget *budget, struct mm_buffer *buffer);

/* The line in which a reservation waits for `more` bytes: small requests have their own. */
int mm_reservation_line(const struct mm_reservation *reservation, size_t more);

/* Reserves `more` bytes, or nothing and returns false. A small request counts in the main part while nobody
 * waits for that and there is room, else in the sixteenth. If the part changes, all of the reservation moves
 * there. mm_reservation_try also returns false if somebody waits who goes before. */
bool mm_reservation_extend(struct mm_reservation *reservation, size_t more);
bool mm_reservation_try(struct mm_reservation *reservation, size_t more);

/* How much a request that holds `bytes` reserves more while its body arrives, or is decoded: as much as it
 * holds, from 64 KiB to 2 MiB. */
size_t mm_reservation_step(size_t bytes);

/* Bytes that are reserved, but in no buffer. */
size_t mm_reservation_unused(const struct mm_reservation *reservation);

/* Makes sure that `bytes` are unused; reserves what is lacking if that is possible at once. Else MM_BUSY,
 * with `bytes` in error->needed_bytes. */
enum mm_status mm_reservation_ensure(struct mm_reservation *reservation, size_t bytes,
                                     struct mm_error *error);

/* Like the functions of buffer.h, for memory of the reservation, which they extend as
 * mm_reservation_ensure does. */
enum mm_status mm_reservation_acquire(struct mm_reservation *reservation, size_t bytes,
                                      struct mm_buffer *buffer, struct mm_error *error);
enum mm_status mm_reservation_grow(struct mm_reservation *reservation, size_t bytes, size_t bytes_max,
                                   struct mm_buffer *buffer, struct mm_error *error);
void mm_reservation_shrink(struct mm_reservation *reservation, struct mm_buffer *buffer, size_t bytes);
void mm_reservation_settle(struct mm_reservation *reservation, struct mm_buffer *buffer);
void mm_reservation_free(struct mm_reservation *reservation, struct mm_buffer *buffer);

/* Gives back what is in no buffer. */
void mm_reservation_trim(struct mm_reservation *reservation);

/* Gives back everything, also what is in buffers: mm_buffers_release frees these. */
void mm_reservation_close(struct mm_reservation *reservation);

/* The buffer is the store's from now on, and counts until mm_budget_free. is_for_store was set before it was
 * acquired. */
void mm_reservation_hand_over(struct mm_reservation *reservation, const struct mm_buffer *buffer);
