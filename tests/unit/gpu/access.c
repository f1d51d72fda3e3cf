/* Tests the addresses of access patterns, and the predicted bank conflicts and sectors. A second, simpler
 * model computes the expected conflicts. */
#include "gpu/lab/access.h"
#include "tests/unit/unit.h"

static void test_offsets(void **state) {
    static const struct {
        struct mm_access access;
        uint32_t first, second, last; /* byte offsets of lanes 0, 1 and 31 */
    } cases[] = {
        {{MM_MEMORY_SHARED, MM_PATTERN_LINEAR, 0, 4, false, {0}}, 0, 4, 124},
        {{MM_MEMORY_SHARED, MM_PATTERN_LINEAR, 0, 8, false, {0}}, 0, 8, 248},
        {{MM_MEMORY_SHARED, MM_PATTERN_LINEAR, 0, 4, true, {0}}, 0, 4, 124},
        {{MM_MEMORY_SHARED, MM_PATTERN_STRIDE, 1, 4, false, {0}}, 0, 4, 124},
        {{MM_MEMORY_SHARED, MM_PATTERN_STRIDE, 3, 4, false, {0}}, 0, 12, 372},
        {{MM_MEMORY_SHARED, MM_PATTERN_STRIDE, 3, 4, true, {0}},
         0,
         12,
         380}, /* padding adds a word before words 32 and 64 */
        {{MM_MEMORY_SHARED, MM_PATTERN_STRIDE, 32, 4, true, {0}}, 0, 132, 4092},
        {{MM_MEMORY_SHARED, MM_PATTERN_STRIDE, 32, 8, true, {0}}, 0, 264, 8184},
        {{MM_MEMORY_SHARED, MM_PATTERN_SAME_BANK, 0, 4, false, {0}}, 0, 128, 3968},
        {{MM_MEMORY_SHARED, MM_PATTERN_SAME_BANK, 0, 4, true, {0}}, 0, 132, 4092},
        {{MM_MEMORY_SHARED, MM_PATTERN_BROADCAST, 0, 8, true, {0}}, 0, 0, 0},
        {{MM_MEMORY_GLOBAL, MM_PATTERN_STRIDE, 32, 8, false, {0}}, 0, 256, 7936},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        uint32_t offsets[MM_WARP_LANES];
        mm_access_offsets(&cases[index].access, offsets);
        assert_int_equal(offsets[0], cases[index].first);
        assert_int_equal(offsets[1], cases[index].second);
        assert_int_equal(offsets[31], cases[index].last);
    }
}

/* The permuted lanes read each of the first 32 words once. The order differs from that of `linear`. */
static void test_permuted(void **state) {
    const struct mm_access access = {MM_MEMORY_SHARED, MM_PATTERN_PERMUTED, 0, 4, false, {0}};
    uint32_t offsets[MM_WARP_LANES];
    uint32_t seen = 0;
    unsigned moved = 0;
    mm_access_offsets(&access, offsets);
    for (unsigned lane = 0; lane < MM_WARP_LANES; lane++) {
        assert_in_range(offsets[lane], 0, 124);
        seen |= UINT32_C(1) << offsets[lane] / 4;
        moved += offsets[lane] != 4 * lane;
    }
    assert_true(seen == UINT32_MAX);
    assert_in_range(moved, 16, 32);
}

/* Marks each byte that a lane reads, and counts the words of each bank. */
static unsigned marked_degree(const uint32_t *offsets, unsigned lanes, unsigned word_bytes,
                              unsigned bank_bytes) {
    bool marks[MM_ACCESS_BYTES_MAX] = {false};
    unsigned most = 0;
    for (unsigned lane = 0; lane < lanes; lane++)
        for (unsigned byte = 0; byte < word_bytes && offsets[lane] != MM_LANE_INACTIVE; byte++)
            marks[offsets[lane] + byte] = true;
    for (unsigned bank = 0; bank < 32; bank++) {
        unsigned words = 0;
        for (unsigned begin = bank * bank_bytes; begin < MM_ACCESS_BYTES_MAX; begin += 32 * bank_bytes)
            words += memchr(marks + begin, 1, bank_bytes) != NULL;
        most = words > most ? words : most;
    }
    return most;
}

