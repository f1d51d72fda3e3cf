/* The pool of host memory. Small buffers come from an arena. Each large buffer has a block with its own
 * mapping. A block is lent to its buffer. When the buffer is released, the pool keeps the block for a later
 * buffer. The pool also keeps the end of a block that a growing buffer does not use yet. If the pool exceeds
 * its limit, the pool returns kept memory to the system, the oldest first. */
#include "gpu/memory/buffer.h"

#include "gpu/memory/arena.h"
#include "gpu/clock.h"
#include "gpu/matrix/matrix.h"
#include "gpu/mutex.h"
#include "gpu/memory/kept.h"

#include <assert.h>
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>

enum { ALIGNMENT = 64, ARENA_BYTES = 16 << 20 };

/* Locked blocks can be larger than their buffers. All this excess is at most 1/EXCESS_PART of the limit. */
enum { EXCESS_PART = 32 };

/* The least address space that acquire_growing tries to get. */
enum { GROWING_MIN = 64 << 20 };

struct mm_buffers {
    size_t bytes_max;
    size_t held_bytes; /* lent and kept bytes, without free memory of the arena; __atomic access only */
    struct mm_arena *arena;
    const struct mm_page_locking *locking; /* NULL if pages are not locked; __atomic access only */
    pthread_mutex_t mutex;                 /* guards `kept`, its blocks and excess_bytes */
    struct mm_kept kept;
    size_t excess_bytes; /* sum of the lent blocks' excess_bytes */
};

struct mm_buffers *mm_buffers_open(size_t bytes_max) {
    struct mm_buffers *buffers = calloc(1, sizeof *buffers);
    if (buffers == NULL)
        return NULL;
    buffers->bytes_max = bytes_max;
    buffers->arena = mm_arena_open(ARENA_BYTES);
    if (buffers->arena == NULL) {
        free(buffers);
        return NULL;
    }
    buffers->mutex = MM_MUTEX_INITIALIZER;
    TAILQ_INIT(&buffers->kept.all);
    return buffers;
}

void mm_buffers_close(struct mm_buffers *buffers) {
    if (buffers == NULL)
        return;
    mm_buffers_trim(buffers, UINT64_MAX);
    assert(buffers->held_bytes == 0);
    mm_arena_close(buffers->arena);
    pthread_mutex_destroy(&buffers->mutex);
    free(buffers);
}

void mm_buffers_lock(struct mm_buffers *buffers, const struct mm_page_locking *locking) {
    mm_buffers_trim(buffers, UINT64_MAX);
    mm_arena_lock(buffers->arena, locking);
    __atomic_store_n(&buffers->locking, locking, __ATOMIC_RELEASE);
}

static void unlock_pages(const struct mm_buffers *buffers, struct mm_block *block) {
    if (block->is_locked)
        __atomic_load_n(&buffers->locking, __ATOMIC_ACQUIRE)->unlock(block->memory);
    block->is_locked = false;
}

/* Returns a block to the system. The caller has removed the block from the lists and from held_bytes. */
static void drop(struct mm_buffers *buffers, struct mm_block *block) {
    unlock_pages(buffers, block);
    ASAN_UNPOISON_MEMORY_REGION(block->memory, block->open_bytes);
    mm_pages_unmap(block->memory, block->bytes);
    free(block);
}

/* Gives the system back all bytes of a block that the buffer does not use. The caller holds the mutex. */
static void drop_rest(struct mm_buffers *buffers, struct mm_block *block) {
    unlock_pages(buffers, block);
    ASAN_UNPOISON_MEMORY_REGION(block->memory, block->open_bytes);
    mm_pages_close(block->memory, block->lent_bytes, block->open_bytes);
    block->open_bytes = block->lent_bytes;
}

static void uncount(struct mm_buffers *buffers, size_t bytes) {
    (void)__atomic_sub_fetch(&buffers->held_bytes, bytes, __ATOMIC_RELAXED);
}

/* Removes a block from the lists. If the block is lent, drops its kept end. The caller holds the mutex. */
static void drop_kept(struct mm_buffers *buffers, struct mm_block *block) {
    mm_kept_remove(&buffers->kept, block);
    uncount(buffers, block->open_bytes - block->lent_bytes);
    if (block->is_lent)
        drop_rest(buffers, block);
}

