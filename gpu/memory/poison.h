/* Marks memory that nobody may touch, for the address sanitizer: a pool's free memory, and what lies behind
 * the bytes that were asked for, would else look like any other. Nothing happens in other builds. Any thread
 * may call these functions, for memory that it alone uses. */
#ifndef MM_GPU_MEMORY_POISON_H
#define MM_GPU_MEMORY_POISON_H

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MM_HAS_ADDRESS_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define MM_HAS_ADDRESS_SANITIZER 1
#endif

#ifdef MM_HAS_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
static inline void mm_poison(const void *memory, size_t bytes) {
    ASAN_POISON_MEMORY_REGION(memory, bytes);
}
static inline void mm_unpoison(const void *memory, size_t bytes) {
    ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
}
#else
static inline void mm_poison(const void *memory, size_t bytes) {
    (void)memory;
    (void)bytes;
}
static inline void mm_unpoison(const void *memory, size_t bytes) {
    (void)memory;
    (void)bytes;
}
#endif
#endif
