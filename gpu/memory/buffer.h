/* Host memory for bodies and results. The pool keeps the memory of released buffers for later buffers of
 * similar size, because kept pages are already mapped and locked. budget.h limits each request. */
#pragma once

#include "gpu/memory/pages.h"
#include "gpu/status.h"

#include <stddef.h>

struct mm_block;

/* A buffer. `data` is aligned to 64 bytes. It is NULL while the buffer has no memory. */
struct mm_buffer {
    void *data;
    size_t bytes;           /* size that the caller asked for */
    bool is_locked;         /* pages are locked, so devices copy fast and can access them */
    struct mm_block *block; /* for the pool; NULL if the memory is not from a block */
};

struct mm_buffers;

/* Opens a pool. It keeps no memory beyond bytes_max of used and kept memory. NULL if memory runs out. */
struct mm_buffers *mm_buffers_open(size_t bytes_max);

/* Frees the pool. First release all buffers. NULL is allowed. */
void mm_buffers_close(struct mm_buffers *buffers);

/* Locks the pages of buffers that are acquired after this call, except memory of the C library. *locking
 * outlives the pool. Call this once. Any thread. */
void mm_buffers_lock(struct mm_buffers *buffers, const struct mm_page_locking *locking);

/* Acquires `bytes` of undefined contents. If the system is out of memory, MM_BUSY if other buffers may
 * release some, otherwise MM_INTERNAL. *buffer is untouched on failure. Any thread. */
enum mm_status mm_buffers_acquire(struct mm_buffers *buffers, size_t bytes, struct mm_buffer *buffer,
                                  struct mm_error *error);

/* Grows *buffer to `bytes`. Its data does not move. Before the first call the buffer has no memory. bytes_max
 * is the most that the buffer may grow to. It must be equal in all calls, because the first call reserves
 * address space for it. MM_BUSY or MM_INTERNAL if memory or address space runs out; *buffer is untouched
 * then. Any thread, one at a time for a buffer. */
enum mm_status mm_buffers_grow(struct mm_buffers *buffers, size_t bytes, size_t bytes_max,
                               struct mm_buffer *buffer, struct mm_error *error);

/* Shrinks a grown buffer to its first `bytes`. Any thread, one at a time for a buffer. */
void mm_buffers_shrink(struct mm_buffers *buffers, struct mm_buffer *buffer, size_t bytes);

/* Ends the growth of a buffer. If devices use locked pages, locks all usable pages of the buffer's block. Any
 * thread, one at a time for a buffer. */
void mm_buffers_settle(struct mm_buffers *buffers, struct mm_buffer *buffer);

/* Releases the memory, and clears *buffer. Does nothing if the buffer has no memory. Any thread. */
void mm_buffers_release(struct mm_buffers *buffers, struct mm_buffer *buffer);

/* Returns memory that was kept before before_ns to the system. May take milliseconds. Any thread. */
void mm_buffers_trim(struct mm_buffers *buffers, uint64_t before_ns);

/* Returns the bytes that the pool keeps. Any thread. */
size_t mm_buffers_kept(const struct mm_buffers *buffers);
