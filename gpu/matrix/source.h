/* Where a job finds an operand: in memory, or nowhere yet, since each element follows from its place. The
 * backend makes such an operand. Plain data; any thread may call these functions. */
#pragma once

#include "gpu/matrix/matrix.h"
#include "gpu/status.h"

#include <sys/cdefs.h>

__BEGIN_DECLS

enum mm_source_kind {
    MM_SOURCE_HOST,     /* the view's data, in host memory */
    MM_SOURCE_UNIFORM,  /* element i, counted over the whole stack, is number i of a stream
                           (gpu/matrix/random.h) */
    MM_SOURCE_IDENTITY, /* 1 where row equals column of each matrix, else 0 */
    MM_SOURCE_STORED,   /* the elements of a value of the store, which someone holds until the job is done */
};

struct mm_device;
struct mm_stored;

/* All zeros: host memory. */
struct mm_source {
    enum mm_source_kind kind;
    uint64_t seed; /* of MM_SOURCE_UNIFORM */
    size_t rows;   /* of MM_SOURCE_IDENTITY: of each matrix of the view, which has several below each other */
    struct mm_stored *stored; /* of MM_SOURCE_STORED */
};

static inline bool mm_source_is_generated(const struct mm_source *source) {
    return source->kind == MM_SOURCE_UNIFORM || source->kind == MM_SOURCE_IDENTITY;
}

/* Whether no memory of the host has its elements: the backend makes them, or a device alone has them. */
bool mm_source_is_elsewhere(const struct mm_source *source);

/* Where a stored operand lies in this device's memory; NULL if it is not there, or not stored. Any thread
 * that holds the value. The device's lanes may drop a copy, so on other threads the answer may be old. */
void *mm_source_find(const struct mm_source *source, const struct mm_device *device);

/* "inline", "generated" or "stored": all that the log says of an operand. Static. */
const char *mm_source_word(enum mm_source_kind kind);

/* Writes `count` elements of the dense view, from element `first` on, to its memory. Of any source except
 * MM_SOURCE_HOST; only what a device alone has may fail. */
enum mm_status mm_source_generate(const struct mm_source *source, const struct mm_matrix *view, size_t first,
                                  size_t count, struct mm_error *error);

__END_DECLS
