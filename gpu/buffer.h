/* Host memory for bodies and results, counted against one budget. It is where pooling and pinning
 * live: callers see only acquire and release. */
#ifndef MM_GPU_BUFFER_H
#define MM_GPU_BUFFER_H

#include "gpu/status.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A piece of memory on loan. data is aligned to 64 bytes; NULL where nothing is held. */
struct mm_buffer {
    void *data;
    size_t bytes; /* usable, at least what was asked for */
};

struct mm_buffers;

/* Makes a pool that lends at most budget_bytes at one time. NULL when memory is out. */
struct mm_buffers *mm_buffers_open(size_t budget_bytes);

/* All buffers have been released before. NULL is allowed. */
void mm_buffers_close(struct mm_buffers *buffers);

/* Lends at least `bytes` of undefined contents. MM_TOO_LARGE where the whole budget would not do,
 * MM_BUSY where it is taken now, MM_INTERNAL where the system has no memory. *buffer is untouched
 * on failure. Any thread. */
enum mm_status mm_buffers_acquire(struct mm_buffers *buffers, size_t bytes, struct mm_buffer *buffer,
                                  struct mm_error *error);

/* Takes it back and clears *buffer; nothing happens where it holds nothing. Any thread. */
void mm_buffers_release(struct mm_buffers *buffers, struct mm_buffer *buffer);

/* Counts `bytes` against the budget without lending memory, for what a library takes on our behalf;
 * failures as above. unreserve gives back what was reserved. Any thread. */
enum mm_status mm_buffers_reserve(struct mm_buffers *buffers, size_t bytes, struct mm_error *error);
void mm_buffers_unreserve(struct mm_buffers *buffers, size_t bytes);

/* Bytes on loan or reserved, and the budget. Any thread. */
size_t mm_buffers_used(const struct mm_buffers *buffers);
size_t mm_buffers_budget(const struct mm_buffers *buffers);

#ifdef __cplusplus
}
#endif
#endif
