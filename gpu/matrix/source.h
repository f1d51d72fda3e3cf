/* Sources: where a job gets an operand from. Any thread may call these functions. */
#pragma once

#include "gpu/matrix/matrix.h"
#include "gpu/names.h"
#include "gpu/status.h"

#include <sys/cdefs.h>

__BEGIN_DECLS

enum mm_source_kind {
    MM_SOURCE_HOST,     /* in host memory, at the view's data */
    MM_SOURCE_UNIFORM,  /* a random stream (gpu/matrix/random.h) */
    MM_SOURCE_IDENTITY, /* each matrix has 1 where row equals column, else 0 */
    /* A stored matrix. The job's owner has a reference until the job is complete. */
    MM_SOURCE_STORED,
};

struct mm_device;
struct mm_stored;

/* The source of one operand. If all members are 0, the kind is MM_SOURCE_HOST. */
struct mm_source {
    enum mm_source_kind kind;
    uint64_t seed;            /* for MM_SOURCE_UNIFORM */
    size_t rows;              /* for MM_SOURCE_IDENTITY: rows of each matrix of the stack */
    struct mm_stored *stored; /* for MM_SOURCE_STORED */
    size_t first;             /* for a part of a matrix: index of the part's first element, else 0 */
    size_t gap;               /* for a part of a matrix: elements between two rows of the part, else 0 */
};

static inline bool mm_source_is_generated(const struct mm_source *source) {
    return source->kind == MM_SOURCE_UNIFORM || source->kind == MM_SOURCE_IDENTITY;
}

/* Whether the elements must be generated or copied from a device. */
bool mm_source_is_off_host(const struct mm_source *source);

/* Returns the word for the log: "inline", "generated" or "stored". A static string. */
const char *mm_source_word(enum mm_source_kind kind);

/* Returns the index in the whole matrix of element `index` of a part with `cols` columns. */
MM_HOST_AND_DEVICE size_t mm_source_index(size_t first, size_t gap, size_t cols, size_t index) {
    return first + index + (gap == 0 ? 0 : index / cols * gap);
}

/* Writes `count` elements, beginning with element `first` of the view, to the memory of a dense view. Do not
 * call this for MM_SOURCE_HOST, or for a part of a stored matrix. Returns MM_DEVICE_FAILED if the elements
 * were only on a device that has failed. */
enum mm_status mm_source_generate(const struct mm_source *source, const struct mm_matrix *view, size_t first,
                                  size_t count, struct mm_error *error);

__END_DECLS