/* Drops the oldest kept memory, if it was kept before before_ns. Otherwise returns false. */
static bool drop_oldest(struct mm_buffers *buffers, uint64_t before_ns) {
    pthread_mutex_lock(&buffers->mutex);
    struct mm_block *block = TAILQ_FIRST(&buffers->kept.all);
    if (block != NULL && block->since_ns >= before_ns)
        block = NULL;
    const bool is_idle = block != NULL && !block->is_lent;
    if (block != NULL)
        drop_kept(buffers, block);
    pthread_mutex_unlock(&buffers->mutex);
    if (is_idle)
        drop(buffers, block);
    return block != NULL;
}

void mm_buffers_trim(struct mm_buffers *buffers, uint64_t before_ns) {
    while (drop_oldest(buffers, before_ns))
        continue;
}

static void drop_excess(struct mm_buffers *buffers) {
    while (__atomic_load_n(&buffers->held_bytes, __ATOMIC_RELAXED) > buffers->bytes_max &&
           drop_oldest(buffers, UINT64_MAX))
        continue;
}

/* Adds the bytes of a buffer to held_bytes. Drops kept memory if the pool exceeds its limit. */
static void count(struct mm_buffers *buffers, size_t bytes) {
    __atomic_add_fetch(&buffers->held_bytes, bytes, __ATOMIC_RELAXED);
    drop_excess(buffers);
}

static bool locks_pages(const struct mm_buffers *buffers) {
    return __atomic_load_n(&buffers->locking, __ATOMIC_ACQUIRE) != NULL;
}

/* Allocates memory from the arena, or from the C library if the arena is full. But if pages must be locked,
 * never uses the C library, because its pages cannot be locked. Returns NULL if there is no memory. */
static void *allocate_small(struct mm_buffers *buffers, size_t bytes, struct mm_buffer *buffer) {
    *buffer = (struct mm_buffer){.data = mm_arena_acquire(buffers->arena, bytes), .bytes = bytes};
    buffer->is_locked = buffer->data != NULL && mm_arena_is_locked(buffers->arena);
    if (buffer->data == NULL && !locks_pages(buffers))
        buffer->data = aligned_alloc(ALIGNMENT, mm_size_round_up(bytes, ALIGNMENT));
    return buffer->data;
}

static enum mm_status fail_memory(size_t bytes, struct mm_error *error) {
    return mm_fail(error, MM_INTERNAL, "the system has no memory for %zu bytes", bytes);
}

/* Fails with MM_BUSY if other buffers will release memory, and otherwise with MM_INTERNAL. */
static enum mm_status fail_pages(const struct mm_buffers *buffers, size_t bytes, struct mm_error *error) {
    const size_t held_bytes = __atomic_load_n(&buffers->held_bytes, __ATOMIC_RELAXED);
    if (held_bytes <= mm_buffers_kept(buffers))
        return fail_memory(bytes, error);
    return mm_fail_busy(error, MM_BUSY_SYSTEM_MEMORY, "the system has no memory for %zu bytes", bytes);
}

/* Makes a block of new address space, without usable bytes. */
static enum mm_status reserve_block(struct mm_buffers *buffers, size_t bytes, struct mm_block **block,
                                    struct mm_error *error) {
    struct mm_block *reserved = *block = malloc(sizeof *reserved);
    if (reserved == NULL)
        return fail_memory(bytes, error);
    *reserved = (struct mm_block){.memory = mm_pages_reserve(bytes), .bytes = bytes, .is_lent = true};
    if (reserved->memory == NULL) { /* perhaps there are too many mappings, so unmap kept blocks */
        mm_buffers_trim(buffers, UINT64_MAX);
        reserved->memory = mm_pages_reserve(bytes);
    }
    if (reserved->memory != NULL)
        return MM_OK;
    free(reserved);
    *block = NULL;
    return fail_pages(buffers, bytes, error);
}

/* Acquires a block with `bytes` of address space, or up to a quarter more. If `all`, lends all usable bytes
 * of the block. Otherwise lends no bytes yet. */
static enum mm_status acquire_block(struct mm_buffers *buffers, size_t bytes, bool all,
                                    struct mm_block **block, struct mm_error *error) {
    pthread_mutex_lock(&buffers->mutex);
    struct mm_block *kept = mm_kept_acquire(&buffers->kept, bytes);
    if (kept != NULL) {
        kept->is_lent = true;
        kept->lent_bytes = all ? kept->open_bytes : 0;
        if (!all)
            mm_kept_add(&buffers->kept, kept, mm_clock_ns());
    }
    pthread_mutex_unlock(&buffers->mutex);
    *block = kept;
    return kept != NULL ? MM_OK : reserve_block(buffers, bytes, block, error);
}

