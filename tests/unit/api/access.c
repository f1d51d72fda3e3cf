/* Tests the benchmark's report of memory accesses, as JSON and as a table. */
#include "api/lab/access.h"
#include "tests/unit/unit.h"

static const struct mm_backend backend = {.name = "fast"};
static const struct mm_device card = {.backend = &backend, .name = "Card \xff", .shared_bank_bytes = 4};

/* BANKS_N lists the banks of 32 lanes if lane i reads a word in bank N·i mod 32. */
#define BANKS_1                                                                                              \
    "`bank_bytes`: 4, `banks`: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, "  \
    "21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31], "
#define BANKS_2 /* a word of 8 bytes uses two banks; these are the lower banks */                            \
    "`bank_bytes`: 4, `banks`: [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 0, 2, 4, 6, 8, "  \
    "10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30], "
#define BANKS_0                                                                                              \
    "`bank_bytes`: 4, `banks`: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, " \
    "0, 0, 0, 0, 0, 0, 0], "
#define TIMED "`access`: `read`, `measured`: true}"

static void make_probe(struct mm_probe *probe) {
    static const struct mm_access accesses[] = {
        {MM_MEMORY_SHARED, MM_PATTERN_LINEAR, 0, 4, false, {0}},
        {MM_MEMORY_SHARED, MM_PATTERN_SAME_BANK, 0, 8, true, {0}},
        {MM_MEMORY_SHARED, MM_PATTERN_STRIDE, 32, 4, false, {0}},
        {MM_MEMORY_GLOBAL, MM_PATTERN_STRIDE, 2, 4, false, {0}},
    };
    static const struct mm_access_time times[] = {{23, 4}, {24.0625, 8.00049}, {85.5, 32}, {0, 12.5}};
    *probe = (struct mm_probe){.device = &card, .count = COUNT(accesses), .done = COUNT(accesses)};
    memcpy(probe->accesses, accesses, sizeof accesses);
    memcpy(probe->times, times, sizeof times);
    probe->speed = (struct mm_memory_speed){23, 262, 621, 33e12, 4.125e12};
}

static void assert_report(const struct mm_probe *probe, const char *expected) {
    size_t length = 0;
    char *text = mm_access_json(probe, &length);
    expect_text(text, length, quoted(expected));
}

#define HEAD                                                                                                 \
    "{`op`: `shared_access`, `backend`: `fast`, `device`: `Card \xef\xbf\xbd`, `shared_bank_bytes`: 4, "     \
    "`rows`: ["

static void test_report(void **state) {
    struct mm_probe probe;
    make_probe(&probe);
    assert_report(
        &probe, HEAD
        "{`memory`: `shared`, `pattern`: `linear`, `stride`: null, `word_bytes`: 4, `padded`: false, "
        "`predicted_degree`: 1, `predicted_wavefronts`: 1, `latency_cycles`: 23.0, `cycles_per_access`: "
        "4.0, `bytes_per_cycle`: 32.0, " BANKS_1 TIMED
        ", {`memory`: `shared`, `pattern`: `same_bank`, `stride`: null, "
        "`word_bytes`: 8, `padded`: true, `predicted_degree`: 1, `predicted_wavefronts`: 2, "
        "`latency_cycles`: 24.063, `cycles_per_access`: 8.0, `bytes_per_cycle`: 31.998, " BANKS_2 TIMED
        ", {`memory`: `shared`, `pattern`: `stride`, `stride`: 32, `word_bytes`: 4, `padded`: false, "
        "`predicted_degree`: 32, `predicted_wavefronts`: 32, `latency_cycles`: 85.5, "
        "`cycles_per_access`: 32.0, `bytes_per_cycle`: 4.0, " BANKS_0 TIMED
        ", {`memory`: `global`, `pattern`: `stride`, "
        "`stride`: 2, `word_bytes`: 4, `padded`: false, `predicted_sectors`: 8, `predicted_bytes_used`: "
        "128, `predicted_bytes_moved`: 256, `cycles_per_access`: 12.5, `bytes_per_cycle`: 10.24, " TIMED "], "
        "`summary`: {`shared_latency_cycles`: 23.0, `cache_latency_cycles`: 262.0, "
        "`global_latency_cycles`: 621.0, `latency_ratio`: 27.0, `shared_gigabytes_per_second`: 33000.0, "
        "`global_gigabytes_per_second`: 4125.0, `bandwidth_ratio`: 8.0}}");
}

