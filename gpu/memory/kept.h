/* Lists of mapped memory that nobody uses, found by size or by age. Knows no budget. The caller's mutex
 * guards the lists: any thread that holds the mutex may call these functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

enum { MM_KEPT_CLASSES_PER_OCTAVE = 4, MM_KEPT_CLASSES = 64 * MM_KEPT_CLASSES_PER_OCTAVE };

/* A block of memory with a mapping of its own. Its address space is `bytes` long. The first open_bytes are
 * usable, and count in the budget. A buffer has the first lent_bytes of these; the pool keeps the rest. */
struct mm_block {
    void *memory;
    size_t bytes;
    size_t open_bytes;
    size_t lent_bytes;
    bool is_lent;
    bool is_locked;      /* all open pages are */
    size_t excess_bytes; /* its part of the pool's excess_bytes */

    /* While some of it is kept. */
    uint64_t since_ns;
    LIST_ENTRY(mm_block) of_class; /* not while it is lent */
    TAILQ_ENTRY(mm_block) of_all;
};

/* Begins as zeros, with `all` set by TAILQ_INIT. */
struct mm_kept {
    size_t bytes;                                                /* changed with the mutex, __atomic access */
    TAILQ_HEAD(mm_blocks, mm_block) all;                         /* the oldest first */
    LIST_HEAD(mm_kept_class, mm_block) classes[MM_KEPT_CLASSES]; /* the last kept first */
};

/* Adds a block, as the newest. Its sizes and is_lent do not change until it is removed. */
void mm_kept_add(struct mm_kept *kept, struct mm_block *block, uint64_t now_ns);
void mm_kept_remove(struct mm_kept *kept, struct mm_block *block);

/* Removes and returns a block that no buffer has, with `bytes` (not 0) of address space, or up to a quarter
 * more. Prefers blocks with many open bytes. NULL if there is none. */
struct mm_block *mm_kept_acquire(struct mm_kept *kept, size_t bytes);
