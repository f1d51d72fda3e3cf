/* The memory budget counts the host memory of all requests and stored matrices. Each request has a
 * reservation. server/http/line.h decides in which order requests get memory. */
#pragma once

#include "gpu/memory/buffer.h"

/* The parts of the budget. MM_BUDGET_SMALL is a sixteenth, which only small requests can use. */
enum { MM_BUDGET_MAIN, MM_BUDGET_SMALL, MM_BUDGET_PARTS };

/* How many requests wait for memory of one part. Only server/http/line.c changes this. __atomic access. */
struct mm_budget_waiting {
    size_t all;
    size_t holders; /* waiting requests that already have memory; they go first */
};

struct mm_budget {
    struct mm_buffers *buffers;
    size_t bytes;
    size_t part_bytes[MM_BUDGET_PARTS];
    size_t small_bytes_max;                 /* a request that needs no more is small */
    size_t reserved_bytes[MM_BUDGET_PARTS]; /* __atomic access only */
    struct mm_budget_waiting waiting[MM_BUDGET_PARTS];
};

/* The memory that one request has reserved. Set `budget`, and all other members to 0. One thread at a time
 * changes the members. Other threads may read `part` and `bytes` by __atomic access. */
struct mm_reservation {
    struct mm_budget *budget;
    size_t expected_bytes; /* bytes that the request will need in all; 0 if not known */
    bool is_for_store;     /* the memory is for a stored matrix, so the request is not small */
    int part;              /* MM_BUDGET_MAIN or MM_BUDGET_SMALL */
    size_t bytes;
    size_t used_bytes; /* reserved bytes that are in buffers */
};

/* Returns the bytes of the main part of a budget, which limit the size of a request. */
size_t mm_budget_main_bytes(size_t bytes);

/* Opens a budget of `bytes`. False if memory runs out. */
bool mm_budget_open(struct mm_budget *budget, size_t bytes);

/* Closes a budget. First close all reservations, and free the memory of stored matrices. */
void mm_budget_close(struct mm_budget *budget);

/* Returns the bytes of all reservations and stored matrices. Any thread. */
size_t mm_budget_used(const struct mm_budget *budget);

/* Returns the bytes of a part that nobody has reserved. Any thread. */
size_t mm_budget_free_bytes(const struct mm_budget *budget, int part);

/* Whether a request waits for memory. Any thread. */
bool mm_budget_is_awaited(const struct mm_budget *budget);

/* Frees a buffer that was handed over (mm_reservation_hand_over). Any thread. */
void mm_budget_free(struct mm_budget *budget, struct mm_buffer *buffer);

/* Returns the part of the budget for which a request must wait if it needs `more` bytes. */
int mm_reservation_line(const struct mm_reservation *reservation, size_t more);

/* Reserves `more` bytes and returns true, or reserves nothing and returns false. A small request gets memory
 * from the main part if that part has enough free bytes and no request waits for it. Otherwise a small
 * request gets memory from the small part. If the part changes, the whole reservation moves to the new
 * part. */
bool mm_reservation_extend(struct mm_reservation *reservation, size_t more);

/* Returns false if another request waits and goes first. Otherwise calls mm_reservation_extend. */
bool mm_reservation_try(struct mm_reservation *reservation, size_t more);

/* Returns how many bytes a request reserves next while its body arrives or is decoded: `bytes`, which the
 * request has already, but at least 64 KiB and at most 2 MiB. */
size_t mm_reservation_step(size_t bytes);

size_t mm_reservation_unused(const struct mm_reservation *reservation);

/* Reserves bytes, if necessary, so at least `bytes` are reserved and in no buffer. If that needs waiting,
 * returns MM_BUSY with `bytes` in error->needed_bytes. */
enum mm_status mm_reservation_ensure(struct mm_reservation *reservation, size_t bytes,
                                     struct mm_error *error);

/* These call the functions of buffer.h for memory of the reservation. If the reservation is too small,
 * acquire and grow extend it by mm_reservation_ensure. */
enum mm_status mm_reservation_acquire(struct mm_reservation *reservation, size_t bytes,
                                      struct mm_buffer *buffer, struct mm_error *error);
enum mm_status mm_reservation_grow(struct mm_reservation *reservation, size_t bytes, size_t bytes_max,
                                   struct mm_buffer *buffer, struct mm_error *error);
void mm_reservation_shrink(struct mm_reservation *reservation, struct mm_buffer *buffer, size_t bytes);
void mm_reservation_settle(struct mm_reservation *reservation, struct mm_buffer *buffer);
void mm_reservation_free(struct mm_reservation *reservation, struct mm_buffer *buffer);

/* Releases reserved bytes that are in no buffer. */
void mm_reservation_trim(struct mm_reservation *reservation);

/* Releases all bytes of the reservation. Its buffers no longer count; free them with mm_buffers_release. */
void mm_reservation_close(struct mm_reservation *reservation);

/* Hands a buffer over to the store. The buffer counts in the budget until mm_budget_free. is_for_store was
 * set before the buffer was acquired. */
void mm_reservation_hand_over(struct mm_reservation *reservation, const struct mm_buffer *buffer);
