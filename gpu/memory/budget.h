/* The memory budget counts the host memory of all requests and stored matrices. Each request has a
 * reservation. server/http/line.h decides in which order waiting requests get memory. */
#pragma once

#include "gpu/memory/buffer.h"
#include "gpu/queue/work.h"

/* The parts of the budget. MM_BUDGET_SMALL is a sixteenth of the budget, for small requests only. */
enum { MM_BUDGET_MAIN, MM_BUDGET_SMALL, MM_BUDGET_PARTS };

/* How many requests wait for memory of a part. Only server/http/line.c changes this. __atomic access only. */
struct mm_budget_waiting {
    size_t all;
    size_t holders; /* waiting requests that already have some memory; these get memory first */
};

struct mm_budget {
    struct mm_buffers *buffers;
    size_t bytes;
    size_t part_bytes[MM_BUDGET_PARTS];
    size_t small_bytes_max;                 /* the most bytes that a small request needs */
    size_t reserved_bytes[MM_BUDGET_PARTS]; /* __atomic access only */
    struct mm_budget_waiting waiting[MM_BUDGET_PARTS];
    size_t client_bytes[MM_CLIENTS_MAX]; /* reserved bytes of each client; __atomic access only */
    /* Those of requests that wait for more. Only server/http/line.c changes this. __atomic access only. */
    size_t client_waiting_bytes[MM_CLIENTS_MAX];
};

/* The memory that one request has reserved. The caller sets `budget` and `client`, and all other members to
 * 0. One thread at a time changes the members. Other threads may read `part` and `bytes` by __atomic access.
 */
struct mm_reservation {
    struct mm_budget *budget;
    unsigned client;       /* below MM_CLIENTS_MAX; does not change while `bytes` is above 0 */
    size_t expected_bytes; /* all bytes that the request needs, including `bytes`; 0 if not known */
    bool is_for_store;     /* the memory is for a stored matrix, so the request is not small */
    int part;
    size_t bytes;
    size_t used_bytes; /* reserved bytes that are in buffers */
};

/* Returns how many bytes the main part of a budget of `bytes` has. This limits the size of a request. */
size_t mm_budget_main_bytes(size_t bytes);

/* Opens a budget of `bytes`. False if memory runs out. */
bool mm_budget_open(struct mm_budget *budget, size_t bytes);

/* Closes a budget. The caller must first close all reservations, and free the memory of stored matrices. */
void mm_budget_close(struct mm_budget *budget);

/* Returns the bytes of all reservations and stored matrices. Any thread. */
size_t mm_budget_used(const struct mm_budget *budget);

/* Returns the unreserved bytes of a part of the budget. Any thread. */
size_t mm_budget_free_bytes(const struct mm_budget *budget, int part);

/* Whether any request waits for memory. Any thread. */
bool mm_budget_is_awaited(const struct mm_budget *budget);

/* Frees a buffer of the store, which the store got by mm_reservation_hand_over. Any thread. */
void mm_budget_free(struct mm_budget *budget, struct mm_buffer *buffer);

/* Returns the part of the budget for which a request must wait if it needs `more` bytes. */
int mm_reservation_line(const struct mm_reservation *reservation, size_t more);

/* Reserves `more` bytes. Returns false if too few bytes are free. If no request waits for the main part of
 * the budget, a small request first tries the main part. Otherwise, or if this fails, the request tries the
 * small part. If the part changes, the whole reservation moves to the new part. */
bool mm_reservation_extend(struct mm_reservation *reservation, size_t more);

/* Whether `more` bytes would give the client more than half of the budget, although another of its requests
 * has memory and does not wait. The client gets no such memory while others wait. But if all its requests
 * wait, one of them must go on, or the client would never release memory. is_waiting: whether the reservation
 * counts in client_waiting_bytes. Any thread. */
bool mm_reservation_is_unfair(const struct mm_reservation *reservation, size_t more, bool is_waiting);

/* If waiting requests must get memory first, returns false. Otherwise calls mm_reservation_extend. */
bool mm_reservation_try(struct mm_reservation *reservation, size_t more);

/* Returns how many more bytes a request should reserve while its body arrives or is decoded. The request
 * already has `bytes`. The result is equal to `bytes`, but at least 64 KiB and at most 2 MiB. */
size_t mm_reservation_step(size_t bytes);

size_t mm_reservation_unused(const struct mm_reservation *reservation);

/* Reserves more if fewer than `bytes` of the reservation are unused. If that is not possible now, returns
 * MM_BUSY with `bytes` in error->needed_bytes. The request must then wait. */
enum mm_status mm_reservation_ensure(struct mm_reservation *reservation, size_t bytes,
                                     struct mm_error *error);

/* The next five functions call the functions of buffer.h, and count the buffer's bytes as used.
 * mm_reservation_acquire and mm_reservation_grow first call mm_reservation_ensure. */
enum mm_status mm_reservation_acquire(struct mm_reservation *reservation, size_t bytes,
                                      struct mm_buffer *buffer, struct mm_error *error);
enum mm_status mm_reservation_grow(struct mm_reservation *reservation, size_t bytes, size_t bytes_max,
                                   struct mm_buffer *buffer, struct mm_error *error);
void mm_reservation_shrink(struct mm_reservation *reservation, struct mm_buffer *buffer, size_t bytes);
void mm_reservation_settle(struct mm_reservation *reservation, struct mm_buffer *buffer);
void mm_reservation_free(struct mm_reservation *reservation, struct mm_buffer *buffer);

/* Releases the bytes of the reservation that no buffer uses. */
void mm_reservation_trim(struct mm_reservation *reservation);

/* Releases all bytes of the reservation. The caller frees the reservation's buffers by mm_buffers_release,
 * because mm_reservation_free would now count wrongly. */
void mm_reservation_close(struct mm_reservation *reservation);

/* Removes a buffer from the reservation, because the store now owns the buffer. The buffer counts in the
 * budget until mm_budget_free. The caller has set is_for_store before it acquired the buffer. */
void mm_reservation_hand_over(struct mm_reservation *reservation, const struct mm_buffer *buffer);