static void assert_models_agree(const uint32_t *offsets, unsigned word_bytes, unsigned bank_bytes) {
    const struct mm_bank_cost cost = mm_banks_predict(offsets, word_bytes, bank_bytes);
    if (word_bytes == 8 && bank_bytes == 4) {
        const unsigned low = marked_degree(offsets, 16, 8, 4);
        const unsigned high = marked_degree(offsets + 16, 16, 8, 4);
        assert_int_equal(cost.degree, low > high ? low : high);
        assert_int_equal(cost.passes, low + high);
        return;
    }
    assert_int_equal(cost.degree, marked_degree(offsets, 32, word_bytes, bank_bytes));
    assert_int_equal(cost.passes, cost.degree);
}

static void test_against_marks(void **state) {
    for (unsigned pattern = 0; pattern < MM_PATTERN_OFFSETS; pattern++)
        for (unsigned stride = 1; stride <= (pattern == MM_PATTERN_STRIDE ? MM_STRIDE_MAX : 1); stride++)
            for (unsigned options = 0; options < 8; options++) {
                const struct mm_access access = {MM_MEMORY_SHARED,    (enum mm_pattern)pattern, stride,
                                                 options & 1 ? 8 : 4, (options & 2) != 0,       {0}};
                uint32_t offsets[MM_WARP_LANES];
                mm_access_offsets(&access, offsets);
                assert_models_agree(offsets, access.word_bytes, options & 4 ? 8 : 4);
            }
}

/* Some lanes read the same word, and some are inactive. */
static void test_scattered(void **state) {
    uint32_t random = 1;
    for (unsigned trial = 0; trial < 500; trial++) {
        const unsigned word_bytes = trial & 1 ? 8 : 4;
        uint32_t offsets[MM_WARP_LANES];
        for (unsigned lane = 0; lane < MM_WARP_LANES; lane++) {
            random = random * 1664525u + 1013904223u;
            offsets[lane] = (random >> 16) % (16u << trial % 7) * word_bytes;
            if (random >> 8 & trial & 8)
                offsets[lane] = MM_LANE_INACTIVE;
        }
        assert_models_agree(offsets, word_bytes, trial & 2 ? 8 : 4);
    }
}

/* If `first` is 0, lanes 0 to 3 are active. If `first` is 15, lanes 15 and 16 are active. */
static void test_chosen_offsets(void **state) {
    static const struct {
        uint32_t words[4];
        unsigned first, word_bytes, bank_bytes, degree, passes;
        uint32_t conflicts;
    } cases[] = {
        {{5, 5, 5, 5}, 0, 4, 4, 1, 1, 0},     /* all lanes read one word */
        {{0, 0, 32, 1}, 0, 4, 4, 2, 2, 7},    /* two lanes read one word; lane 3 has a bank for itself */
        {{0, 32, 64, 96}, 0, 4, 4, 4, 4, 15}, /* all words are in one bank */
        {{0, 1, 2, MM_LANE_INACTIVE}, 0, 4, 4, 1, 1, 0},
        {{0, MM_LANE_INACTIVE, MM_LANE_INACTIVE, 32}, 0, 4, 4, 2, 2, 9},
        {{0, 1, 32, 33}, 0, 4, 8, 1, 1, 0},        /* a wide bank has two of these words */
        {{0, 64, 1, 65}, 0, 4, 8, 2, 2, 15},       /* words at a distance of 64 are in one wide bank */
        {{0, 32, 64, 1}, 0, 8, 8, 3, 3, 7},        /* 8 bytes are one word of a wide bank */
        {{0, 16, 32, 1}, 0, 8, 4, 3, 3, 7},        /* 8 bytes are two words of a narrow bank */
        {{0, 16, 1, 1}, 15, 8, 4, 1, 2, 0},        /* lanes 15 and 16 are in different transactions */
        {{0, 32, 2, 2}, 15, 4, 4, 2, 2, 3u << 15}, /* lanes 15 and 16 are in one transaction */
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        struct mm_access access = {
            MM_MEMORY_SHARED, MM_PATTERN_OFFSETS, 0, cases[index].word_bytes, false, {0}};
        uint32_t offsets[MM_WARP_LANES];
        for (unsigned lane = 0; lane < MM_WARP_LANES; lane++)
            access.words[lane] = lane - cases[index].first < 4 ? cases[index].words[lane - cases[index].first]
                                                               : MM_LANE_INACTIVE;
        mm_access_offsets(&access, offsets);
        const struct mm_bank_cost cost =
            mm_banks_predict(offsets, access.word_bytes, cases[index].bank_bytes);
        if (cost.degree != cases[index].degree || cost.passes != cases[index].passes ||
            cost.conflicts != cases[index].conflicts)
            fail_msg("case %zu: degree %u, %u passes, conflicts %x", index, cost.degree, cost.passes,
                     cost.conflicts);
        assert_models_agree(offsets, access.word_bytes, cases[index].bank_bytes);
    }
}

