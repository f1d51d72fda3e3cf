/* Host memory for bodies and results. A released buffer's memory is kept, warm, and locked to its place if
 * devices want that, and lent again to who needs about as much. Knows no budget: budget.h counts who may have
 * how much. */
#pragma once

#include "gpu/memory/pages.h"
#include "gpu/status.h"

#include <stddef.h>

struct mm_block;

/* Memory on loan. data is aligned to 64 bytes; NULL if nothing is held. */
struct mm_buffer {
    void *data;
    size_t bytes;           /* as many as were asked for */
    bool is_locked;         /* to its place: devices copy from and to it at full speed, and may access it */
    struct mm_block *block; /* the pool's own; NULL: a small one */
};

struct mm_buffers;

/* Makes a pool that keeps released memory as long as it has lent and kept at most bytes_max together. NULL if
 * memory runs out. */
struct mm_buffers *mm_buffers_open(size_t bytes_max);

/* All buffers have been released before. NULL is allowed. */
void mm_buffers_close(struct mm_buffers *buffers);

/* Locks the pages of buffers lent from now on, except those of the C library. *locking outlives the pool.
 * Once; any thread. */
void mm_buffers_lock(struct mm_buffers *buffers, const struct mm_page_locking *locking);

/* Lends `bytes` of undefined contents. MM_INTERNAL if the system has no memory, or MM_BUSY if others hold
 * some that they may release. *buffer is untouched on failure. Any thread. */
enum mm_status mm_buffers_acquire(struct mm_buffers *buffers, size_t bytes, struct mm_buffer *buffer,
                                  struct mm_error *error);

/* Grows *buffer, which holds nothing at first, to `bytes`; its data does not move. bytes_max, the same each
 * time, is how far it may grow: the first call reserves address space for that, or less if the system has
 * less. Fails as mm_buffers_acquire does; *buffer is untouched then. Any thread, one at a time for a buffer.
 */
enum mm_status mm_buffers_grow(struct mm_buffers *buffers, size_t bytes, size_t bytes_max,
                               struct mm_buffer *buffer, struct mm_error *error);

/* Leaves a buffer that has grown its first `bytes`; the pool keeps the rest. Any thread, one at a time for a
 * buffer. */
void mm_buffers_shrink(struct mm_buffers *buffers, struct mm_buffer *buffer, size_t bytes);

/* Ends the growth of a buffer: if devices want pages locked, locks all its pages, and what the pool has kept
 * of them. Pages are locked and unlocked together alone. Any thread, one at a time for a buffer. */
void mm_buffers_settle(struct mm_buffers *buffers, struct mm_buffer *buffer);

/* Takes the memory back and clears *buffer; does nothing if it holds nothing. Any thread. */
void mm_buffers_release(struct mm_buffers *buffers, struct mm_buffer *buffer);

/* Returns to the system what has been kept unused since before then (mm_clock_ns). Any thread; takes
 * milliseconds. */
void mm_buffers_trim(struct mm_buffers *buffers, uint64_t before_ns);

/* Bytes that are kept for later. Any thread. */
size_t mm_buffers_kept(const struct mm_buffers *buffers);
