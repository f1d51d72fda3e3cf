/* Where the elements of a JSON body go while it is scanned: memory that grows with them. It knows nothing of
 * JSON but that an element takes two bytes of text at least. */
#pragma once

#include "api/codec.h"

enum { MM_JSON_ALIGNMENT = 64 }; /* of each matrix */

static inline size_t mm_json_aligned(size_t bytes) {
    return mm_size_round_up(bytes, MM_JSON_ALIGNMENT);
}

/* Owned by the caller; begins with mm_json_store_begin. One thread at a time. */
struct mm_json_store {
    const struct mm_limits *limits;
    struct mm_buffers *buffers;
    uint64_t bytes_left;     /* of the body, behind the piece at hand; or MM_LENGTH_UNKNOWN */
    size_t element_bytes;    /* may be changed while nothing was put */
    bool keeps;              /* false: elements that come find no room any more, and none is held */
    struct mm_buffer memory; /* the caller may take it over, and clear this */
    size_t used_bytes;
    size_t room_bytes;
    size_t bytes_max; /* that the memory can grow to where it is */
};

/* Holds nothing. limits and buffers are kept. */
void mm_json_store_begin(struct mm_json_store *store, uint64_t body_bytes, const struct mm_limits *limits,
                         struct mm_buffers *buffers);

/* Gives all memory back, and keeps nothing that comes later. */
void mm_json_store_drop(struct mm_json_store *store);

/* Makes room for an element that is about to come. The memory can grow, where it is, to what may follow in
 * the text from `at` to `end`, which is the rest of this piece, and in what is left of the body, but to no
 * more than limits->memory_bytes_max; 64 bytes on top align the second matrix. The elements of a body of
 * unknown length may have to move: then the old memory is held beside the new. Without memory, all is
 * dropped. */
void mm_json_store_grow(struct mm_json_store *store, const char *at, const char *end);

/* The place of the element that is about to come, which counts once used_bytes is moved on; NULL where it is
 * not kept. `at` and `end` as above. */
static inline void *mm_json_store_place(struct mm_json_store *store, const char *at, const char *end) {
    if (store->keeps && store->used_bytes + store->element_bytes > store->room_bytes)
        mm_json_store_grow(store, at, end);
    return store->keeps ? (char *)store->memory.data + store->used_bytes : NULL;
}
