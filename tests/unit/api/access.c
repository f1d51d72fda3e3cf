/* api/access: the report of made-up accesses and times, as JSON and as a table. */
#include "api/lab/access.h"
#include "tests/unit/unit.h"

static const struct mm_backend backend = {.name = "fast"};
static const struct mm_device card = {.backend = &backend, .name = "Card \xff", .shared_bank_bytes = 4};

/* The accesses, and what might have come of them. */
static void make_probe(struct mm_probe *probe) {
    static const struct mm_access accesses[] = {
        {MM_MEMORY_SHARED, MM_PATTERN_LINEAR, 0, 4, false},
        {MM_MEMORY_SHARED, MM_PATTERN_SAME_BANK, 0, 8, true},
        {MM_MEMORY_SHARED, MM_PATTERN_STRIDE, 32, 4, false},
        {MM_MEMORY_GLOBAL, MM_PATTERN_STRIDE, 2, 4, false},
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
    expect_made(text, length, quoted(expected));
}

#define HEAD                                                                                                 \
    "{`op`: `shared_access`, `backend`: `fast`, `device`: `Card \xef\xbf\xbd`, `shared_bank_bytes`: 4, "     \
    "`rows`: ["

static void test_report(void **state) {
    struct mm_probe probe;
    make_probe(&probe);
    assert_report(
        &probe,
        HEAD "{`memory`: `shared`, `pattern`: `linear`, `stride`: null, `word_bytes`: 4, `padded`: false, "
             "`predicted_degree`: 1, `predicted_wavefronts`: 1, `latency_cycles`: 23.0, `cycles_per_access`: "
             "4.0, `bytes_per_cycle`: 32.0}, {`memory`: `shared`, `pattern`: `same_bank`, `stride`: null, "
             "`word_bytes`: 8, `padded`: true, `predicted_degree`: 1, `predicted_wavefronts`: 2, "
             "`latency_cycles`: 24.063, `cycles_per_access`: 8.0, `bytes_per_cycle`: 31.998}, {`memory`: "
             "`shared`, `pattern`: `stride`, `stride`: 32, `word_bytes`: 4, `padded`: false, "
             "`predicted_degree`: 32, `predicted_wavefronts`: 32, `latency_cycles`: 85.5, "
             "`cycles_per_access`: 32.0, `bytes_per_cycle`: 4.0}, {`memory`: `global`, `pattern`: `stride`, "
             "`stride`: 2, `word_bytes`: 4, `padded`: false, `predicted_sectors`: 8, `predicted_bytes_used`: "
             "128, `predicted_bytes_moved`: 256, `cycles_per_access`: 12.5, `bytes_per_cycle`: 10.24}], "
             "`summary`: {`shared_latency_cycles`: 23.0, `cache_latency_cycles`: 262.0, "
             "`global_latency_cycles`: 621.0, `latency_ratio`: 27.0, `shared_gigabytes_per_second`: 33000.0, "
             "`global_gigabytes_per_second`: 4125.0, `bandwidth_ratio`: 8.0}}");
}

/* A device can fail to tell one from nothing: no figure is then made up, and nothing is divided by 0. */
static void test_report_of_nothing(void **state) {
    struct mm_probe probe = {
        .device = &card, .count = 1, .accesses = {{MM_MEMORY_SHARED, MM_PATTERN_BROADCAST, 0, 4, false}}};
    assert_report(
        &probe, HEAD
        "{`memory`: `shared`, `pattern`: `broadcast`, `stride`: null, `word_bytes`: 4, `padded`: false, "
        "`predicted_degree`: 1, `predicted_wavefronts`: 1, `latency_cycles`: null, `cycles_per_access`: "
        "null, `bytes_per_cycle`: null}], `summary`: {`shared_latency_cycles`: null, `cache_latency_cycles`: "
        "null, `global_latency_cycles`: null, `latency_ratio`: null, `shared_gigabytes_per_second`: null, "
        "`global_gigabytes_per_second`: null, `bandwidth_ratio`: null}}");
}

static void assert_table(const struct mm_probe *probe, const char *expected) {
    size_t length = 0;
    char *text = mm_access_table(probe, &length);
    expect_made(text, length, expected);
}

static void test_table(void **state) {
    struct mm_probe probe;
    make_probe(&probe);
    assert_table(&probe, "Card \xff (fast), banks of 4 bytes; times in cycles\n"
                         "\n"
                         "shared     stride bytes padded degree wavefronts  latency   access bytes/cycle\n"
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
                         "shared is by      27.0        8.0 times better\n");
    probe.count = 1;
    probe.times[0].cycles = 0;
    probe.speed = (struct mm_memory_speed){0};
    assert_table(&probe, "Card \xff (fast), banks of 4 bytes; times in cycles\n"
                         "\n"
                         "shared     stride bytes padded degree wavefronts  latency   access bytes/cycle\n"
                         "linear          -     4     no      1          1     23.0        -           -\n"
                         "\n"
                         "memory         latency       GB/s\n"
                         "shared               -          -\n"
                         "L2 cache             -          -\n"
                         "global               -          -\n"
                         "shared is by         -          - times better\n");
}

RUN_TESTS(test_report, test_report_of_nothing, test_table)
