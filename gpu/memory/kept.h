/* Lists of mapped memory that nobody uses, found by size or by age. Knows no budget. The caller's
 * mutex guards all of it: any thread that holds the mutex may call these functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

enum { MM_KEPT_CLASSES_PER_OCTAVE = 4, MM_KEPT_CLASSES = 64 * MM_KEPT_CLASSES_PER_OCTAVE };

/* Memory that was mapped for itself. Its address space is `bytes` long; the first open_bytes of that may be
 * used, and count in the budget; the first lent_bytes of those are on loan. What lies between is kept. */
struct mm_block {
    void *memory;
    size_t bytes;
    size_t open_bytes;
    size_t lent_bytes;
    bool is_lent;
    bool is_locked;      /* all open pages are, to their place */
    size_t excess_bytes; /* its part of what the pool counts as such */

    /* While some of it is kept. */
    uint64_t since_ns;
    LIST_ENTRY(mm_block) of_class; /* not while it is lent */
    TAILQ_ENTRY(mm_block) of_all;
};

/* Begins as zeros, and `all` by TAILQ_INIT. */
struct mm_kept {
    size_t bytes;                                                /* changed with the mutex, __atomic access */
    TAILQ_HEAD(mm_blocks, mm_block) all;                         /* the oldest first */
    LIST_HEAD(mm_kept_class, mm_block) classes[MM_KEPT_CLASSES]; /* the last kept first */
};

/* Adds the newest block. Nothing of it that the lists depend on may change until it is removed: sizes,
 * is_lent. */
void mm_kept_add(struct mm_kept *kept, struct mm_block *block, uint64_t now_ns);
void mm_kept_remove(struct mm_kept *kept, struct mm_block *block);

/* Removes a block that is not lent and has `bytes` (not 0) of address space, or up to a quarter more: of
 * several one of which much is open. NULL if there is none. */
struct mm_block *mm_kept_acquire(struct mm_kept *kept, size_t bytes);
