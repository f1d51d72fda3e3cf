/* The memory of scanned elements. */
#include "api/json/json_store.h"

#include <string.h>

void mm_json_store_begin(struct mm_json_store *store, uint64_t body_bytes, const struct mm_limits *limits,
                         struct mm_buffers *buffers) {
    *store = (struct mm_json_store){.limits = limits,
                                    .buffers = buffers,
                                    .bytes_left = body_bytes,
                                    .element_bytes = sizeof(float),
                                    .keeps = true};
}

void mm_json_store_drop(struct mm_json_store *store) {
    store->keeps = false;
    store->used_bytes = store->room_bytes = store->bytes_max = 0;
    if (store->memory.data != NULL)
        mm_buffers_release(store->buffers, &store->memory);
}

/* How many elements may still come. `at` is the begin or the end of the next one; each takes two characters
 * with its comma. If the length of the body is unknown, the room doubles at least, so all moves together copy
 * no more than a few times the elements. */
static uint64_t foretell(const struct mm_json_store *store, const char *at, const char *end,
                         size_t elements) {
    const uint64_t here = (uint64_t)(end - at + 1) / 2 + 1;
    return here + (store->bytes_left == MM_LENGTH_UNKNOWN ? elements : store->bytes_left / 2 + 1);
}

/* Moves all to memory with room for the next element, which can grow to what is foretold; false if there is
 * none. */
static bool move(struct mm_json_store *store, const char *at, const char *end) {
    const size_t held_bytes = store->used_bytes < store->room_bytes ? store->used_bytes : store->room_bytes;
    const size_t needed = store->used_bytes + store->element_bytes;
    const uint64_t elements = foretell(store, at, end, store->used_bytes / store->element_bytes);
    size_t bytes = store->limits->memory_bytes_max, wanted;
    if (!__builtin_mul_overflow(elements, store->element_bytes, &wanted) &&
        mm_size_add(wanted, store->used_bytes, &wanted) && wanted < bytes)
        bytes = wanted;
    struct mm_buffer memory = {0};
    /* What the second matrix is moved by, to begin aligned, comes on top. */
    if (bytes < needed || !mm_size_add(bytes, MM_JSON_ALIGNMENT, &bytes) || bytes <= store->bytes_max ||
        mm_buffers_grow(store->buffers, needed, bytes, &memory, NULL) != MM_OK)
        return false;
    if (store->memory.data != NULL) {
        memcpy(memory.data, store->memory.data, held_bytes);
        mm_buffers_release(store->buffers, &store->memory);
    }
    store->memory = memory;
    store->bytes_max = bytes;
    return true;
}

void mm_json_store_grow(struct mm_json_store *store, const char *at, const char *end) {
    const size_t needed = store->used_bytes + store->element_bytes;
    const bool has_room =
        needed > store->bytes_max
            ? move(store, at, end)
            : mm_buffers_grow(store->buffers, needed, store->bytes_max, &store->memory, NULL) == MM_OK;
    if (has_room)
        store->room_bytes = store->memory.bytes < store->bytes_max ? store->memory.bytes : store->bytes_max;
    else
        mm_json_store_drop(store);
}
