/* Host memory for bodies and results. The pool keeps the memory of released buffers for later buffers of
 * similar size, because kept pages are already mapped and locked. budget.h limits each request. */
#pragma once

#include "gpu/memory/pages.h"
#include "gpu/status.h"

#include <stddef.h>

struct mm_block;

/* A buffer. `data` is aligned to 64 bytes, and is NULL if the buffer has no memory. */
struct mm_buffer {
    void *data;
    size_t bytes;           /* the size that the caller asked for */
    bool is_locked;         /* the pages are locked, so devices can access the memory and copy fast */
    struct mm_block *block; /* only the pool uses this; NULL for a small buffer */
};

struct mm_buffers;

/* Opens a pool. If used and kept memory together exceed bytes_max, the pool returns kept memory to the
 * system. Returns NULL if memory runs out. */
struct mm_buffers *mm_buffers_open(size_t bytes_max);

/* Frees the pool. The caller must first release all buffers. NULL is allowed. */
void mm_buffers_close(struct mm_buffers *buffers);

/* Makes the pool lock the pages of buffers that are acquired after this call. *locking must outlive the pool.
 * Call this at most once. Any thread. */
void mm_buffers_lock(struct mm_buffers *buffers, const struct mm_page_locking *locking);

/* Acquires `bytes` of undefined contents. If the system is out of memory, fails with MM_BUSY if other buffers
 * have memory, and with MM_INTERNAL otherwise. *buffer is untouched on failure. Any thread. */
enum mm_status mm_buffers_acquire(struct mm_buffers *buffers, size_t bytes, struct mm_buffer *buffer,
                                  struct mm_error *error);

/* Grows *buffer to `bytes`, without moving the data. At the first call, the buffer has no memory, and
 * bytes_max of address space are reserved. So bytes_max must be equal in all calls. MM_BUSY or MM_INTERNAL if
 * memory or address space runs out; then *buffer is untouched. Any thread, one at a time for a buffer. */
enum mm_status mm_buffers_grow(struct mm_buffers *buffers, size_t bytes, size_t bytes_max,
                               struct mm_buffer *buffer, struct mm_error *error);

/* Shrinks a buffer of mm_buffers_grow to its first `bytes`. Any thread, one at a time for a buffer. */
void mm_buffers_shrink(struct mm_buffers *buffers, struct mm_buffer *buffer, size_t bytes);

/* Ends a buffer's growth. Locks its pages if mm_buffers_lock was called. Any thread, one at a time for a
 * buffer. */
void mm_buffers_settle(struct mm_buffers *buffers, struct mm_buffer *buffer);

/* Releases the memory, and clears *buffer. Does nothing if the buffer has no memory. Any thread. */
void mm_buffers_release(struct mm_buffers *buffers, struct mm_buffer *buffer);

/* Returns to the system all memory that was kept before before_ns. This can take milliseconds. Any thread. */
void mm_buffers_trim(struct mm_buffers *buffers, uint64_t before_ns);

/* Returns the bytes that the pool keeps for later buffers. Any thread. */
size_t mm_buffers_kept(const struct mm_buffers *buffers);
