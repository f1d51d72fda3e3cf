/* How the memory for elements grows. */
#include "api/json/json_store.h"

#include <string.h>

void mm_json_store_drop(struct mm_json_store *store) {
    store->keeps = false;
    store->used_bytes = store->capacity_bytes = store->bytes_max = 0;
    if (store->memory.data != NULL)
        mm_reservation_free(store->reservation, &store->memory);
}

/* Most elements that may still come. An element takes at least two characters with its comma. If the length
 * of the body is unknown, the number of elements may double, so all moves together copy each element only a
 * few times. */
static uint64_t foretell(const struct mm_json_store *store, const char *at, const char *end,
                         size_t elements) {
    const uint64_t here = (uint64_t)(end - at + 1) / 2 + 1;
    return here + (store->bytes_left == UINT64_MAX ? elements : store->bytes_left / 2 + 1);
}

/* The next size of memory of `bytes` bytes, of which `needed` are needed. */
static size_t step_to(size_t bytes, size_t needed, size_t bytes_max) {
    const size_t stepped = bytes + mm_reservation_step(bytes);
    return mm_size_min(stepped > needed ? stepped : needed, bytes_max);
}

/* Moves all elements to memory that has space for the next element and can grow for all that may come. False
 * if there is none. */
static bool move(struct mm_json_store *store, const char *at, const char *end) {
    const size_t held_bytes = mm_size_min(store->used_bytes, store->capacity_bytes);
    const size_t needed = store->used_bytes + store->element_bytes;
    const uint64_t elements = foretell(store, at, end, store->used_bytes / store->element_bytes);
    size_t bytes = store->limits->memory_bytes_max, wanted;
    if (!__builtin_mul_overflow(elements, store->element_bytes, &wanted) &&
        mm_size_add(wanted, store->used_bytes, &wanted))
        bytes = mm_size_min(bytes, wanted);
    struct mm_buffer memory = {0};
    /* Space to align the second matrix. */
    if (bytes < needed || !mm_size_add(bytes, MM_JSON_ALIGNMENT, &bytes) || bytes <= store->bytes_max ||
        mm_reservation_grow(store->reservation, step_to(0, needed, bytes), bytes, &memory, NULL) != MM_OK)
        return false;
    if (store->memory.data != NULL) {
        memcpy(memory.data, store->memory.data, held_bytes);
        mm_reservation_free(store->reservation, &store->memory);
    }
    store->memory = memory;
    store->bytes_max = bytes;
    return true;
}

/* Memory grows in place as far as was estimated when it was reserved. Only the elements of a body of unknown
 * length must move, and then both blocks exist for a moment. */
void mm_json_store_grow(struct mm_json_store *store, const char *at, const char *end) {
    const size_t needed = store->used_bytes + store->element_bytes;
    const bool can_grow =
        needed > store->bytes_max
            ? move(store, at, end)
            : mm_reservation_grow(store->reservation, step_to(store->memory.bytes, needed, store->bytes_max),
                                  store->bytes_max, &store->memory, NULL) == MM_OK;
    if (can_grow)
        store->capacity_bytes = mm_size_min(store->memory.bytes, store->bytes_max);
    else
        mm_json_store_drop(store);
}
