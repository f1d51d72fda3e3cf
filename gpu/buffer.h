/* Host memory for bodies and results, counted against one budget. Memory is kept when it comes back, warm and
 * locked to its place where devices want that, and lent again to who needs about as much. */
#ifndef MM_GPU_BUFFER_H
#define MM_GPU_BUFFER_H

#include "gpu/pages.h"
#include "gpu/status.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/* Locks the pages of what is lent from now on, but for what the C library gives. *locking lives as long as
 * the pool. Once; any thread. What is on loan by then may stay as it is. */
void mm_buffers_lock(struct mm_buffers *buffers, const struct mm_page_locking *locking);

/* Lends at least `bytes` of undefined contents; at most a quarter more, which then counts as well.
 * MM_TOO_LARGE where the whole budget would not do, MM_BUSY where it is taken now, MM_INTERNAL where the
 * system has no memory. *buffer is untouched on failure. Any thread. */
enum mm_status mm_buffers_acquire(struct mm_buffers *buffers, size_t bytes, struct mm_buffer *buffer,
                                  struct mm_error *error);

/* Takes it back and clears *buffer; nothing happens where it holds nothing. Any thread. */
void mm_buffers_release(struct mm_buffers *buffers, struct mm_buffer *buffer);

/* Counts `bytes` against the budget without lending memory, for what a library takes on our behalf;
 * failures as above. unreserve gives back what was reserved. Any thread. */
enum mm_status mm_buffers_reserve(struct mm_buffers *buffers, size_t bytes, struct mm_error *error);
void mm_buffers_unreserve(struct mm_buffers *buffers, size_t bytes);

/* Gives back to the system what has been kept unused since before then (mm_clock_ns), but for some megabytes.
 * Any thread; it may take some milliseconds. */
void mm_buffers_trim(struct mm_buffers *buffers, uint64_t before_ns);

/* Bytes on loan or reserved, those kept for later, and the budget. Any thread. */
size_t mm_buffers_used(const struct mm_buffers *buffers);
size_t mm_buffers_kept(const struct mm_buffers *buffers);
size_t mm_buffers_budget(const struct mm_buffers *buffers);

#ifdef __cplusplus
}
#endif
#endif
