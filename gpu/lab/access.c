/* Computes the addresses of the patterns, and the banks and sectors that they access. */
#include "gpu/lab/access.h"

#include "gpu/names.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

MM_DEFINE_NAMES(mm_memory_name, mm_memory, MM_MEMORY_COUNT, MM_MEMORY_TABLE)
MM_DEFINE_NAMES(mm_pattern_name, mm_pattern, MM_PATTERN_COUNT, MM_PATTERN_TABLE)

/* Returns the index of the word that a lane accesses, before padding. */
static unsigned word_of(const struct mm_access *access, unsigned lane) {
    switch (access->pattern) {
    case MM_PATTERN_LINEAR:
        return lane;
    case MM_PATTERN_PERMUTED:
        /* 7 and 16 have no common factor, so the 16 lanes of a half-warp read 16 different words. The shuffle
         * stays within a half-warp, because words of 8 bytes of different half-warps can share a bank. */
        return (lane & 16) | ((7 * lane + 3) & 15);
    case MM_PATTERN_STRIDE:
        assert(access->stride >= 1 && access->stride <= MM_STRIDE_MAX);
        return access->stride * lane;
    case MM_PATTERN_SAME_BANK:
        return MM_BANK_COUNT * lane;
    case MM_PATTERN_OFFSETS:
        return access->words[lane];
    case MM_PATTERN_BROADCAST:
    case MM_PATTERN_COUNT:
        break;
    }
    assert(access->pattern == MM_PATTERN_BROADCAST);
    return 0;
}

void mm_access_offsets(const struct mm_access *access, uint32_t offsets[MM_WARP_LANES]) {
    assert(access->word_bytes == 4 || access->word_bytes == 8);
    for (unsigned lane = 0; lane < MM_WARP_LANES; lane++) {
        unsigned word = word_of(access, lane);
        offsets[lane] = MM_LANE_INACTIVE;
        if (word == MM_LANE_INACTIVE)
            continue;
        word += access->shift;
        if (access->padded)
            word += word / MM_BANK_COUNT;
        offsets[lane] = word * access->word_bytes;
        assert(offsets[lane] + access->word_bytes <= MM_ACCESS_BYTES_MAX);
    }
}

/* Adds a value to a sorted set of `count` values. Returns the new count. */
static unsigned add(uint32_t *set, unsigned count, uint32_t value) {
    unsigned place = count;
    while (place > 0 && set[place - 1] > value)
        place--;
    if (place > 0 && set[place - 1] == value)
        return count;
    memmove(set + place + 1, set + place, (count - place) * sizeof *set);
    set[place] = value;
    return count + 1;
}

/* Adds the cost of one transaction. If an access is wider than a bank, a lane accesses several words. */
static void serve(const uint32_t *offsets, unsigned first, unsigned lanes, unsigned words_of_lane,
                  unsigned bank_bytes, struct mm_bank_cost *cost) {
    uint32_t words[MM_WARP_LANES + 1];
    unsigned served[MM_BANK_COUNT] = {0};
    unsigned count = 0;
    unsigned degree = 0;
    for (unsigned lane = first; lane < first + lanes; lane++)
        for (unsigned word = 0; word < words_of_lane && offsets[lane] != MM_LANE_INACTIVE; word++)
            count = add(words, count, offsets[lane] / bank_bytes + word);
    assert(count <= MM_WARP_LANES);
    for (unsigned index = 0; index < count; index++) {
        const unsigned bank = words[index] % MM_BANK_COUNT;
        served[bank]++;
        if (served[bank] > degree)
            degree = served[bank];
    }
    for (unsigned lane = first; lane < first + lanes; lane++)
        for (unsigned word = 0; word < words_of_lane && offsets[lane] != MM_LANE_INACTIVE; word++)
            if (served[mm_bank_of(offsets[lane] + word * bank_bytes, bank_bytes)] > 1)
                cost->conflicts |= UINT32_C(1) << lane;
    cost->transactions += count > 0;
    cost->passes += degree;
    if (degree > cost->degree)
        cost->degree = degree;
}

/* Whether lanes whose numbers differ only in `bit` have equal offsets. */
static bool are_pairs(const uint32_t *offsets, unsigned lanes, unsigned bit) {
    for (unsigned lane = 0; lane < lanes; lane++)
        if (offsets[lane] != offsets[lane ^ bit])
            return false;
    return true;
}

struct mm_bank_cost mm_banks_predict(const uint32_t offsets[MM_WARP_LANES], unsigned word_bytes,
                                     unsigned bank_bytes) {
    assert(word_bytes >= 1 && word_bytes <= 16);
    assert(bank_bytes == 4 || bank_bytes == 8);
    struct mm_bank_cost cost = {0};
    const unsigned words_of_lane = word_bytes > bank_bytes ? word_bytes / bank_bytes : 1;
    const unsigned alone = MM_WARP_LANES / words_of_lane, together = word_bytes == 16 ? 2 * alone : alone;
    for (unsigned first = 0; first < MM_WARP_LANES; first += together) {
        const uint32_t *group = offsets + first;
        const bool are_joined = are_pairs(group, together, 1) || are_pairs(group, together, 2);
        const unsigned lanes = are_joined ? together : alone;
        for (unsigned lane = first; lane < first + together; lane += lanes)
            serve(offsets, lane, lanes, words_of_lane, bank_bytes, &cost);
    }
    return cost;
}

struct mm_sector_cost mm_sectors_predict(const uint32_t offsets[MM_WARP_LANES], unsigned word_bytes) {
    uint32_t words[MM_WARP_LANES + 1];
    uint32_t sectors[MM_WARP_LANES + 1];
    unsigned word_count = 0;
    unsigned sector_count = 0;
    for (unsigned lane = 0; lane < MM_WARP_LANES; lane++) {
        if (offsets[lane] == MM_LANE_INACTIVE)
            continue;
        word_count = add(words, word_count, offsets[lane]);
        sector_count = add(sectors, sector_count, offsets[lane] / MM_SECTOR_BYTES);
    }
    return (struct mm_sector_cost){
        .sectors = sector_count,
        .bytes_used = word_count * word_bytes,
        .bytes_moved = sector_count * MM_SECTOR_BYTES,
    };
}