/* Lends only the first `bytes` of a block to its buffer. The pool keeps the other usable bytes. */
static void lend_first(struct mm_buffers *buffers, struct mm_block *block, size_t bytes) {
    pthread_mutex_lock(&buffers->mutex);
    if (block->lent_bytes < block->open_bytes)
        mm_kept_remove(&buffers->kept, block);
    block->lent_bytes = mm_size_min(bytes, block->open_bytes);
    if (block->lent_bytes < block->open_bytes)
        mm_kept_add(&buffers->kept, block, mm_clock_ns());
    pthread_mutex_unlock(&buffers->mutex);
}

/* Lends at least the first `bytes` of a block. If fewer bytes are usable, makes more bytes usable. Even on
 * failure, more bytes can be lent than before. */
static enum mm_status extend(struct mm_buffers *buffers, struct mm_block *block, size_t bytes,
                             struct mm_error *error) {
    if (bytes > block->lent_bytes)
        lend_first(buffers, block, bytes);
    if (bytes <= block->lent_bytes)
        return MM_OK;
    if (bytes > block->bytes) /* acquire_growing got too little address space */
        return fail_pages(buffers, bytes, error);
    const size_t more = bytes - block->lent_bytes;
    count(buffers, more);
    unlock_pages(buffers, block);
    if (!mm_pages_open(block->memory, block->open_bytes, bytes)) {
        uncount(buffers, more);
        return fail_pages(buffers, bytes, error);
    }
    block->open_bytes = block->lent_bytes = bytes;
    return MM_OK;
}

/* Acquires a block for a buffer that can grow to `bytes_max`. If the system has too little address space,
 * tries half as much, again and again. */
static enum mm_status acquire_growing(struct mm_buffers *buffers, size_t bytes, size_t bytes_max,
                                      struct mm_block **block, struct mm_error *error) {
    const size_t least = bytes > GROWING_MIN ? bytes : GROWING_MIN;
    enum mm_status status = acquire_block(buffers, bytes_max, false, block, NULL);
    for (size_t tried = bytes_max / 2; *block == NULL && tried >= least; tried /= 2)
        status = acquire_block(buffers, tried, false, block, NULL);
    return status == MM_OK ? MM_OK : fail_pages(buffers, bytes, error);
}

/* Keeps a block whose buffer was released. Drops the block if it has no usable bytes. */
static void keep_or_drop(struct mm_buffers *buffers, struct mm_block *block) {
    pthread_mutex_lock(&buffers->mutex);
    if (block->open_bytes > block->lent_bytes)
        mm_kept_remove(&buffers->kept, block);
    block->is_lent = false;
    block->lent_bytes = 0;
    buffers->excess_bytes -= block->excess_bytes;
    block->excess_bytes = 0;
    ASAN_POISON_MEMORY_REGION(block->memory, block->open_bytes);
    const bool is_empty = block->open_bytes == 0;
    if (!is_empty)
        mm_kept_add(&buffers->kept, block, mm_clock_ns());
    pthread_mutex_unlock(&buffers->mutex);
    if (is_empty)
        drop(buffers, block);
    drop_excess(buffers);
}

static void lend(struct mm_block *block, size_t bytes, struct mm_buffer *buffer) {
    ASAN_UNPOISON_MEMORY_REGION(block->memory, block->lent_bytes);
    *buffer = (struct mm_buffer){.data = block->memory, .bytes = bytes, .block = block};
}

void mm_buffers_shrink(struct mm_buffers *buffers, struct mm_buffer *buffer, size_t bytes) {
    if (buffer->block == NULL || bytes >= buffer->bytes)
        return;
    lend_first(buffers, buffer->block, mm_pages_round_up(bytes));
    lend(buffer->block, bytes, buffer);
}

/* Lends all usable pages of a block, because a block's pages can only be locked together. If the excess of
 * all blocks would become too large, drops the pages that this buffer does not need. */