/* A device that fails to measure has no figures in the report, and no division by 0 occurs. */
static void test_empty_report(void **state) {
    struct mm_probe probe = {.device = &card,
                             .count = 1,
                             .accesses = {{MM_MEMORY_SHARED, MM_PATTERN_BROADCAST, 0, 4, false, {0}}}};
    assert_report(
        &probe, HEAD
        "{`memory`: `shared`, `pattern`: `broadcast`, `stride`: null, `word_bytes`: 4, `padded`: false, "
        "`predicted_degree`: 1, `predicted_wavefronts`: 1, `latency_cycles`: null, `cycles_per_access`: "
        "null, `bytes_per_cycle`: null, " BANKS_0 "`access`: `read`, `measured`: false}], `summary`: "
        "{`shared_latency_cycles`: null, `cache_latency_cycles`: "
        "null, `global_latency_cycles`: null, `latency_ratio`: null, `shared_gigabytes_per_second`: null, "
        "`global_gigabytes_per_second`: null, `bandwidth_ratio`: null}}");
}

#define LANES_LOW "lane    0    1    2    3    4    5    6    7    8    9   10   11   12   13   14   15\n"
#define LANES_HIGH "lane   16   17   18   19   20   21   22   23   24   25   26   27   28   29   30   31\n"
#define LINEAR                                                                                               \
    "\nlinear: reads of 4 bytes, banks of 4 bytes: degree 1, 1 pass\n" LANES_LOW                             \
    "byte    0    4    8   12   16   20   24   28   32   36   40   44   48   52   56   60\n"                 \
    "bank    0    1    2    3    4    5    6    7    8    9   10   11   12   13   14   15\n" LANES_HIGH      \
    "byte   64   68   72   76   80   84   88   92   96  100  104  108  112  116  120  124\n"                 \
    "bank   16   17   18   19   20   21   22   23   24   25   26   27   28   29   30   31\n"
#define PADDED                                                                                               \
    LANES_LOW                                                                                                \
    "byte    0  264  528  792 1056 1320 1584 1848 2112 2376 2640 2904 3168 3432 3696 3960\n"                 \
    "bank    0    2    4    6    8   10   12   14   16   18   20   22   24   26   28   30\n" LANES_HIGH      \
    "byte 4224 4488 4752 5016 5280 5544 5808 6072 6336 6600 6864 7128 7392 7656 7920 8184\n"                 \
    "bank    0    2    4    6    8   10   12   14   16   18   20   22   24   26   28   30\n"
#define ONE_BANK                                                                                             \
    LANES_LOW                                                                                                \
    "byte    0  128  256  384  512  640  768  896 1024 1152 1280 1408 1536 1664 1792 1920\n"                 \
    "bank   *0   *0   *0   *0   *0   *0   *0   *0   *0   *0   *0   *0   *0   *0   *0   *0\n" LANES_HIGH      \
    "byte 2048 2176 2304 2432 2560 2688 2816 2944 3072 3200 3328 3456 3584 3712 3840 3968\n"                 \
    "bank   *0   *0   *0   *0   *0   *0   *0   *0   *0   *0   *0   *0   *0   *0   *0   *0\n"
#define CHOSEN                                                                                               \
    LANES_LOW                                                                                                \
    "byte    0  256    8   12    -    -    -    -    -    -    -    -    -    -    -    -\n"                 \
    "bank   *0   *0    1    1    -    -    -    -    -    -    -    -    -    -    -    -\n" LANES_HIGH      \
    "byte    -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    -\n"                 \
    "bank    -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    -\n"
