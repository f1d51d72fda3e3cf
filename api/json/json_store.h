/* Memory for the elements of a JSON request, which grows while they arrive. Knows no JSON. */
#pragma once

#include "gpu/matrix/matrix.h"
#include "gpu/memory/budget.h"

enum { MM_JSON_ALIGNMENT = 64 }; /* in bytes, of each matrix's elements */

static inline size_t mm_json_aligned(size_t bytes) {
    return mm_size_round_up(bytes, MM_JSON_ALIGNMENT);
}

/* At the start the caller sets `limits`, `reservation`, `bytes_left`, `element_bytes` and `keeps`, and all
 * other members to 0. One thread at a time may use a store. */
struct mm_json_store {
    const struct mm_limits *limits;
    struct mm_reservation *reservation;
    uint64_t bytes_left;     /* bytes of the body after the current chunk; UINT64_MAX: unknown */
    size_t element_bytes;    /* may change while the store is empty */
    bool keeps;              /* false: the store has no memory and accepts no more elements */
    struct mm_buffer memory; /* a caller that moves the buffer elsewhere clears this member */
    size_t used_bytes;
    size_t capacity_bytes; /* usable bytes of `memory` */
    size_t bytes_max;      /* how far `memory` can grow without a move */
};

/* Frees the memory. The store accepts no more elements. */
void mm_json_store_drop(struct mm_json_store *store);

/* Makes space for one more element; if memory is short, calls mm_json_store_drop. The text of the element
 * begins or ends at `at`, and the current chunk ends at `end`. The length of the remaining text limits how
 * many elements may follow. */
void mm_json_store_grow(struct mm_json_store *store, const char *at, const char *end);

/* Returns where the next element goes; NULL if the store accepts none. The caller then adds the element's
 * bytes to used_bytes. mm_json_store_grow explains `at` and `end`. */
static inline void *mm_json_store_next(struct mm_json_store *store, const char *at, const char *end) {
    if (store->keeps && store->used_bytes + store->element_bytes > store->capacity_bytes)
        mm_json_store_grow(store, at, end);
    return store->keeps ? (char *)store->memory.data + store->used_bytes : NULL;
}
