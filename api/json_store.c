/* The memory of scanned elements. */
#include "api/json_store.h"

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
    store->used_bytes = store->room_bytes = 0;
    if (store->memory.data != NULL)
        mm_buffers_release(store->buffers, &store->memory);
}

/* Sixteen at a time; the counts of a byte each are added up before they overflow. */
static size_t count_commas(const char *at, const char *end) {
    typedef uint8_t block __attribute__((vector_size(16)));
    enum { BLOCK = sizeof(block), BLOCKS_MAX = 255 };
    size_t count = 0;
    while (end - at >= BLOCK) {
        block counts = {0};
        for (int blocks = 0; blocks < BLOCKS_MAX && end - at >= BLOCK; blocks++, at += BLOCK) {
            block text;
            memcpy(&text, at, sizeof text);
            counts -= (block)(text == ',');
        }
        for (int index = 0; index < BLOCK; index++)
            count += counts[index];
    }
    for (; at < end; at++)
        count += *at == ',';
    return count;
}

/* How many elements may still come where one is about to, of which `at` is the begin or the end. In this
 * piece each further one has a comma before it, and is two characters with that. In what follows they may be
 * as dense, and a bit denser. */
static uint64_t foretell(const struct mm_json_store *store, const char *at, const char *end,
                         size_t elements) {
    enum { SAMPLE_BYTES_MIN = 4096 };
    const uint64_t commas = count_commas(at, end), pairs = (uint64_t)(end - at + 1) / 2;
    const uint64_t here = (commas < pairs ? commas : pairs) + 1;
    if (store->bytes_left == 0)
        return here;
    if (store->bytes_left == MM_LENGTH_UNKNOWN || end - at < SAMPLE_BYTES_MIN)
        return here + elements / 2;
    const double share = 1.0625 * (double)here / (double)(end - at);
    return here + 1 + (uint64_t)((double)store->bytes_left * (share < 0.5 ? share : 0.5));
}

void mm_json_store_grow(struct mm_json_store *store, const char *at, const char *end) {
    const size_t held_bytes = store->used_bytes < store->room_bytes ? store->used_bytes : store->room_bytes;
    const uint64_t elements = foretell(store, at, end, store->used_bytes / store->element_bytes);
    size_t bytes = store->limits->memory_bytes_max, wanted;
    if (!__builtin_mul_overflow(elements, store->element_bytes, &wanted) &&
        mm_size_add(wanted, store->used_bytes, &wanted) && wanted < bytes)
        bytes = wanted;
    struct mm_buffer memory;
    /* What the second matrix is moved by, to begin aligned, comes on top. */
    if (bytes < store->used_bytes + store->element_bytes || !mm_size_add(bytes, MM_JSON_ALIGNMENT, &bytes) ||
        bytes <= store->room_bytes || mm_buffers_acquire(store->buffers, bytes, &memory, NULL) != MM_OK) {
        mm_json_store_drop(store);
        return;
    }
    if (store->memory.data != NULL) {
        memcpy(memory.data, store->memory.data, held_bytes);
        mm_buffers_release(store->buffers, &store->memory);
    }
    store->memory = memory;
    store->room_bytes = bytes;
}

size_t mm_json_store_align(struct mm_json_store *store) {
    const size_t beyond = store->used_bytes % MM_JSON_ALIGNMENT;
    if (beyond > 0)
        store->used_bytes += MM_JSON_ALIGNMENT - beyond;
    return store->used_bytes;
}
