/* The memory budget: the host memory of all requests and stored matrices. The reservation of a request
 * counts its memory to the byte. A sixteenth of the budget is for small requests only. The budget does not
 * know in which order requests wait (server/http/line.h). */
#pragma once

#include "gpu/memory/buffer.h"

/* The parts of the budget: fifteen sixteenths for all requests and for stored matrices, and a sixteenth
 * for small requests. */
enum { MM_BUDGET_MAIN, MM_BUDGET_SMALL, MM_BUDGET_PARTS };

/* How many requests wait for memory of one part. __atomic access only; only server/http/line.c changes the
 * members. */
struct mm_budget_waiting {
    size_t all;     /* all requests that wait */
    size_t holders; /* waiting requests that already have memory; these go first */
};

struct mm_budget {
    struct mm_buffers *buffers;
    size_t bytes;
    size_t part_bytes[MM_BUDGET_PARTS];
    size_t small_bytes_max;                 /* a request that needs at most this is small */
    size_t reserved_bytes[MM_BUDGET_PARTS]; /* __atomic access only */
    struct mm_budget_waiting waiting[MM_BUDGET_PARTS];
};

/* The memory that one request has reserved. Begin with zeros and `budget`. One thread at a time changes
 * the members; other threads may read `part` and `bytes` by __atomic access. */
struct mm_reservation {
    struct mm_budget *budget;
    size_t expected_bytes; /* all bytes that the request will need; 0: not known */
    bool is_for_store;     /* the memory is for a stored matrix, so the request never counts as small */
    int part;              /* MM_BUDGET_MAIN or MM_BUDGET_SMALL */
    size_t bytes;          /* bytes that are reserved */
    size_t used_bytes;     /* reserved bytes that are in buffers */
};

/* Returns the bytes of the main part of a budget of `bytes`. No request can have more. */
size_t mm_budget_main_bytes(size_t bytes);

/* Opens a budget of `bytes`. False if memory runs out. */
bool mm_budget_open(struct mm_budget *budget, size_t bytes);

/* Closes a budget. All reservations were closed before, and the memory of stored matrices was freed. */
void mm_budget_close(struct mm_budget *budget);

/* Returns the bytes of all reservations and stored matrices. Any thread. */
size_t mm_budget_used(const struct mm_budget *budget);

/* Returns the bytes of a part that nobody has reserved. Any thread. */
size_t mm_budget_free_bytes(const struct mm_budget *budget, int part);

/* Whether a request waits for memory. Any thread. */
bool mm_budget_is_awaited(const struct mm_budget *budget);

/* Frees a buffer that was handed over (mm_reservation_hand_over). Any thread. */
void mm_budget_free(struct mm_budget *budget, struct mm_buffer *buffer);

/* Returns the part of the budget for which a reservation waits if it needs `more` bytes. */
int mm_reservation_line(const struct mm_reservation *reservation, size_t more);

/* Reserves `more` bytes and returns true, or reserves nothing and returns false. A small request uses the
 * main part if no request waits for that part and it has enough free bytes. Otherwise it uses the small
 * part. If the part changes, the whole reservation moves there. */
bool mm_reservation_extend(struct mm_reservation *reservation, size_t more);

/* Calls mm_reservation_extend, but returns false if a waiting request goes first. */
bool mm_reservation_try(struct mm_reservation *reservation, size_t more);

/* Returns how many bytes a request reserves next while its body arrives or is decoded. The answer is
 * `bytes`, which the request has already, but at least 64 KiB and at most 2 MiB. */
size_t mm_reservation_step(size_t bytes);

/* Returns the reserved bytes that are in no buffer. */
size_t mm_reservation_unused(const struct mm_reservation *reservation);

/* Makes sure that at least `bytes` are reserved and in no buffer. Reserves missing bytes if that is
 * possible at once. Otherwise MM_BUSY, with `bytes` in error->needed_bytes. */
enum mm_status mm_reservation_ensure(struct mm_reservation *reservation, size_t bytes,
                                     struct mm_error *error);

/* Call the functions of buffer.h for memory of the reservation. If the reservation is too small, acquire
 * and grow extend it by mm_reservation_ensure. */
enum mm_status mm_reservation_acquire(struct mm_reservation *reservation, size_t bytes,
                                      struct mm_buffer *buffer, struct mm_error *error);
enum mm_status mm_reservation_grow(struct mm_reservation *reservation, size_t bytes, size_t bytes_max,
                                   struct mm_buffer *buffer, struct mm_error *error);
void mm_reservation_shrink(struct mm_reservation *reservation, struct mm_buffer *buffer, size_t bytes);
void mm_reservation_settle(struct mm_reservation *reservation, struct mm_buffer *buffer);
void mm_reservation_free(struct mm_reservation *reservation, struct mm_buffer *buffer);

/* Releases reserved bytes that are in no buffer. */
void mm_reservation_trim(struct mm_reservation *reservation);

/* Releases all bytes of the reservation. Its buffers are not freed, and no longer count:
 * mm_buffers_release frees them. */
void mm_reservation_close(struct mm_reservation *reservation);

/* Hands a buffer over to the store. The buffer counts in the budget until mm_budget_free. The reservation
 * was for the store (is_for_store) when the buffer was acquired. */
void mm_reservation_hand_over(struct mm_reservation *reservation, const struct mm_buffer *buffer);
