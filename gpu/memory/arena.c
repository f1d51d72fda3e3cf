/* Blocks of one size class are kept in a free list. If the list is empty, a new block comes from the unused
 * end of the arena. With the address sanitizer, free memory is poisoned. */
#include "gpu/memory/arena.h"

#include "gpu/mutex.h"

#include <assert.h>
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <stdint.h>
#include <stdlib.h>

/* Size classes in bytes: 64, 128, 192, 256, and then four for each power of two: 320, 384, 448, 512, … */
enum { ALIGNMENT = 64, FINE_MAX = 256, FINE_CLASSES = FINE_MAX / ALIGNMENT, CLASSES = FINE_CLASSES + 7 * 4 };

struct free_block {
    struct free_block *next;
};

/* Each list has its own cache lines, because several threads use different lists at the same time. */
struct list {
    _Alignas(128) pthread_mutex_t mutex; /* guards `first` */
    struct free_block *first;
};

struct mm_arena {
    struct list lists[CLASSES];
    char *memory;
    size_t bytes;
    size_t cut_bytes; /* __atomic access only */
    void (*unlock)(void *memory);
    int is_locked; /* __atomic access only */
};

static unsigned class_of(size_t bytes) {
    assert(bytes >= 1 && bytes <= MM_ARENA_BLOCK_MAX);
    if (bytes <= FINE_MAX)
        return (unsigned)((bytes - 1) / ALIGNMENT);
    const unsigned octave = 63 - (unsigned)__builtin_clzll((unsigned long long)bytes - 1);
    const unsigned quarter = (unsigned)((bytes - 1 - ((size_t)1 << octave)) >> (octave - 2));
    return FINE_CLASSES + (octave - 8) * 4 + quarter;
}

static size_t bytes_of(unsigned index) {
    if (index < FINE_CLASSES)
        return (size_t)(index + 1) * ALIGNMENT;
    const unsigned octave = 8 + (index - FINE_CLASSES) / 4;
    return ((size_t)1 << octave) / 4 * (5 + (index - FINE_CLASSES) % 4);
}

struct mm_arena *mm_arena_open(size_t bytes) {
    struct mm_arena *arena = aligned_alloc(_Alignof(struct mm_arena), sizeof *arena);
    if (arena == NULL)
        return NULL;
    *arena = (struct mm_arena){.memory = mm_pages_map(bytes), .bytes = bytes};
    if (arena->memory == NULL) {
        free(arena);
        return NULL;
    }
    for (unsigned index = 0; index < CLASSES; index++)
        arena->lists[index].mutex = MM_MUTEX_INITIALIZER;
    ASAN_POISON_MEMORY_REGION(arena->memory, bytes);
    return arena;
}

void mm_arena_close(struct mm_arena *arena) {
    if (arena == NULL)
        return;
    if (mm_arena_is_locked(arena))
        arena->unlock(arena->memory);
    for (unsigned index = 0; index < CLASSES; index++)
        pthread_mutex_destroy(&arena->lists[index].mutex);
    ASAN_UNPOISON_MEMORY_REGION(arena->memory, arena->bytes);
    mm_pages_unmap(arena->memory, arena->bytes);
    free(arena);
}

void mm_arena_lock(struct mm_arena *arena, const struct mm_page_locking *locking) {
    arena->unlock = locking->unlock;
    const bool is_locked = locking->lock(arena->memory, arena->bytes);
    __atomic_store_n(&arena->is_locked, is_locked, __ATOMIC_RELEASE);
}

bool mm_arena_is_locked(const struct mm_arena *arena) {
    return __atomic_load_n(&arena->is_locked, __ATOMIC_ACQUIRE) != 0;
}

static void *cut(struct mm_arena *arena, size_t bytes) {
    size_t from = __atomic_load_n(&arena->cut_bytes, __ATOMIC_RELAXED);
    do {
        if (bytes > arena->bytes - from)
            return NULL;
    } while (!__atomic_compare_exchange_n(&arena->cut_bytes, &from, from + bytes, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return arena->memory + from;
}

void *mm_arena_acquire(struct mm_arena *arena, size_t bytes) {
    const unsigned index = class_of(bytes);
    struct list *list = &arena->lists[index];
    pthread_mutex_lock(&list->mutex);
    struct free_block *block = list->first;
    if (block != NULL) {
        ASAN_UNPOISON_MEMORY_REGION(block, sizeof *block);
        list->first = block->next;
    }
    pthread_mutex_unlock(&list->mutex);
    void *acquired = block != NULL ? block : cut(arena, bytes_of(index));
    if (acquired != NULL)
        ASAN_UNPOISON_MEMORY_REGION(acquired, bytes);
    return acquired;
}

void mm_arena_free(struct mm_arena *arena, void *block, size_t bytes) {
    const unsigned index = class_of(bytes);
    struct list *list = &arena->lists[index];
    struct free_block *freed = block;
    ASAN_UNPOISON_MEMORY_REGION(freed, sizeof *freed);
    pthread_mutex_lock(&list->mutex);
    freed->next = list->first;
    list->first = freed;
    ASAN_POISON_MEMORY_REGION(freed, bytes_of(index));
    pthread_mutex_unlock(&list->mutex);
}

bool mm_arena_has(const struct mm_arena *arena, const void *block) {
    const uintptr_t offset = (uintptr_t)block - (uintptr_t)arena->memory;
    return offset < arena->bytes;
}
