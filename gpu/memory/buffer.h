/* Host memory for bodies and results, counted against one budget. Memory is kept when it comes back, warm and
 * locked to its place where devices want that, and lent again to who needs about as much. A body's memory
 * grows in place and counts as it grows, so a client that only claims a length holds nothing. */
#pragma once

#include "gpu/memory/pages.h"
#include "gpu/status.h"

#include <stddef.h>

struct mm_piece;

/* A piece of memory on loan. data is aligned to 64 bytes; NULL where nothing is held. */
struct mm_buffer {
    void *data;
    size_t bytes;           /* usable, at least what was asked for */
    bool is_locked;         /* to its place: devices copy from and to it at full speed, and may access it */
    struct mm_piece *piece; /* the pool's own */
};

struct mm_buffers;

/* Makes a pool that lends at most budget_bytes at one time, and keeps and lends no more than that together.
 * NULL when memory is out. */
struct mm_buffers *mm_buffers_open(size_t budget_bytes);

/* All buffers have been released before. NULL is allowed. */
void mm_buffers_close(struct mm_buffers *buffers);

/* Locks the pages of buffers lent from now on, except those of the C library. *locking outlives the pool.
 * Once; any thread. */
void mm_buffers_lock(struct mm_buffers *buffers, const struct mm_page_locking *locking);

/* Lends at least `bytes` of undefined contents; if pages are locked at most a quarter more, which counts as
 * well. MM_TOO_LARGE if it passes the whole budget, MM_BUSY if the budget is taken, MM_INTERNAL if the system
 * has no memory. *buffer is untouched on failure. Any thread. */
enum mm_status mm_buffers_acquire(struct mm_buffers *buffers, size_t bytes, struct mm_buffer *buffer,
                                  struct mm_error *error);

/* Grows *buffer, which holds nothing at first, to at least `bytes`; its data does not move. bytes_max,
 * never more than the first time, is how far it may grow: the first call reserves address space for that, or
 * less if the system has less. At most 2·bytes + 64 KiB and bytes + 2 MiB count in the budget. Failures as
 * above; MM_BUSY also if the system has no address space and others hold some, or if less than spare_bytes of
 * the budget would be left. That does not hold for at most 64 KiB, nor to the byte if several threads grow
 * buffers. *buffer is untouched on failure. Any thread, one at a time for a buffer. */
enum mm_status mm_buffers_grow(struct mm_buffers *buffers, size_t bytes, size_t bytes_max, size_t spare_bytes,
                               struct mm_buffer *buffer, struct mm_error *error);

/* Leaves the first `bytes` of a buffer that has grown on loan; the rest is kept for others. Any thread, one
 * at a time for a buffer. */
void mm_buffers_shrink(struct mm_buffers *buffers, struct mm_buffer *buffer, size_t bytes);

/* Ends the growth of a buffer. If devices want pages locked, all it has are locked and stay on loan, since
 * they can only be unlocked together; else it shrinks to `bytes`. The same threads. */
void mm_buffers_settle(struct mm_buffers *buffers, struct mm_buffer *buffer, size_t bytes);

/* Takes it back and clears *buffer; nothing happens where it holds nothing. Any thread. */
void mm_buffers_release(struct mm_buffers *buffers, struct mm_buffer *buffer);

/* Counts `bytes` against the budget without lending memory, for what a library allocates; failures as
 * above. Any thread. */
enum mm_status mm_buffers_reserve(struct mm_buffers *buffers, size_t bytes, struct mm_error *error);
void mm_buffers_unreserve(struct mm_buffers *buffers, size_t bytes);

/* Returns to the system what has been kept unused since before then (mm_clock_ns). Any thread; takes
 * milliseconds. */
void mm_buffers_trim(struct mm_buffers *buffers, uint64_t before_ns);

/* Bytes on loan or reserved, those kept for later, and the budget. Any thread. */
size_t mm_buffers_used(const struct mm_buffers *buffers);
size_t mm_buffers_kept(const struct mm_buffers *buffers);
size_t mm_buffers_budget(const struct mm_buffers *buffers);
