/* Sources: where a job gets an operand from. Its elements lie in memory, or the backend generates them, each
 * from its place. Plain data; any thread may call these functions. */
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
    MM_SOURCE_STORED, /* a value of the store; the owner of the job holds a reference until the job is done */
};

struct mm_device;
struct mm_stored;

/* All zeros: host memory. */
struct mm_source {
    enum mm_source_kind kind;
    uint64_t seed; /* of MM_SOURCE_UNIFORM */
    size_t rows;   /* of MM_SOURCE_IDENTITY: of each matrix; the view has the matrices one below another */
    struct mm_stored *stored; /* of MM_SOURCE_STORED */
};

static inline bool mm_source_is_generated(const struct mm_source *source) {
    return source->kind == MM_SOURCE_UNIFORM || source->kind == MM_SOURCE_IDENTITY;
}

/* Whether the elements are not in host memory: the backend generates them, or only a device has them. */
bool mm_source_is_elsewhere(const struct mm_source *source);

/* The address of a stored operand's copy on this device; NULL if there is no copy, or the operand is not
 * stored. Any thread that holds the value. The thread of the device's lanes may drop copies, so on other
 * threads the address may be stale. */
void *mm_source_find(const struct mm_source *source, const struct mm_device *device);

/* The log's word for an operand: "inline", "generated" or "stored". Static. */
const char *mm_source_word(enum mm_source_kind kind);

/* Writes `count` elements of the dense view, from element `first` on, to the view's memory: generated
 * elements, or stored ones. Not for MM_SOURCE_HOST. MM_DEVICE_FAILED if only a failed device has the
 * elements. */
enum mm_status mm_source_generate(const struct mm_source *source, const struct mm_matrix *view, size_t first,
                                  size_t count, struct mm_error *error);

__END_DECLS