/* The largest offset must lie within the memory, even with padding. */
static void test_last_offset(void **state) {
    struct mm_access access = {MM_MEMORY_SHARED, MM_PATTERN_OFFSETS, 0, 8, true, {MM_OFFSET_MAX}};
    uint32_t offsets[MM_WARP_LANES];
    mm_access_offsets(&access, offsets);
    assert_int_equal(offsets[0], MM_ACCESS_BYTES_MAX - 8);
    assert_int_equal(offsets[1], 0);
    assert_int_equal(mm_bank_of(offsets[0], 4), (2047 + 63) * 2 % 32);
    assert_int_equal(mm_bank_of(offsets[0], 8), (2047 + 63) % 32);
}

static void test_sectors(void **state) {
    static const struct {
        enum mm_pattern pattern;
        unsigned stride, word_bytes, sectors, bytes_used, bytes_moved;
    } cases[] = {
        {MM_PATTERN_STRIDE, 1, 4, 4, 128, 128},      {MM_PATTERN_STRIDE, 2, 4, 8, 128, 256},
        {MM_PATTERN_STRIDE, 3, 4, 12, 128, 384},     {MM_PATTERN_STRIDE, 5, 4, 20, 128, 640},
        {MM_PATTERN_STRIDE, 7, 4, 28, 128, 896},     {MM_PATTERN_STRIDE, 8, 4, 32, 128, 1024},
        {MM_PATTERN_STRIDE, 32, 4, 32, 128, 1024},   {MM_PATTERN_STRIDE, 1, 8, 8, 256, 256},
        {MM_PATTERN_STRIDE, 3, 8, 24, 256, 768},     {MM_PATTERN_STRIDE, 4, 8, 32, 256, 1024},
        {MM_PATTERN_STRIDE, 31, 8, 32, 256, 1024},   {MM_PATTERN_LINEAR, 0, 4, 4, 128, 128},
        {MM_PATTERN_PERMUTED, 0, 4, 4, 128, 128},    {MM_PATTERN_BROADCAST, 0, 4, 1, 4, 32},
        {MM_PATTERN_SAME_BANK, 0, 4, 32, 128, 1024},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        const struct mm_access access = {
            MM_MEMORY_GLOBAL, cases[index].pattern, cases[index].stride, cases[index].word_bytes, false, {0}};
        uint32_t offsets[MM_WARP_LANES];
        mm_access_offsets(&access, offsets);
        const struct mm_sector_cost cost = mm_sectors_predict(offsets, access.word_bytes);
        assert_int_equal(cost.sectors, cases[index].sectors);
        assert_int_equal(cost.bytes_used, cases[index].bytes_used);
        assert_int_equal(cost.bytes_moved, cases[index].bytes_moved);
    }
}

RUN_TESTS(test_offsets, test_permuted, test_against_marks, test_scattered, test_chosen_offsets,
          test_last_offset, test_sectors)
