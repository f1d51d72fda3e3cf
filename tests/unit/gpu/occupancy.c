/* Compares the computed occupancy with NVIDIA's cuda_occupancy.h of CUDA 13. */
#include "gpu/lab/occupancy.h"
#include "tests/unit/unit.h"

#define NONE MM_OCCUPANCY_UNLIMITED

static void test_known_answers(void **state) {
    static const struct {
        unsigned capability;
        struct mm_block_use use;
        unsigned blocks, by[MM_LIMITER_COUNT];
    } cases[] = {
        {90, {256, 32, 0}, 8, {8, 8, 228, 32}},
        {90, {256, 33, 0}, 6, {8, 6, 228, 32}}, /* a warp gets registers in units of 256, so 33 count as 40 */
        {90, {256, 40, 0}, 6, {8, 6, 228, 32}},
        {90, {256, 41, 0}, 5, {8, 5, 228, 32}},
        {90, {1024, 64, 0}, 1, {2, 1, 228, 32}},
        {90, {1024, 65, 0}, 0, {2, 0, 228, 32}}, /* too many registers for a launch */
        {90, {160, 80, 0}, 4, {12, 4, 228, 32}},
        {90, {129, 255, 0}, 1, {12, 1, 228, 32}},
        {90, {257, 255, 0}, 0, {7, 0, 228, 32}},
        {90, {1, 0, 0}, 32, {64, NONE, 228, 32}},
        {90, {33, 16, 0}, 32, {32, 64, 228, 32}},
        {90, {128, 16, 13568}, 16, {16, 32, 16, 32}}, /* two limits; each block gets 14592 bytes of 228 KiB */
        {90, {128, 16, 13569}, 15, {16, 32, 15, 32}}, /* each block gets 128 bytes more */
        {90, {128, 16, 232448}, 1, {16, 32, 1, 32}},
        {90, {128, 16, 232449}, 0, {16, 32, 0, 32}},
        {70, {64, 16, 0}, 32, {32, 64, NONE, 32}},
        {70, {64, 16, 1}, 32, {32, 64, 384, 32}},
        {70, {64, 16, 98304}, 1, {32, 64, 1, 32}},
        {75, {128, 32, 8192}, 8, {8, 16, 8, 16}},
        {80, {256, 40, 8192}, 6, {8, 6, 18, 32}},
        {80, {128, 32, 166912}, 1, {16, 16, 1, 32}},
        {86, {64, 16, 0}, 16, {24, 64, 100, 16}},
        {89, {64, 16, 0}, 24, {24, 64, 100, 24}},
        {89, {256, 64, 23588}, 4, {6, 4, 4, 24}},
        {100, {256, 128, 65536}, 2, {8, 2, 3, 32}},
        {120, {1024, 32, 101376}, 1, {1, 2, 1, 24}},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        struct mm_occupancy got;
        assert_true(mm_occupancy_predict(cases[index].capability, &cases[index].use, &got));
        if (got.blocks != cases[index].blocks ||
            memcmp(got.blocks_by, cases[index].by, sizeof got.blocks_by) != 0)
            fail_msg("case %zu: %u blocks, by %u, %u, %u, %u", index, got.blocks, got.blocks_by[0],
                     got.blocks_by[1], got.blocks_by[2], got.blocks_by[3]);
        assert_int_equal(got.warps, got.blocks * ((cases[index].use.threads + 31) / 32));
    }
}

static void test_capabilities(void **state) {
    static const unsigned expected[] = {70, 75, 80, 86, 89, 90, 100, 120, 0};
    static const unsigned warps[] = {64, 32, 64, 48, 48, 64, 64, 48};
    const struct mm_block_use use = {1, 1, 0};
    struct mm_occupancy got;
    for (size_t index = 0; index < COUNT(expected); index++)
        assert_int_equal(mm_occupancy_capability(index), expected[index]);
    for (size_t index = 0; index < COUNT(warps); index++) {
        assert_true(mm_occupancy_predict(expected[index], &use, &got));
        assert_int_equal(got.warps_max, warps[index]);
    }
    assert_false(mm_occupancy_predict(0, &use, &got));
    assert_false(mm_occupancy_predict(87, &use, &got));
}

RUN_TESTS(test_known_answers, test_capabilities)
