/* An arena provides small blocks of memory from one large mapping. Acquiring a block needs no system call,
 * and seldom causes a page fault. Each size class has a list of free blocks. A block stays in its class. */
#pragma once

#include "gpu/memory/pages.h"

enum { MM_ARENA_BLOCK_MAX = 32 << 10 };

struct mm_arena;

/* Opens an arena. The system provides each page when the page is first used. NULL if memory runs out. */
struct mm_arena *mm_arena_open(size_t bytes);

/* Closes the arena. The caller must first free all blocks. NULL is allowed. */
void mm_arena_close(struct mm_arena *arena);

/* Locks all pages of the arena. Call this at most once. mm_arena_close unlocks the pages. Any thread. */
void mm_arena_lock(struct mm_arena *arena, const struct mm_page_locking *locking);

/* Whether the arena's pages are locked. Any thread. */
bool mm_arena_is_locked(const struct mm_arena *arena);

/* Acquires a block of 1 to MM_ARENA_BLOCK_MAX bytes, aligned to 64 bytes. NULL if the arena is full. The
 * block is larger than `bytes` by at most a quarter, or by less than 64 bytes. Any thread. */
void *mm_arena_acquire(struct mm_arena *arena, size_t bytes);

/* Frees a block. `bytes` must be the size that was passed to mm_arena_acquire. Any thread. */
void mm_arena_free(struct mm_arena *arena, void *block, size_t bytes);

/* Whether a block belongs to the arena. Any thread. */
bool mm_arena_has(const struct mm_arena *arena, const void *block);
