/* Memory for the elements of a JSON request, which grows while elements arrive. */
#pragma once

#include "gpu/memory/budget.h"
#include "gpu/product/product.h"

/* Each operand begins at a multiple of 64 bytes, so each operand except the first may need padding. */
enum { MM_JSON_ALIGNMENT = 64, MM_JSON_PADDING_MAX = (MM_OPERANDS_MAX - 1) * MM_JSON_ALIGNMENT };

static inline size_t mm_json_aligned(size_t bytes) {
    return mm_size_round_up(bytes, MM_JSON_ALIGNMENT);
}

/* The caller first sets `limits`, `reservation`, `bytes_left`, `element_bytes` and `keeps`. It clears the
 * other members. One thread at a time may use a store. */
struct mm_json_store {
    const struct mm_limits *limits;
    struct mm_reservation *reservation;
    uint64_t bytes_left;     /* bytes of the body that have not arrived; UINT64_MAX if unknown */
    size_t element_bytes;    /* of the current operand */
    bool keeps;              /* false after a drop: the store accepts no elements */
    struct mm_buffer memory; /* a caller that takes ownership clears this member */
    size_t used_bytes;
    size_t capacity_bytes; /* bytes of `memory` that elements may use */
    size_t bytes_max;      /* size to which `memory` can grow in place */
};

/* Frees the memory. The store then accepts no elements. */
void mm_json_store_drop(struct mm_json_store *store);

/* Makes space for one more element; drops the store if memory is short. The text of the element begins or
 * ends at `at`, and the current chunk ends at `end`. From the text that remains, the function estimates how
 * many elements follow. */
void mm_json_store_grow(struct mm_json_store *store, const char *at, const char *end);

/* Returns the address for the next element, or NULL if the store accepts no elements. After writing the
 * element, the caller adds its bytes to used_bytes. mm_json_store_grow explains `at` and `end`. */
static inline void *mm_json_store_next(struct mm_json_store *store, const char *at, const char *end) {
    if (store->keeps && store->used_bytes + store->element_bytes > store->capacity_bytes)
        mm_json_store_grow(store, at, end);
    return store->keeps ? (char *)store->memory.data + store->used_bytes : NULL;
}
