/* The lists of kept pieces: one for each size class, and one of all by age. */
#include "gpu/memory/kept.h"

/* How many pieces of a class are looked at for one that is large enough. */
enum { LOOKS = 8 };

/* Four classes to an octave, so that a piece of the next class is at most a quarter larger than the largest
 * of this one. */
static unsigned class_of(size_t bytes) {
    const unsigned octave = 63 - (unsigned)__builtin_clzll((unsigned long long)bytes);
    const unsigned quarter =
        (unsigned)((bytes - ((size_t)1 << octave)) * MM_KEPT_CLASSES_PER_OCTAVE >> octave);
    return octave * MM_KEPT_CLASSES_PER_OCTAVE + quarter;
}

void mm_kept_add(struct mm_kept *kept, struct mm_piece *piece, uint64_t now_ns) {
    piece->since_ns = now_ns;
    if (!piece->is_lent)
        LIST_INSERT_HEAD(&kept->classes[class_of(piece->bytes)], piece, of_class);
    TAILQ_INSERT_TAIL(&kept->all, piece, of_all);
    __atomic_add_fetch(&kept->bytes, piece->open_bytes - piece->lent_bytes, __ATOMIC_RELAXED);
}

void mm_kept_remove(struct mm_kept *kept, struct mm_piece *piece) {
    if (!piece->is_lent)
        LIST_REMOVE(piece, of_class);
    TAILQ_REMOVE(&kept->all, piece, of_all);
    __atomic_sub_fetch(&kept->bytes, piece->open_bytes - piece->lent_bytes, __ATOMIC_RELAXED);
}

struct mm_piece *mm_kept_take(struct mm_kept *kept, size_t bytes) {
    struct mm_piece *found = NULL;
    const unsigned class = class_of(bytes);
    for (unsigned step = 0; step < 2 && class + step < MM_KEPT_CLASSES && found == NULL; step++) {
        struct mm_piece *piece = LIST_FIRST(&kept->classes[class + step]);
        for (unsigned looks = 0; piece != NULL && looks < LOOKS;
             looks++, piece = LIST_NEXT(piece, of_class)) {
            if (piece->bytes < bytes || piece->bytes - bytes > bytes / 4)
                continue;
            if (found == NULL || piece->open_bytes > found->open_bytes)
                found = piece;
            if (found->open_bytes >= bytes)
                break;
        }
    }
    if (found != NULL)
        mm_kept_remove(kept, found);
    return found;
}
