/* Memory for the elements of a JSON request, which grows while they arrive. It knows no JSON. */
#pragma once

#include "gpu/matrix/matrix.h"
#include "gpu/memory/budget.h"

enum { MM_JSON_ALIGNMENT = 64 }; /* of each matrix's elements */

static inline size_t mm_json_aligned(size_t bytes) {
    return mm_size_round_up(bytes, MM_JSON_ALIGNMENT);
}

/* Begins with `limits`, `reservation`, `bytes_left`, `element_bytes` and `keeps` set; all else is 0. One
 * thread at a time. */
struct mm_json_store {
    const struct mm_limits *limits;
    struct mm_reservation *reservation;
    uint64_t bytes_left; /* of the body, behind the chunk at hand; UINT64_MAX: the body's length is unknown */
    size_t element_bytes;    /* may change while the store is empty */
    bool keeps;              /* false: the store holds no memory, and takes no more elements */
    struct mm_buffer memory; /* the caller may take it over, and clear this member */
    size_t used_bytes;
    size_t room_bytes; /* of `memory`, which may hold more than it can use */
    size_t bytes_max;  /* how far `memory` can grow without a move */
};

/* Releases the memory. The store takes no more elements. */
void mm_json_store_drop(struct mm_json_store *store);

/* Makes room for one more element; without memory, drops all. The next element of the text begins or ends at
 * `at`, and the chunk at hand ends at `end`: the rest of the text says how many elements may still come. */
void mm_json_store_grow(struct mm_json_store *store, const char *at, const char *end);

/* The place of the next element, which counts once the caller adds its bytes to used_bytes; NULL if the store
 * keeps none. `at` and `end` are as for mm_json_store_grow. */
static inline void *mm_json_store_next(struct mm_json_store *store, const char *at, const char *end) {
    if (store->keeps && store->used_bytes + store->element_bytes > store->room_bytes)
        mm_json_store_grow(store, at, end);
    return store->keeps ? (char *)store->memory.data + store->used_bytes : NULL;
}