static void lend_all(struct mm_buffers *buffers, struct mm_block *block, size_t bytes) {
    const size_t needed = mm_size_min(mm_pages_round_up(bytes), block->open_bytes);
    lend_first(buffers, block, needed);
    pthread_mutex_lock(&buffers->mutex);
    const size_t excess_bytes = block->open_bytes - needed;
    buffers->excess_bytes -= block->excess_bytes;
    block->excess_bytes = 0;
    if (excess_bytes > 0 && buffers->excess_bytes + excess_bytes > buffers->bytes_max / EXCESS_PART) {
        drop_kept(buffers, block);
    } else if (excess_bytes > 0) {
        mm_kept_remove(&buffers->kept, block);
        block->lent_bytes = block->open_bytes;
        buffers->excess_bytes += block->excess_bytes = excess_bytes;
    }
    pthread_mutex_unlock(&buffers->mutex);
}

void mm_buffers_settle(struct mm_buffers *buffers, struct mm_buffer *buffer) {
    const struct mm_page_locking *locking = __atomic_load_n(&buffers->locking, __ATOMIC_ACQUIRE);
    struct mm_block *block = buffer->block;
    if (block == NULL || locking == NULL)
        return;
    lend_all(buffers, block, buffer->bytes);
    if (!block->is_locked)
        block->is_locked = locking->lock(block->memory, block->open_bytes);
    buffer->is_locked = block->is_locked;
}

static enum mm_status acquire_pages(struct mm_buffers *buffers, size_t bytes, struct mm_buffer *buffer,
                                    struct mm_error *error) {
    struct mm_block *block;
    enum mm_status status = acquire_block(buffers, bytes, true, &block, error);
    if (block == NULL)
        return status;
    status = extend(buffers, block, bytes, error);
    if (status != MM_OK) {
        keep_or_drop(buffers, block);
        return status;
    }
    if (!locks_pages(buffers))
        lend_first(buffers, block, bytes);
    lend(block, bytes, buffer);
    mm_buffers_settle(buffers, buffer);
    return MM_OK;
}

enum mm_status mm_buffers_acquire(struct mm_buffers *buffers, size_t bytes, struct mm_buffer *buffer,
                                  struct mm_error *error) {
    if (bytes == 0)
        bytes = 1; /* so data is not NULL */
    if (bytes > MM_ARENA_BLOCK_MAX)
        return acquire_pages(buffers, bytes, buffer, error);
    struct mm_buffer small;
    if (allocate_small(buffers, bytes, &small) == NULL)
        return locks_pages(buffers) ? acquire_pages(buffers, bytes, buffer, error)
                                    : fail_memory(bytes, error);
    count(buffers, bytes);
    *buffer = small;
    return MM_OK;
}

enum mm_status mm_buffers_grow(struct mm_buffers *buffers, size_t bytes, size_t bytes_max,
                               struct mm_buffer *buffer, struct mm_error *error) {
    assert(bytes <= bytes_max);
    if (bytes <= buffer->bytes)
        return MM_OK;
    if (buffer->data == NULL && bytes == bytes_max && bytes <= MM_ARENA_BLOCK_MAX)
        return mm_buffers_acquire(buffers, bytes, buffer, error);
    struct mm_block *block = buffer->block;
    enum mm_status status = MM_OK;
    if (block == NULL)
        status = acquire_growing(buffers, bytes, bytes_max, &block, error);
    if (block == NULL)
        return status;
    status = extend(buffers, block, bytes, error);
    if (status == MM_OK)
        lend(block, bytes, buffer);
    else if (buffer->data == NULL)
        keep_or_drop(buffers, block);
    return status;
}

static void release_small(struct mm_buffers *buffers, const struct mm_buffer *buffer) {
    if (mm_arena_has(buffers->arena, buffer->data))
        mm_arena_free(buffers->arena, buffer->data, buffer->bytes);
    else
        free(buffer->data);
    uncount(buffers, buffer->bytes);
}

void mm_buffers_release(struct mm_buffers *buffers, struct mm_buffer *buffer) {
    struct mm_block *block = buffer->block;
    if (buffer->data == NULL)
        return;
    if (block == NULL)
        release_small(buffers, buffer);
    else
        keep_or_drop(buffers, block);
    *buffer = (struct mm_buffer){0};
}

size_t mm_buffers_kept(const struct mm_buffers *buffers) {
    return __atomic_load_n(&buffers->kept.bytes, __ATOMIC_RELAXED);
}
