/* Host memory for bodies and results. The pool keeps the memory of released buffers, warm and, if devices
 * want that, locked. It uses that memory for the next buffer of about the size. Knows no budget: budget.h
 * limits how much each request may have. */
#pragma once

#include "gpu/memory/pages.h"
#include "gpu/status.h"

#include <stddef.h>

struct mm_block;

/* A block of memory, from acquire or grow until release. data is aligned to 64 bytes; NULL: no memory. */
struct mm_buffer {
    void *data;
    size_t bytes;   /* as many as were asked for */
    bool is_locked; /* its pages are: devices copy from and to them at full speed, and may access them */
    struct mm_block *block; /* the pool's own; NULL: a small block of the arena */
};

struct mm_buffers;

/* Opens a pool. It keeps released memory while the memory in use and the kept memory are at most bytes_max
 * together. NULL if memory runs out. */
struct mm_buffers *mm_buffers_open(size_t bytes_max);

/* Frees the pool. All buffers were released before. NULL is allowed. */
void mm_buffers_close(struct mm_buffers *buffers);

/* Locks the pages of buffers that are acquired from now on, except memory of the C library. *locking outlives
 * the pool. Call it once. Any thread. */
void mm_buffers_lock(struct mm_buffers *buffers, const struct mm_page_locking *locking);

/* Acquires `bytes` of undefined contents. MM_INTERNAL if the system has no memory, or MM_BUSY if other
 * buffers have memory that may be released. *buffer is untouched on failure. Any thread. */
enum mm_status mm_buffers_acquire(struct mm_buffers *buffers, size_t bytes, struct mm_buffer *buffer,
                                  struct mm_error *error);

/* Grows *buffer, which has no memory at first, to `bytes`. Its data does not move. bytes_max, equal in each
 * call, is how far the buffer may grow: the first call reserves address space for that, or less if the system
 * has less. MM_INTERNAL or MM_BUSY as mm_buffers_acquire; *buffer is untouched then. Any thread, one at a
 * time for a buffer. */
enum mm_status mm_buffers_grow(struct mm_buffers *buffers, size_t bytes, size_t bytes_max,
                               struct mm_buffer *buffer, struct mm_error *error);

/* Shrinks a buffer that has grown to its first `bytes`. The pool keeps the rest. Any thread, one at a time
 * for a buffer.
 */
void mm_buffers_shrink(struct mm_buffers *buffers, struct mm_buffer *buffer, size_t bytes);

/* Ends the growth of a buffer. If devices want locked pages, locks all open pages of its block, because pages
 * of a block are only locked and unlocked together. Any thread, one at a time for a buffer. */
void mm_buffers_settle(struct mm_buffers *buffers, struct mm_buffer *buffer);

/* Releases the memory, and clears *buffer. Does nothing if the buffer has no memory. Any thread. */
void mm_buffers_release(struct mm_buffers *buffers, struct mm_buffer *buffer);

/* Returns memory to the system that has been kept since before before_ns (mm_clock_ns). Any thread; takes
 * milliseconds.
 */
void mm_buffers_trim(struct mm_buffers *buffers, uint64_t before_ns);

/* Bytes that the pool keeps. Any thread. */
size_t mm_buffers_kept(const struct mm_buffers *buffers);
