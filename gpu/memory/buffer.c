/* The pool behind mm_buffers: the budget, small pieces from an arena, and large ones that are mapped
 * singly and kept when they come back, until others need the budget: then the oldest go first. So does the
 * part of a kept piece that a growing buffer has not reached. */
#include "gpu/memory/buffer.h"

#include "gpu/memory/arena.h"
#include "gpu/clock.h"
#include "gpu/matrix.h"
#include "gpu/mutex.h"
#include "gpu/memory/kept.h"

#include <assert.h>
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>

/* The arena is not counted, as what is lent of it is; it is what a pool keeps when it is idle. */
enum { ALIGNMENT = 64, ARENA_BYTES = 16 << 20 };

/* A growing buffer gets as much again as it needs, within these; from STEP_MAX on whole huge pages. */
enum { STEP_MIN = 64 << 10, STEP_MAX = 2 << 20 };

/* The least address space that a growing buffer is content with. */
enum { ROOM_MIN = 64 << 20 };

struct mm_buffers {
    size_t budget_bytes;
    size_t held_bytes; /* lent, reserved or kept; never over the budget. __atomic access only */
    struct mm_arena *arena;
    const struct mm_page_locking *locking; /* NULL: none. __atomic access only */
    pthread_mutex_t mutex;                 /* guards `kept`, and the pieces that are in it */
    struct mm_kept kept;
};

