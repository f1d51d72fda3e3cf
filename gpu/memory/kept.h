/* Lists of mapped memory that no buffer uses, by size and by age. Callers hold the pool's mutex. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

enum { MM_KEPT_CLASSES_PER_OCTAVE = 4, MM_KEPT_CLASSES = 64 * MM_KEPT_CLASSES_PER_OCTAVE };

/* A block of memory with its own mapping, and address space of `bytes`. The first open_bytes are usable. Of
 * the usable bytes, the first lent_bytes are lent to a buffer, and the pool keeps the others. */
struct mm_block {
    void *memory;
    size_t bytes;
    size_t open_bytes;
    size_t lent_bytes;
    bool is_lent;
    bool is_locked;      /* all usable pages are locked */
    size_t excess_bytes; /* lent bytes that the buffer does not need */

    uint64_t since_ns;
    LIST_ENTRY(mm_block) of_class; /* entry in the list of the block's size class; unused while lent */
    TAILQ_ENTRY(mm_block) of_all;
};

/* Before use, the caller sets all members to 0, and initializes `all` by TAILQ_INIT. */
struct mm_kept {
    size_t bytes; /* kept bytes of all blocks; __atomic access only */
    TAILQ_HEAD(mm_blocks, mm_block) all;
    LIST_HEAD(mm_kept_class, mm_block)
    classes[MM_KEPT_CLASSES]; /* one list of blocks for each size class; newest first */
};

/* Add a block as the newest, or remove it. Callers remove a block before they change its sizes or is_lent. */
void mm_kept_add(struct mm_kept *kept, struct mm_block *block, uint64_t now_ns);
void mm_kept_remove(struct mm_kept *kept, struct mm_block *block);

/* Removes and returns a block that is not lent and has `bytes` of address space, or up to a quarter more.
 * Prefers blocks with many usable bytes. Returns NULL if there is no such block. `bytes` must not be 0. */
struct mm_block *mm_kept_acquire(struct mm_kept *kept, size_t bytes);
