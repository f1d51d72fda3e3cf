/* Small pieces of memory out of one that was taken whole, so that lending one costs no call of the system and
 * no page fault. Each size class has a list of free pieces; a piece never changes its class. */
#ifndef MM_GPU_ARENA_H
#define MM_GPU_ARENA_H

#include "gpu/pages.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MM_ARENA_PIECE_MAX = 32 << 10 };

struct mm_arena;

/* An arena of so many bytes, which are taken page by page as they are first lent. NULL where there is no
 * memory. close takes NULL; no piece is on loan then. */
struct mm_arena *mm_arena_open(size_t bytes);
void mm_arena_close(struct mm_arena *arena);

/* Locks all of its pages, once; before close they are unlocked. is_locked tells it of what is lent from then
 * on. Any thread. */
void mm_arena_lock(struct mm_arena *arena, const struct mm_page_locking *locking);
bool mm_arena_is_locked(const struct mm_arena *arena);

/* Lends `bytes`, from 1 to MM_ARENA_PIECE_MAX, aligned to 64; at most a quarter more is taken for it. NULL
 * where the arena has none left. give takes a piece and the bytes that were asked for; has tells whether a
 * piece is the arena's. Any thread. */
void *mm_arena_take(struct mm_arena *arena, size_t bytes);
void mm_arena_give(struct mm_arena *arena, void *piece, size_t bytes);
bool mm_arena_has(const struct mm_arena *arena, const void *piece);

#ifdef __cplusplus
}
#endif
#endif
