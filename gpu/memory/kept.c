#include "gpu/memory/kept.h"

/* How many blocks of a size class are searched for a block with enough usable bytes. */
enum { EXAMINED_MAX = 8 };

/* Returns the size class. There are four classes for each power of two, so sizes in a class differ little. */
static unsigned class_of(size_t bytes) {
    const unsigned octave = 63 - (unsigned)__builtin_clzll((unsigned long long)bytes);
    const unsigned quarter =
        (unsigned)((bytes - ((size_t)1 << octave)) * MM_KEPT_CLASSES_PER_OCTAVE >> octave);
    return octave * MM_KEPT_CLASSES_PER_OCTAVE + quarter;
}

void mm_kept_add(struct mm_kept *kept, struct mm_block *block, uint64_t now_ns) {
    block->since_ns = now_ns;
    if (!block->is_lent)
        LIST_INSERT_HEAD(&kept->classes[class_of(block->bytes)], block, of_class);
    TAILQ_INSERT_TAIL(&kept->all, block, of_all);
    __atomic_add_fetch(&kept->bytes, block->open_bytes - block->lent_bytes, __ATOMIC_RELAXED);
}

void mm_kept_remove(struct mm_kept *kept, struct mm_block *block) {
    if (!block->is_lent)
        LIST_REMOVE(block, of_class);
    TAILQ_REMOVE(&kept->all, block, of_all);
    __atomic_sub_fetch(&kept->bytes, block->open_bytes - block->lent_bytes, __ATOMIC_RELAXED);
}

struct mm_block *mm_kept_acquire(struct mm_kept *kept, size_t bytes) {
    struct mm_block *found = NULL;
    const unsigned class = class_of(bytes);
    for (unsigned step = 0; step < 2 && class + step < MM_KEPT_CLASSES && found == NULL; step++) {
        struct mm_block *block = LIST_FIRST(&kept->classes[class + step]);
        for (unsigned examined = 0; block != NULL && examined < EXAMINED_MAX;
             examined++, block = LIST_NEXT(block, of_class)) {
            if (block->bytes < bytes || block->bytes - bytes > bytes / 4)
                continue;
            if (found == NULL || block->open_bytes > found->open_bytes)
                found = block;
            if (found->open_bytes >= bytes)
                break;
        }
    }
    if (found != NULL)
        mm_kept_remove(kept, found);
    return found;
}