#define CONFLICT "* conflict: the bank serves another word as well, one after the other\n"

static void assert_table(const struct mm_probe *probe, const char *expected) {
    size_t length = 0;
    char *text = mm_access_table(probe, &length);
    expect_text(text, length, expected);
}

static void test_table(void **state) {
    struct mm_probe probe;
    make_probe(&probe);
    assert_table(&probe,
                 "Card \xff (fast), banks of 4 bytes; times in cycles\n"
                 "\n"
                 "shared     stride bytes padded degree     passes  latency   access bytes/cycle\n"
                 "linear          -     4     no      1          1     23.0      4.0        32.0\n"
                 "same_bank       -     8    yes      1          2     24.1      8.0        32.0\n"
                 "stride         32     4     no     32         32     85.5     32.0         4.0\n"
                 "\n"
                 "global     stride bytes sectors  used  moved   access bytes/cycle\n"
                 "stride          2     4       8   128    256     12.5        10.2\n"
                 "\n"
                 "memory         latency       GB/s\n"
                 "shared            23.0    33000.0\n"
                 "L2 cache         262.0          -\n"
                 "global           621.0     4125.0\n"
                 "shared is by      27.0        8.0 times better\n" LINEAR
                 "\nsame_bank, padded: reads of 8 bytes, banks of 4 bytes: degree 1, 2 passes\n" PADDED
                 "\nstride 32: reads of 4 bytes, banks of 4 bytes: degree 32, 32 passes\n" ONE_BANK CONFLICT);
    probe.count = 1;
    probe.times[0].cycles = 0;
    probe.speed = (struct mm_memory_speed){0};
    assert_table(&probe, "Card \xff (fast), banks of 4 bytes; times in cycles\n"
                         "\n"
                         "shared     stride bytes padded degree     passes  latency   access bytes/cycle\n"
                         "linear          -     4     no      1          1     23.0        -           -\n"
                         "\n"
                         "memory         latency       GB/s\n"
                         "shared               -          -\n"
                         "L2 cache             -          -\n"
                         "global               -          -\n"
                         "shared is by         -          - times better\n" LINEAR);
}

/* If a device does not measure an access, the table shows only predicted figures. */
static void test_predicted_table(void **state) {
    struct mm_probe probe = {
        .device = &card,
        .count = 1,
        .writes = true,
        .bank_bytes = 8,
        .accesses = {{MM_MEMORY_SHARED, MM_PATTERN_OFFSETS, 0, 4, false, {0, 64, 2, 3}}}};
    memset(probe.accesses[0].words + 4, 0xff, 28 * sizeof(uint32_t));
    assert_table(&probe,
                 "Card \xff (fast), banks of 8 bytes; writes, predicted, not measured\n"
                 "\n"
                 "shared     stride bytes padded degree     passes  latency   access bytes/cycle\n"
                 "offsets         -     4     no      2          2        -        -           -\n"
                 "\noffsets: writes of 4 bytes, banks of 8 bytes: degree 2, 2 passes\n" CHOSEN CONFLICT);
}

static void test_many_rows(void **state) {
    for (size_t count = MM_ACCESS_DRAWN_MAX; count <= MM_ACCESS_DRAWN_MAX + 1; count++) {
        struct mm_probe probe;
        make_probe(&probe);
        probe.count = count + 1; /* the last row is in global memory */
        for (size_t index = 0; index < count; index++)
            probe.accesses[index] = probe.accesses[0];
        probe.accesses[count] = (struct mm_access){MM_MEMORY_GLOBAL, MM_PATTERN_STRIDE, 2, 4, false, {0}};
        assert_int_equal(mm_access_shared_count(&probe), count);
        size_t length = 0;
        char *text = mm_access_table(&probe, &length);
        assert_non_null(text);
        assert_true((strstr(text, "lane") == NULL) == (count > MM_ACCESS_DRAWN_MAX));
        free(text);
    }
}

RUN_TESTS(test_report, test_empty_report, test_table, test_predicted_table, test_many_rows)
