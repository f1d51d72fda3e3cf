/* Random numbers that a seed determines (splitmix64, Steele and others, 2014): small, fast, and each
 * client has its own. Not for secrets. */
#ifndef MM_LOAD_RANDOM_H
#define MM_LOAD_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mm_load_random {
    uint64_t state;
};

static inline uint64_t mm_load_random_bits(struct mm_load_random *random) {
    uint64_t bits = random->state += UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

/* A number from 0 to bound − 1; bound is at least 1. */
static inline size_t mm_load_random_below(struct mm_load_random *random, size_t bound) {
    return (size_t)(mm_load_random_bits(random) % bound);
}

/* True `percent` times in a hundred. */
static inline bool mm_load_random_chance(struct mm_load_random *random, unsigned percent) {
    return mm_load_random_below(random, 100) < percent;
}

#endif
