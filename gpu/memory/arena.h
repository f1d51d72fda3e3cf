/* Small blocks of one large mapping, lent without a system call or page fault. Each size class has a list
 * of free blocks; a block never changes its class. */
#pragma once

#include "gpu/memory/pages.h"

enum { MM_ARENA_BLOCK_MAX = 32 << 10 };

struct mm_arena;

/* An arena of so many bytes, which are taken page by page as they are first lent. NULL where there is no
 * memory. close takes NULL; no block is on loan then. */
struct mm_arena *mm_arena_open(size_t bytes);
void mm_arena_close(struct mm_arena *arena);

/* Locks all of its pages, once; before close they are unlocked. is_locked tells it of what is lent from then
 * on. Any thread. */
void mm_arena_lock(struct mm_arena *arena, const struct mm_page_locking *locking);
bool mm_arena_is_locked(const struct mm_arena *arena);

/* Lends `bytes`, 1 to MM_ARENA_BLOCK_MAX, aligned to 64; at most a quarter more is taken. NULL if the
 * arena is full. give takes a block and the bytes that were asked for; has says whether a block is the
 * arena's. Any thread. */
void *mm_arena_acquire(struct mm_arena *arena, size_t bytes);
void mm_arena_free(struct mm_arena *arena, void *block, size_t bytes);
bool mm_arena_has(const struct mm_arena *arena, const void *block);
