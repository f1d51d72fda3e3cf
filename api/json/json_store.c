/* Grows the memory for the elements of a JSON request. */
#include "api/json/json_store.h"

#include <string.h>

void mm_json_store_drop(struct mm_json_store *store) {
    store->keeps = false;
    store->used_bytes = store->capacity_bytes = store->bytes_max = 0;
    if (store->memory.data != NULL)
        mm_reservation_free(store->reservation, &store->memory);
}

/* Estimates how many elements follow. An element and its comma take at least two characters. If the body's
 * length is unknown, assumes that at least as many elements follow as were read. The store then at least
 * doubles when it grows, so elements are copied only a few times. */
static uint64_t estimate_elements(const struct mm_json_store *store, const char *at, const char *end,
                                  size_t elements) {
    const uint64_t here = (uint64_t)(end - at + 1) / 2 + 1;
    return here + (store->bytes_left == UINT64_MAX ? elements : store->bytes_left / 2 + 1);
}

/* Returns the size to which a block of `bytes` bytes should grow: at least `needed`, at most bytes_max. */
static size_t next_bytes(size_t bytes, size_t needed, size_t bytes_max) {
    const size_t stepped = bytes + mm_reservation_step(bytes);
    return mm_size_min(stepped > needed ? stepped : needed, bytes_max);
}

/* Moves all elements to a block that can grow to the estimated size. False if memory is short. */
static bool move(struct mm_json_store *store, const char *at, const char *end) {
    const size_t held_bytes = mm_size_min(store->used_bytes, store->capacity_bytes);
    const size_t needed = store->used_bytes + store->element_bytes;
    const uint64_t elements = estimate_elements(store, at, end, store->used_bytes / store->element_bytes);
    size_t bytes = store->limits->memory_bytes_max, wanted;
    if (!__builtin_mul_overflow(elements, store->element_bytes, &wanted) &&
        mm_size_add(wanted, store->used_bytes, &wanted))
        bytes = mm_size_min(bytes, wanted);
    struct mm_buffer memory = {0};
    if (bytes < needed || !mm_size_add(bytes, MM_JSON_PADDING_MAX, &bytes) || bytes <= store->bytes_max ||
        mm_reservation_grow(store->reservation, next_bytes(0, needed, bytes), bytes, &memory, NULL) != MM_OK)
        return false;
    if (store->memory.data != NULL) {
        memcpy(memory.data, store->memory.data, held_bytes);
        mm_reservation_free(store->reservation, &store->memory);
    }
    store->memory = memory;
    store->bytes_max = bytes;
    return true;
}

/* A block grows in place up to bytes_max. Elements move to another block only in two cases: the body's length
 * is unknown, or a later operand has larger elements. Both blocks exist during the move. */
void mm_json_store_grow(struct mm_json_store *store, const char *at, const char *end) {
    const size_t needed = store->used_bytes + store->element_bytes;
    const bool can_grow = needed > store->bytes_max
                              ? move(store, at, end)
                              : mm_reservation_grow(store->reservation,
                                                    next_bytes(store->memory.bytes, needed, store->bytes_max),
                                                    store->bytes_max, &store->memory, NULL) == MM_OK;
    if (can_grow)
        store->capacity_bytes = mm_size_min(store->memory.bytes, store->bytes_max);
    else
        mm_json_store_drop(store);
}
