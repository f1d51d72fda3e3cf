/* The pool: small buffers come from an arena, large ones are mapped one by one. A mapped piece is kept when
 * it is released, until the pool would pass its limit: then the piece that was kept longest goes first. The
 * part of a piece that a growing buffer has not reached is kept in the same way. */
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

/* The arena is not counted, as what is lent of it is; it is what a pool keeps when it is idle. */
enum { ALIGNMENT = 64, ARENA_BYTES = 16 << 20 };

/* Locked pieces may be larger than their buffers by this part of the limit, all together. */
enum { EXCESS_PART = 32 };

/* The least address space that a growing buffer is content with. */
enum { ROOM_MIN = 64 << 20 };

struct mm_buffers {
    size_t bytes_max;
    size_t
        held_bytes; /* lent or kept; what is kept is dropped to stay below bytes_max. __atomic access only */
    struct mm_arena *arena;
    const struct mm_page_locking *locking; /* NULL: none. __atomic access only */
    pthread_mutex_t mutex;                 /* guards what follows, and the pieces that are kept */
    struct mm_kept kept;
    size_t excess_bytes; /* of locked pieces that are lent, beyond what their buffers need */
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
    mm_mutex_init(&buffers->mutex);
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

/* --- what is kept -------------------------------------------------------------------------------- */

static void unlock_pages(const struct mm_buffers *buffers, struct mm_piece *piece) {
    if (piece->is_locked)
        __atomic_load_n(&buffers->locking, __ATOMIC_ACQUIRE)->unlock(piece->memory);
    piece->is_locked = false;
}

/* Gives a piece back to the system that is in no list and counts no more. */
static void drop(struct mm_buffers *buffers, struct mm_piece *piece) {
    unlock_pages(buffers, piece);
    ASAN_UNPOISON_MEMORY_REGION(piece->memory, piece->open_bytes);
    mm_pages_unmap(piece->memory, piece->bytes);
    free(piece);
}

/* The same for the part that its buffer has not reached. With the mutex, since the buffer may grow. */
static void drop_rest(struct mm_buffers *buffers, struct mm_piece *piece) {
    unlock_pages(buffers, piece);
    ASAN_UNPOISON_MEMORY_REGION(piece->memory, piece->open_bytes);
    mm_pages_close(piece->memory, piece->lent_bytes, piece->open_bytes);
    piece->open_bytes = piece->lent_bytes;
}

static void uncount(struct mm_buffers *buffers, size_t bytes) {
    (void)__atomic_sub_fetch(&buffers->held_bytes, bytes, __ATOMIC_RELAXED);
}

/* Takes a kept piece off its lists; if it is lent, drops what is kept of it. With the mutex. */
static void drop_kept(struct mm_buffers *buffers, struct mm_piece *piece) {
    mm_kept_remove(&buffers->kept, piece);
    uncount(buffers, piece->open_bytes - piece->lent_bytes);
    if (piece->is_lent)
        drop_rest(buffers, piece);
}

/* Drops what has been kept longest, since before then; false if there is none. */
static bool drop_oldest(struct mm_buffers *buffers, uint64_t before_ns) {
    pthread_mutex_lock(&buffers->mutex);
    struct mm_piece *piece = TAILQ_FIRST(&buffers->kept.all);
    if (piece != NULL && piece->since_ns >= before_ns)
        piece = NULL;
    const bool is_idle = piece != NULL && !piece->is_lent;
    if (piece != NULL)
        drop_kept(buffers, piece);
    pthread_mutex_unlock(&buffers->mutex);
    if (is_idle)
        drop(buffers, piece);
    return piece != NULL;
}

void mm_buffers_trim(struct mm_buffers *buffers, uint64_t before_ns) {
    while (drop_oldest(buffers, before_ns))
        continue;
}

/* Drops what is kept while the pool is past its limit. */
static void keep_to_limit(struct mm_buffers *buffers) {
    while (__atomic_load_n(&buffers->held_bytes, __ATOMIC_RELAXED) > buffers->bytes_max &&
           drop_oldest(buffers, UINT64_MAX))
        continue;
}

/* Counts `bytes` that are about to be lent. */
static void count(struct mm_buffers *buffers, size_t bytes) {
    __atomic_add_fetch(&buffers->held_bytes, bytes, __ATOMIC_RELAXED);
    keep_to_limit(buffers);
}

/* --- lending ------------------------------------------------------------------------------------- */

static bool locks_pages(const struct mm_buffers *buffers) {
    return __atomic_load_n(&buffers->locking, __ATOMIC_ACQUIRE) != NULL;
}

/* Memory from the arena; NULL if there is none. If the arena is full, the C library has it, unless pages are
 * to be locked. */
static void *allocate_small(struct mm_buffers *buffers, size_t bytes, struct mm_buffer *buffer) {
    *buffer = (struct mm_buffer){.data = mm_arena_take(buffers->arena, bytes), .bytes = bytes};
    buffer->is_locked = buffer->data != NULL && mm_arena_is_locked(buffers->arena);
    if (buffer->data == NULL && !locks_pages(buffers))
        buffer->data = aligned_alloc(ALIGNMENT, mm_size_round_up(bytes, ALIGNMENT));
    return buffer->data;
}

static enum mm_status fail_memory(size_t bytes, struct mm_error *error) {
    return mm_fail(error, MM_INTERNAL, "the system has no memory for %zu bytes", bytes);
}

/* The system refuses pages or address space: MM_BUSY if others hold some, which they may release. */
static enum mm_status fail_pages(const struct mm_buffers *buffers, size_t bytes, struct mm_error *error) {
    const size_t held_bytes = __atomic_load_n(&buffers->held_bytes, __ATOMIC_RELAXED);
    return mm_fail(error, held_bytes > mm_buffers_kept(buffers) ? MM_BUSY : MM_INTERNAL,
                   "the system has no memory for %zu bytes", bytes);
}

/* A piece of new address space, of which nothing is open; or NULL. */
static enum mm_status reserve_piece(struct mm_buffers *buffers, size_t bytes, struct mm_piece **piece,
                                    struct mm_error *error) {
    struct mm_piece *reserved = *piece = malloc(sizeof *reserved);
    if (reserved == NULL)
        return fail_memory(bytes, error);
    *reserved = (struct mm_piece){.memory = mm_pages_reserve(bytes), .bytes = bytes, .is_lent = true};
    if (reserved->memory == NULL) { /* or no more mappings, of which what is kept has some */
        mm_buffers_trim(buffers, UINT64_MAX);
        reserved->memory = mm_pages_reserve(bytes);
    }
    if (reserved->memory != NULL)
        return MM_OK;
    free(reserved);
    *piece = NULL;
    return fail_pages(buffers, bytes, error);
}

/* A piece of `bytes` of address space, or up to a quarter more, to be lent: all that is open of it, or
 * nothing yet. */
static enum mm_status take_piece(struct mm_buffers *buffers, size_t bytes, bool all, struct mm_piece **piece,
                                 struct mm_error *error) {
    pthread_mutex_lock(&buffers->mutex);
    struct mm_piece *kept = mm_kept_take(&buffers->kept, bytes);
    if (kept != NULL) {
        kept->is_lent = true;
        kept->lent_bytes = all ? kept->open_bytes : 0;
        if (!all)
            mm_kept_add(&buffers->kept, kept, mm_clock_ns());
    }
    pthread_mutex_unlock(&buffers->mutex);
    *piece = kept;
    return kept != NULL ? MM_OK : reserve_piece(buffers, bytes, piece, error);
}

/* Lends what is open of the first `bytes` of a piece that is lent, and keeps the rest. */
static void lend_first(struct mm_buffers *buffers, struct mm_piece *piece, size_t bytes) {
    pthread_mutex_lock(&buffers->mutex);
    if (piece->lent_bytes < piece->open_bytes)
        mm_kept_remove(&buffers->kept, piece);
    piece->lent_bytes = mm_size_min(bytes, piece->open_bytes);
    if (piece->lent_bytes < piece->open_bytes)
        mm_kept_add(&buffers->kept, piece, mm_clock_ns());
    pthread_mutex_unlock(&buffers->mutex);
}

/* Lends at least the first `bytes` of a piece: what is kept of them, and new pages. On failure more may be
 * lent than before. */
static enum mm_status extend(struct mm_buffers *buffers, struct mm_piece *piece, size_t bytes,
                             struct mm_error *error) {
    if (bytes > piece->lent_bytes)
        lend_first(buffers, piece, bytes);
    if (bytes <= piece->lent_bytes)
        return MM_OK;
    if (bytes > piece->bytes) /* there was less address space than the buffer may grow to */
        return fail_pages(buffers, bytes, error);
    const size_t more = bytes - piece->lent_bytes;
    count(buffers, more);
    unlock_pages(buffers, piece);
    if (!mm_pages_open(piece->memory, piece->open_bytes, bytes)) {
        uncount(buffers, more);
        return fail_pages(buffers, bytes, error);
    }
    piece->open_bytes = piece->lent_bytes = bytes;
    return MM_OK;
}

/* A piece that can grow to `bytes_max`; or, if the system has less address space, to half of that, a
 * quarter and so on. */
static enum mm_status take_room(struct mm_buffers *buffers, size_t bytes, size_t bytes_max,
                                struct mm_piece **piece, struct mm_error *error) {
    const size_t least = bytes > ROOM_MIN ? bytes : ROOM_MIN;
    enum mm_status status = take_piece(buffers, bytes_max, false, piece, NULL);
    for (size_t room = bytes_max / 2; *piece == NULL && room >= least; room /= 2)
        status = take_piece(buffers, room, false, piece, NULL);
    return status == MM_OK ? MM_OK : fail_pages(buffers, bytes, error);
}

/* Keeps a piece that was lent, or drops it if it has no memory. */
static void take_back(struct mm_buffers *buffers, struct mm_piece *piece) {
    pthread_mutex_lock(&buffers->mutex);
    if (piece->open_bytes > piece->lent_bytes)
        mm_kept_remove(&buffers->kept, piece);
    piece->is_lent = false;
    piece->lent_bytes = 0;
    buffers->excess_bytes -= piece->excess_bytes;
    piece->excess_bytes = 0;
    ASAN_POISON_MEMORY_REGION(piece->memory, piece->open_bytes);
    const bool is_empty = piece->open_bytes == 0;
    if (!is_empty)
        mm_kept_add(&buffers->kept, piece, mm_clock_ns());
    pthread_mutex_unlock(&buffers->mutex);
    if (is_empty)
        drop(buffers, piece);
    keep_to_limit(buffers);
}

static void lend(struct mm_piece *piece, size_t bytes, struct mm_buffer *buffer) {
    ASAN_UNPOISON_MEMORY_REGION(piece->memory, piece->lent_bytes);
    *buffer = (struct mm_buffer){.data = piece->memory, .bytes = bytes, .piece = piece};
}

void mm_buffers_shrink(struct mm_buffers *buffers, struct mm_buffer *buffer, size_t bytes) {
    if (buffer->piece == NULL || bytes >= buffer->bytes)
        return;
    lend_first(buffers, buffer->piece, mm_pages_round_up(bytes));
    lend(buffer->piece, bytes, buffer);
}

/* Lends all pages of a piece, since they are locked together. If pieces are too large for their buffers by
 * more than a part of the limit in all, drops the pages that this buffer does not need. */
static void lend_all(struct mm_buffers *buffers, struct mm_piece *piece, size_t bytes) {
    const size_t needed = mm_size_min(mm_pages_round_up(bytes), piece->open_bytes);
    lend_first(buffers, piece, needed);
    pthread_mutex_lock(&buffers->mutex);
    const size_t excess_bytes = piece->open_bytes - needed;
    buffers->excess_bytes -= piece->excess_bytes;
    piece->excess_bytes = 0;
    if (excess_bytes > 0 && buffers->excess_bytes + excess_bytes > buffers->bytes_max / EXCESS_PART) {
        drop_kept(buffers, piece);
    } else if (excess_bytes > 0) {
        mm_kept_remove(&buffers->kept, piece);
        piece->lent_bytes = piece->open_bytes;
        buffers->excess_bytes += piece->excess_bytes = excess_bytes;
    }
    pthread_mutex_unlock(&buffers->mutex);
}

void mm_buffers_settle(struct mm_buffers *buffers, struct mm_buffer *buffer) {
    const struct mm_page_locking *locking = __atomic_load_n(&buffers->locking, __ATOMIC_ACQUIRE);
    struct mm_piece *piece = buffer->piece;
    if (piece == NULL || locking == NULL)
        return;
    lend_all(buffers, piece, buffer->bytes);
    if (!piece->is_locked)
        piece->is_locked = locking->lock(piece->memory, piece->open_bytes);
    buffer->is_locked = piece->is_locked;
}

static enum mm_status acquire_pages(struct mm_buffers *buffers, size_t bytes, struct mm_buffer *buffer,
                                    struct mm_error *error) {
    struct mm_piece *piece;
    enum mm_status status = take_piece(buffers, bytes, true, &piece, error);
    if (piece == NULL)
        return status;
    status = extend(buffers, piece, bytes, error);
    if (status != MM_OK) {
        take_back(buffers, piece);
        return status;
    }
    if (!locks_pages(buffers))
        lend_first(buffers, piece, bytes);
    lend(piece, bytes, buffer);
    mm_buffers_settle(buffers, buffer);
    return MM_OK;
}

enum mm_status mm_buffers_acquire(struct mm_buffers *buffers, size_t bytes, struct mm_buffer *buffer,
                                  struct mm_error *error) {
    if (bytes == 0)
        bytes = 1; /* so that data is never NULL while a buffer is held */
    if (bytes > MM_ARENA_PIECE_MAX)
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
    if (buffer->data == NULL && bytes == bytes_max && bytes <= MM_ARENA_PIECE_MAX)
        return mm_buffers_acquire(buffers, bytes, buffer, error);
    struct mm_piece *piece = buffer->piece;
    enum mm_status status = MM_OK;
    if (piece == NULL)
        status = take_room(buffers, bytes, bytes_max, &piece, error);
    if (piece == NULL)
        return status;
    status = extend(buffers, piece, bytes, error);
    if (status == MM_OK)
        lend(piece, bytes, buffer);
    else if (buffer->data == NULL)
        take_back(buffers, piece);
    return status;
}

static void release_small(struct mm_buffers *buffers, const struct mm_buffer *buffer) {
    if (mm_arena_has(buffers->arena, buffer->data))
        mm_arena_give(buffers->arena, buffer->data, buffer->bytes);
    else
        free(buffer->data);
    uncount(buffers, buffer->bytes);
}

void mm_buffers_release(struct mm_buffers *buffers, struct mm_buffer *buffer) {
    struct mm_piece *piece = buffer->piece;
    if (buffer->data == NULL)
        return;
    if (piece == NULL)
        release_small(buffers, buffer);
    else
        take_back(buffers, piece);
    *buffer = (struct mm_buffer){0};
}

size_t mm_buffers_kept(const struct mm_buffers *buffers) {
    return __atomic_load_n(&buffers->kept.bytes, __ATOMIC_RELAXED);
}
