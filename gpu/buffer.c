/* The pool behind mm_buffers: the budget, small pieces from an arena, and large ones that are mapped one by
 * one and kept in lists by size class. What is kept counts in the budget too, until others need it: then what
 * has been kept longest goes first. */
#include "gpu/buffer.h"

#include "gpu/arena.h"
#include "gpu/clock.h"
#include "gpu/poison.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* The arena is not counted, as what is lent of it is; it is what a pool keeps when it is idle. */
enum { ALIGNMENT = 64, ARENA_BYTES = 16 << 20, CLASSES_PER_OCTAVE = 4, CLASSES = 64 * CLASSES_PER_OCTAVE };

/* How many pieces of a class are looked at for one that is large enough. */
enum { LOOKS = 8 };

/* Memory that was mapped for itself. */
struct mm_piece {
    void *memory;
    size_t bytes; /* counted */
    bool is_locked;
    /* While it is kept. */
    uint64_t since_ns;
    struct mm_piece *next; /* of its class, the last kept first */
    struct mm_piece *previous;
    struct mm_piece *newer; /* of all */
    struct mm_piece *older;
};

struct mm_buffers {
    size_t budget_bytes;
    size_t held_bytes; /* lent, reserved or kept; never over the budget. __atomic access only */
    size_t kept_bytes; /* of these, kept. Changed with the mutex, __atomic access */
    struct mm_arena *arena;
    const struct mm_page_locking *locking; /* NULL: none. __atomic access only */
    pthread_mutex_t mutex;                 /* guards the lists */
    struct mm_piece *classes[CLASSES];
    struct mm_piece *newest;
    struct mm_piece *oldest;
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
    pthread_mutex_init(&buffers->mutex, NULL);
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

/* --- what is kept --------------------------------------------------------------------------------- */

/* Four classes to an octave, so that a piece of the next class is at most a quarter larger than the largest
 * of this one. */
static unsigned class_of(size_t bytes) {
    const unsigned octave = 63 - (unsigned)__builtin_clzll((unsigned long long)bytes);
    const unsigned quarter = (unsigned)((bytes - ((size_t)1 << octave)) * CLASSES_PER_OCTAVE >> octave);
    return octave * CLASSES_PER_OCTAVE + quarter;
}

/* With the mutex held. */
static void keep(struct mm_buffers *buffers, struct mm_piece *piece) {
    struct mm_piece **first = &buffers->classes[class_of(piece->bytes)];
    piece->previous = NULL;
    piece->next = *first;
    if (*first != NULL)
        (*first)->previous = piece;
    *first = piece;
    piece->newer = NULL;
    piece->older = buffers->newest;
    *(buffers->newest != NULL ? &buffers->newest->newer : &buffers->oldest) = piece;
    buffers->newest = piece;
    __atomic_add_fetch(&buffers->kept_bytes, piece->bytes, __ATOMIC_RELAXED);
}

/* With the mutex held. */
static void unkeep(struct mm_buffers *buffers, struct mm_piece *piece) {
    *(piece->previous != NULL ? &piece->previous->next : &buffers->classes[class_of(piece->bytes)]) =
        piece->next;
    if (piece->next != NULL)
        piece->next->previous = piece->previous;
    *(piece->newer != NULL ? &piece->newer->older : &buffers->newest) = piece->older;
    *(piece->older != NULL ? &piece->older->newer : &buffers->oldest) = piece->newer;
    __atomic_sub_fetch(&buffers->kept_bytes, piece->bytes, __ATOMIC_RELAXED);
}

/* A kept piece of `bytes` or up to a quarter more; NULL where there is none. */
static struct mm_piece *find_kept(struct mm_buffers *buffers, size_t bytes) {
    struct mm_piece *found = NULL;
    const unsigned class = class_of(bytes);
    pthread_mutex_lock(&buffers->mutex);
    for (unsigned step = 0; step < 2 && class + step < CLASSES && found == NULL; step++) {
        struct mm_piece *piece = buffers->classes[class + step];
        for (unsigned looks = 0; piece != NULL && looks < LOOKS && found == NULL; looks++) {
            if (piece->bytes >= bytes && piece->bytes - bytes <= bytes / 4)
                found = piece;
            piece = piece->next;
        }
    }
    if (found != NULL)
        unkeep(buffers, found);
    pthread_mutex_unlock(&buffers->mutex);
    return found;
}

/* Gives a piece back that is in no list and counts no more. */
static void drop(struct mm_buffers *buffers, struct mm_piece *piece) {
    const struct mm_page_locking *locking = __atomic_load_n(&buffers->locking, __ATOMIC_ACQUIRE);
    if (piece->is_locked)
        locking->unlock(piece->memory);
    mm_unpoison(piece->memory, piece->bytes);
    mm_pages_unmap(piece->memory, piece->bytes);
    free(piece);
}

/* Drops the piece that has been kept longest, since before then; false where there is none. It counts no more
 * before it is gone, which can take milliseconds: who needs its room would be told that others have it. */
static bool drop_oldest(struct mm_buffers *buffers, uint64_t before_ns) {
    pthread_mutex_lock(&buffers->mutex);
    struct mm_piece *piece = buffers->oldest;
    if (piece != NULL && piece->since_ns >= before_ns)
        piece = NULL;
    if (piece != NULL) {
        unkeep(buffers, piece);
        mm_buffers_unreserve(buffers, piece->bytes);
    }
    pthread_mutex_unlock(&buffers->mutex);
    if (piece != NULL)
        drop(buffers, piece);
    return piece != NULL;
}

void mm_buffers_trim(struct mm_buffers *buffers, uint64_t before_ns) {
    while (drop_oldest(buffers, before_ns))
        continue;
}

/* --- the budget ----------------------------------------------------------------------------------- */

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
    mm_fail(error, status, "%zu bytes of memory are needed, but of the budget of %zu bytes %zu are taken",
            bytes, buffers->budget_bytes, mm_buffers_used(buffers));
    if (error != NULL)
        error->needed_bytes = bytes;
    if (error != NULL && status == MM_TOO_LARGE) {
        error->limit = buffers->budget_bytes;
        error->has_limit = true;
        snprintf(error->got, sizeof error->got, "%zu", bytes);
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

/* --- lending -------------------------------------------------------------------------------------- */

static bool locks_pages(const struct mm_buffers *buffers) {
    return __atomic_load_n(&buffers->locking, __ATOMIC_ACQUIRE) != NULL;
}

/* Memory of `bytes` that are counted already; NULL where there is none. Small pieces that the arena has no
 * room for are the C library's, but where pages are locked: its would not be. */
static void *allocate_small(struct mm_buffers *buffers, size_t bytes, struct mm_buffer *buffer) {
    *buffer = (struct mm_buffer){.data = mm_arena_take(buffers->arena, bytes), .bytes = bytes};
    buffer->is_locked = buffer->data != NULL && mm_arena_is_locked(buffers->arena);
    if (buffer->data == NULL && !locks_pages(buffers))
        buffer->data = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    return buffer->data;
}

static struct mm_piece *map_piece(struct mm_buffers *buffers, size_t bytes) {
    const struct mm_page_locking *locking = __atomic_load_n(&buffers->locking, __ATOMIC_ACQUIRE);
    struct mm_piece *piece = malloc(sizeof *piece);
    if (piece == NULL)
        return NULL;
    *piece = (struct mm_piece){.memory = mm_pages_map(bytes), .bytes = bytes};
    if (piece->memory == NULL) { /* or no more mappings, of which what is kept has some */
        mm_buffers_trim(buffers, UINT64_MAX);
        piece->memory = mm_pages_map(bytes);
    }
    if (piece->memory == NULL) {
        free(piece);
        return NULL;
    }
    piece->is_locked = locking != NULL && locking->lock(piece->memory, bytes);
    return piece;
}

/* Lends a piece of which at least `bytes` are counted already. */
static void lend(struct mm_piece *piece, struct mm_buffer *buffer) {
    mm_unpoison(piece->memory, piece->bytes);
    *buffer = (struct mm_buffer){
        .data = piece->memory, .bytes = piece->bytes, .is_locked = piece->is_locked, .piece = piece};
}

static enum mm_status fail_memory(struct mm_buffers *buffers, size_t bytes, struct mm_error *error) {
    mm_buffers_unreserve(buffers, bytes);
    return mm_fail(error, MM_INTERNAL, "the system has no memory for %zu bytes", bytes);
}

/* A small piece of the arena, or of the C library; *buffer has none, and MM_OK, where it is to be mapped. */
static enum mm_status acquire_small(struct mm_buffers *buffers, size_t bytes, struct mm_buffer *buffer,
                                    struct mm_error *error) {
    const enum mm_status status = mm_buffers_reserve(buffers, bytes, error);
    if (status != MM_OK || allocate_small(buffers, bytes, buffer) != NULL)
        return status;
    if (!locks_pages(buffers))
        return fail_memory(buffers, bytes, error);
    mm_buffers_unreserve(buffers, bytes);
    return MM_OK;
}

static enum mm_status acquire_pages(struct mm_buffers *buffers, size_t bytes, struct mm_buffer *buffer,
                                    struct mm_error *error) {
    struct mm_piece *piece = bytes <= buffers->budget_bytes ? find_kept(buffers, bytes) : NULL;
    if (piece == NULL) {
        const enum mm_status status = mm_buffers_reserve(buffers, bytes, error);
        if (status != MM_OK)
            return status;
        piece = map_piece(buffers, bytes);
    }
    if (piece == NULL)
        return fail_memory(buffers, bytes, error);
    lend(piece, buffer);
    return MM_OK;
}

enum mm_status mm_buffers_acquire(struct mm_buffers *buffers, size_t bytes, struct mm_buffer *buffer,
                                  struct mm_error *error) {
    enum { PAGE_BYTES = 4096 };
    struct mm_buffer taken = {0};
    enum mm_status status = MM_OK;
    if (bytes == 0)
        bytes = 1; /* so that data is never NULL where a buffer is held */
    if (bytes <= MM_ARENA_PIECE_MAX) {
        status = acquire_small(buffers, bytes, &taken, error);
        bytes = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    }
    if (status == MM_OK && taken.data == NULL)
        status = acquire_pages(buffers, bytes, &taken, error);
    if (status == MM_OK)
        *buffer = taken;
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
    if (piece == NULL) {
        release_small(buffers, buffer);
    } else {
        mm_poison(piece->memory, piece->bytes);
        piece->since_ns = mm_clock_ns();
        pthread_mutex_lock(&buffers->mutex);
        keep(buffers, piece);
        pthread_mutex_unlock(&buffers->mutex);
    }
    *buffer = (struct mm_buffer){0};
}

/* What is kept is read first, so that what is lent or kept meanwhile does not make it less than 0. */
size_t mm_buffers_used(const struct mm_buffers *buffers) {
    const size_t kept = __atomic_load_n(&buffers->kept_bytes, __ATOMIC_RELAXED);
    const size_t held = __atomic_load_n(&buffers->held_bytes, __ATOMIC_RELAXED);
    return held > kept ? held - kept : 0;
}

size_t mm_buffers_kept(const struct mm_buffers *buffers) {
    return __atomic_load_n(&buffers->kept_bytes, __ATOMIC_RELAXED);
}

size_t mm_buffers_budget(const struct mm_buffers *buffers) {
    return buffers->budget_bytes;
}
