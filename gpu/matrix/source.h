/* Sources: where a job gets an operand from. The elements are in memory, or the backend generates each of
 * them from its index. Any thread may call these functions. */
#pragma once

#include "gpu/matrix/matrix.h"
#include "gpu/status.h"

#include <sys/cdefs.h>

__BEGIN_DECLS

enum mm_source_kind {
    MM_SOURCE_HOST,     /* the view's data is in host memory */
    MM_SOURCE_UNIFORM,  /* element i of the whole stack is element i of a random stream (gpu/matrix/random.h)
                         */
    MM_SOURCE_IDENTITY, /* each matrix has 1 where row equals column, else 0 */
    MM_SOURCE_STORED,   /* a stored matrix; the job's owner has a reference until the job is complete */
};

struct mm_device;
struct mm_stored;

/* The source of one operand. All zeros: host memory. */
struct mm_source {
    enum mm_source_kind kind;
    uint64_t seed; /* for MM_SOURCE_UNIFORM: the seed of the stream */
    size_t rows;   /* for MM_SOURCE_IDENTITY: rows of each matrix; the view has one matrix below another */
    struct mm_stored *stored; /* for MM_SOURCE_STORED: the value */
};

static inline bool mm_source_is_generated(const struct mm_source *source) {
    return source->kind == MM_SOURCE_UNIFORM || source->kind == MM_SOURCE_IDENTITY;
}

/* Whether the elements are not in host memory: the backend generates them, or they are only on a device. */
bool mm_source_is_off_host(const struct mm_source *source);

/* Returns the address of a stored operand's copy on this device. NULL if there is no copy, or the operand
 * is not stored. Any thread that has a reference to the value. The thread that uses the device may drop
 * copies, so on other threads the address may be outdated. */
void *mm_source_find(const struct mm_source *source, const struct mm_device *device);

/* Returns the word for an operand in the log: "inline", "generated" or "stored". A static string. */
const char *mm_source_word(enum mm_source_kind kind);

/* Writes `count` generated or stored elements, beginning with element `first`, to the memory of a dense
 * view. Not for MM_SOURCE_HOST. MM_DEVICE_FAILED if the elements were only on a device that has failed. */
enum mm_status mm_source_generate(const struct mm_source *source, const struct mm_matrix *view, size_t first,
                                  size_t count, struct mm_error *error);

__END_DECLS
