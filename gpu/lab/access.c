/* The addresses of the patterns, and the banks and sectors that they need. It measures nothing. */
#include "gpu/lab/access.h"

#include "gpu/names.h"

#include <assert.h>
#include <stddef.h>

MM_DEFINE_NAMES(mm_memory_name, mm_memory, MM_MEMORY_COUNT, MM_MEMORY_TABLE)
MM_DEFINE_NAMES(mm_pattern_name, mm_pattern, MM_PATTERN_COUNT, MM_PATTERN_TABLE)

/* The lane's word, padding not counted. */
static unsigned word_of(const struct mm_access *access, unsigned lane) {
    switch (access->pattern) {
    case MM_PATTERN_LINEAR:
        return lane;
    case MM_PATTERN_PERMUTED:
        /* 7 and 16 have no common factor, so the 16 lanes of a half read its 16 words. If the halves were
         * mixed, two words of 8 bytes could be in one bank. */
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
        if (access->padded)
            word += word / MM_BANK_COUNT;
        offsets[lane] = word * access->word_bytes;
        assert(offsets[lane] + access->word_bytes <= MM_ACCESS_BYTES_MAX);
    }
}

/* Adds a value to a set of `count`, unless the set has it. Returns the new count. */
static unsigned add(uint32_t *set, unsigned count, uint32_t value) {
    for (unsigned index = 0; index < count; index++)
        if (set[index] == value)
            return count;
    set[count] = value;
    return count + 1;
}

/* Adds the transaction of some lanes, from `first` on. A bank's word has bank_bytes; a lane may access two.
 */
static void serve(const uint32_t *offsets, unsigned first, unsigned lanes, unsigned word_bytes,
                  unsigned bank_bytes, struct mm_bank_cost *cost) {
    const unsigned pieces = word_bytes > bank_bytes ? 2 : 1;
    uint32_t words[MM_WARP_LANES];
    unsigned served[MM_BANK_COUNT] = {0};
    unsigned count = 0;
    unsigned degree = 0;
    assert(lanes * pieces <= MM_WARP_LANES);
    for (unsigned lane = first; lane < first + lanes; lane++)
        for (unsigned piece = 0; piece < pieces && offsets[lane] != MM_LANE_INACTIVE; piece++)
            count = add(words, count, offsets[lane] / bank_bytes + piece);
    for (unsigned index = 0; index < count; index++) {
        const unsigned bank = words[index] % MM_BANK_COUNT;
        served[bank]++;
        if (served[bank] > degree)
            degree = served[bank];
    }
    for (unsigned lane = first; lane < first + lanes; lane++)
        for (unsigned piece = 0; piece < pieces && offsets[lane] != MM_LANE_INACTIVE; piece++)
            if (served[mm_bank_of(offsets[lane] + piece * bank_bytes, bank_bytes)] > 1)
                cost->conflicts |= UINT32_C(1) << lane;
    cost->passes += degree;
    if (degree > cost->degree)
        cost->degree = degree;
}

struct mm_bank_cost mm_banks_predict(const uint32_t offsets[MM_WARP_LANES], unsigned word_bytes,
                                     unsigned bank_bytes) {
    assert(word_bytes == 4 || word_bytes == 8);
    assert(bank_bytes == 4 || bank_bytes == 8);
    struct mm_bank_cost cost = {0};
    const unsigned lanes = word_bytes > bank_bytes ? MM_WARP_LANES / 2 : MM_WARP_LANES;
    for (unsigned first = 0; first < MM_WARP_LANES; first += lanes)
        serve(offsets, first, lanes, word_bytes, bank_bytes, &cost);
    return cost;
}

struct mm_sector_cost mm_sectors_predict(const uint32_t offsets[MM_WARP_LANES], unsigned word_bytes) {
    uint32_t words[MM_WARP_LANES];
    uint32_t sectors[MM_WARP_LANES];
    unsigned word_count = 0;
    unsigned sector_count = 0;
    for (unsigned lane = 0; lane < MM_WARP_LANES; lane++) {
        assert(offsets[lane] % word_bytes == 0);
        word_count = add(words, word_count, offsets[lane]);
        sector_count = add(sectors, sector_count, offsets[lane] / MM_SECTOR_BYTES);
    }
    return (struct mm_sector_cost){
        .sectors = sector_count,
        .bytes_used = word_count * word_bytes,
        .bytes_moved = sector_count * MM_SECTOR_BYTES,
    };
}