struct mm_buffers *mm_buffers_open(size_t budget_bytes) {
    struct mm_buffers *buffers = calloc(1, sizeof *buffers);
    if (buffers == NULL)
        return NULL;
    buffers->budget_bytes = budget_bytes;
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

/* Drops what has been kept longest, since before then; false if there is none. It leaves the budget at
 * once, though unmapping can take milliseconds: a request that needs the memory must not be refused for
 * it. */
static bool drop_oldest(struct mm_buffers *buffers, uint64_t before_ns) {
    pthread_mutex_lock(&buffers->mutex);
    struct mm_piece *piece = TAILQ_FIRST(&buffers->kept.all);
    if (piece != NULL && piece->since_ns >= before_ns)
        piece = NULL;
    const bool is_idle = piece != NULL && !piece->is_lent;
    if (piece != NULL) {
        mm_kept_remove(&buffers->kept, piece);
        mm_buffers_unreserve(buffers, piece->open_bytes - piece->lent_bytes);
    }
    if (piece != NULL && !is_idle)
        drop_rest(buffers, piece);
    pthread_mutex_unlock(&buffers->mutex);
    if (is_idle)
        drop(buffers, piece);
    return piece != NULL;
}

void mm_buffers_trim(struct mm_buffers *buffers, uint64_t before_ns) {
    while (drop_oldest(buffers, before_ns))
        continue;
}

/* --- the budget ---------------------------------------------------------------------------------- */

/* Takes `bytes` of the budget, or none of it. */
static bool take(struct mm_buffers *buffers, size_t bytes) {
    size_t held = __atomic_load_n(&buffers->held_bytes, __ATOMIC_RELAXED);
    do {
        if (bytes > buffers->budget_bytes - held)
            return false;
    } while (!__atomic_compare_exchange_n(&buffers->held_bytes, &held, held + bytes, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return true;
}

static enum mm_status fail_budget(const struct mm_buffers *buffers, enum mm_status status, size_t bytes,
                                  struct mm_error *error) {
    mm_fail(error, status,
            "the request needs %zu bytes of memory, but of %zu bytes (--memory-budget) %zu are taken", bytes,
            buffers->budget_bytes, mm_buffers_used(buffers));
    if (error != NULL)
        error->needed_bytes = bytes;
    if (error != NULL && status == MM_TOO_LARGE) {
        error->limit = buffers->budget_bytes;
        error->has_limit = true;
        mm_fail_got(error, "%zu", bytes);
    }
    return status;
}

enum mm_status mm_buffers_reserve(struct mm_buffers *buffers, size_t bytes, struct mm_error *error) {
    if (bytes > buffers->budget_bytes)
        return fail_budget(buffers, MM_TOO_LARGE, bytes, error);
    bool taken = take(buffers, bytes);
    while (!taken) {
        const bool dropped = drop_oldest(buffers, UINT64_MAX);
        taken = take(buffers, bytes); /* in what was dropped, by this thread or by another */
        if (!taken && !dropped)
            return fail_budget(buffers, MM_BUSY, bytes, error);
    }
    return MM_OK;
}

void mm_buffers_unreserve(struct mm_buffers *buffers, size_t bytes) {
    const size_t left = __atomic_sub_fetch(&buffers->held_bytes, bytes, __ATOMIC_RELAXED);
    assert(left <= buffers->budget_bytes);
    (void)left;
}

/* --- lending ------------------------------------------------------------------------------------- */

static bool locks_pages(const struct mm_buffers *buffers) {
    return __atomic_load_n(&buffers->locking, __ATOMIC_ACQUIRE) != NULL;
}

/* Memory of `bytes` that are counted already; NULL if there is none. If the arena is full the C library
 * gives it, unless pages are to be locked. */
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

/* The system refuses pages or address space: another request may give some back, if it has any. */
static enum mm_status fail_pages(const struct mm_buffers *buffers, size_t bytes, struct mm_error *error) {
    return mm_fail(error, mm_buffers_used(buffers) > 0 ? MM_BUSY : MM_INTERNAL,
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

/* Lends what is kept of the first `bytes` of a piece that is lent, and says how much of it is lent then. */
static size_t lend_kept(struct mm_buffers *buffers, struct mm_piece *piece, size_t bytes) {
    pthread_mutex_lock(&buffers->mutex);
    if (piece->lent_bytes < bytes && piece->lent_bytes < piece->open_bytes) {
        mm_kept_remove(&buffers->kept, piece);
        piece->lent_bytes = bytes < piece->open_bytes ? bytes : piece->open_bytes;
        if (piece->lent_bytes < piece->open_bytes)
            mm_kept_add(&buffers->kept, piece, mm_clock_ns());
    }
    pthread_mutex_unlock(&buffers->mutex);
    return piece->lent_bytes;
}

/* Whether spare_bytes of the budget are left once `more` are lent. What is kept counts as left. */
static bool leaves(const struct mm_buffers *buffers, size_t more, size_t spare_bytes) {
    const size_t left = buffers->budget_bytes - mm_buffers_used(buffers);
    return spare_bytes == 0 || (more <= left && spare_bytes <= left - more);
}

/* Lends at least the first `bytes` of a piece: what is kept of them, and new pages, which are counted. On
 * failure more may be lent than before. */
static enum mm_status extend(struct mm_buffers *buffers, struct mm_piece *piece, size_t bytes,
                             size_t spare_bytes, struct mm_error *error) {
    if (bytes > piece->lent_bytes && !leaves(buffers, bytes - piece->lent_bytes, spare_bytes))
        return fail_budget(buffers, MM_BUSY, bytes - piece->lent_bytes, error);
    const size_t lent_bytes = lend_kept(buffers, piece, bytes);
    if (bytes <= lent_bytes)
        return MM_OK;
    if (bytes > piece->bytes) /* there was less address space than the buffer may grow to */
        return fail_pages(buffers, bytes, error);
    const size_t more = bytes - lent_bytes;
    const enum mm_status status = mm_buffers_reserve(buffers, more, error);
    if (status != MM_OK)
        return status;
    unlock_pages(buffers, piece);
    if (!mm_pages_open(piece->memory, piece->open_bytes, bytes)) {
        mm_buffers_unreserve(buffers, more);
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
    ASAN_POISON_MEMORY_REGION(piece->memory, piece->open_bytes);
    const bool is_empty = piece->open_bytes == 0;
    if (!is_empty)
        mm_kept_add(&buffers->kept, piece, mm_clock_ns());
    pthread_mutex_unlock(&buffers->mutex);
    if (is_empty)
        drop(buffers, piece);
}

static void lend(struct mm_piece *piece, struct mm_buffer *buffer) {
    ASAN_UNPOISON_MEMORY_REGION(piece->memory, piece->lent_bytes);
    *buffer = (struct mm_buffer){.data = piece->memory, .bytes = piece->lent_bytes, .piece = piece};
}

/* Lends the first `bytes` of a piece, or all that is open of it if that is less, and keeps the rest. */
static void lend_first(struct mm_buffers *buffers, struct mm_buffer *buffer, size_t bytes) {
    struct mm_piece *piece = buffer->piece;
    pthread_mutex_lock(&buffers->mutex);
    if (piece->lent_bytes < piece->open_bytes)
        mm_kept_remove(&buffers->kept, piece);
    piece->lent_bytes = bytes < piece->open_bytes ? bytes : piece->open_bytes;
    if (piece->lent_bytes < piece->open_bytes)
        mm_kept_add(&buffers->kept, piece, mm_clock_ns());
    pthread_mutex_unlock(&buffers->mutex);
    lend(piece, buffer);
}

void mm_buffers_shrink(struct mm_buffers *buffers, struct mm_buffer *buffer, size_t bytes) {
    if (buffer->piece != NULL)
        lend_first(buffers, buffer, bytes);
}

void mm_buffers_settle(struct mm_buffers *buffers, struct mm_buffer *buffer, size_t bytes) {
    const struct mm_page_locking *locking = __atomic_load_n(&buffers->locking, __ATOMIC_ACQUIRE);
    struct mm_piece *piece = buffer->piece;
    if (piece == NULL)
        return;
    lend_first(buffers, buffer, locking == NULL ? bytes : SIZE_MAX);
    if (locking != NULL && !piece->is_locked)
        piece->is_locked = locking->lock(piece->memory, piece->open_bytes);
    buffer->is_locked = locking != NULL && piece->is_locked;
}

/* A small piece of the arena, or of the C library; *buffer has none, and MM_OK, where it is to be mapped. */
static enum mm_status acquire_small(struct mm_buffers *buffers, size_t bytes, struct mm_buffer *buffer,
                                    struct mm_error *error) {
    const enum mm_status status = mm_buffers_reserve(buffers, bytes, error);
    if (status != MM_OK || allocate_small(buffers, bytes, buffer) != NULL)
        return status;
    mm_buffers_unreserve(buffers, bytes);
    return locks_pages(buffers) ? MM_OK : fail_memory(bytes, error);
}

static enum mm_status acquire_pages(struct mm_buffers *buffers, size_t bytes, struct mm_buffer *buffer,
                                    struct mm_error *error) {
    if (bytes > buffers->budget_bytes)
        return fail_budget(buffers, MM_TOO_LARGE, bytes, error);
    struct mm_piece *piece;
    enum mm_status status = take_piece(buffers, bytes, true, &piece, error);
    if (piece == NULL)
        return status;
    status = extend(buffers, piece, bytes, 0, error);
    if (status != MM_OK) {
        take_back(buffers, piece);
        return status;
    }
    lend(piece, buffer);
    mm_buffers_settle(buffers, buffer, bytes);
    return MM_OK;
}

enum mm_status mm_buffers_acquire(struct mm_buffers *buffers, size_t bytes, struct mm_buffer *buffer,
                                  struct mm_error *error) {
    struct mm_buffer taken = {0};
    enum mm_status status = MM_OK;
    if (bytes == 0)
        bytes = 1; /* so that data is never NULL where a buffer is held */
    if (bytes <= MM_ARENA_PIECE_MAX) {
        status = acquire_small(buffers, bytes, &taken, error);
        bytes = mm_pages_round_up(bytes);
    }
    if (status == MM_OK && taken.data == NULL)
        status = acquire_pages(buffers, bytes, &taken, error);
    if (status == MM_OK)
        *buffer = taken;
    return status;
}

/* What a buffer of at least `bytes`, and at most `bytes_max`, is to have, so that it seldom has to grow. */
static size_t step_to(size_t bytes, size_t bytes_max) {
    const size_t step = bytes < STEP_MIN ? STEP_MIN : bytes < STEP_MAX ? bytes : STEP_MAX;
    if (bytes_max < bytes || step > bytes_max - bytes)
        return bytes_max;
    return bytes + step < STEP_MAX ? bytes + step : (bytes + step) / STEP_MAX * STEP_MAX;
}

enum mm_status mm_buffers_grow(struct mm_buffers *buffers, size_t bytes, size_t bytes_max, size_t spare_bytes,
                               struct mm_buffer *buffer, struct mm_error *error) {
    assert(bytes <= bytes_max);
    if (bytes <= buffer->bytes)
        return MM_OK;
    if (bytes_max <= STEP_MIN)
        return mm_buffers_acquire(buffers, bytes_max, buffer, error);
    if (bytes > buffers->budget_bytes)
        return fail_budget(buffers, MM_TOO_LARGE, bytes, error);
    struct mm_piece *piece = buffer->piece;
    enum mm_status status = MM_OK;
    if (piece == NULL)
        status = take_room(buffers, bytes, bytes_max, &piece, error);
    if (piece == NULL)
        return status;
    status = extend(buffers, piece, step_to(bytes, bytes_max), spare_bytes, NULL);
    if (status != MM_OK)
        status = extend(buffers, piece, bytes, spare_bytes, error);
    if (status == MM_OK)
        lend(piece, buffer);
    else if (buffer->data == NULL)
        take_back(buffers, piece);
    return status;
}

static void release_small(struct mm_buffers *buffers, const struct mm_buffer *buffer) {
    if (mm_arena_has(buffers->arena, buffer->data))
        mm_arena_give(buffers->arena, buffer->data, buffer->bytes);
    else
        free(buffer->data);
    mm_buffers_unreserve(buffers, buffer->bytes);
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

/* What is kept is read first, so that what is lent or kept meanwhile does not make it less than 0. */
size_t mm_buffers_used(const struct mm_buffers *buffers) {
    const size_t kept = __atomic_load_n(&buffers->kept.bytes, __ATOMIC_RELAXED);
    const size_t held = __atomic_load_n(&buffers->held_bytes, __ATOMIC_RELAXED);
    return held > kept ? held - kept : 0;
}

size_t mm_buffers_kept(const struct mm_buffers *buffers) {
    return __atomic_load_n(&buffers->kept.bytes, __ATOMIC_RELAXED);
}

size_t mm_buffers_budget(const struct mm_buffers *buffers) {
    return buffers->budget_bytes;
}
