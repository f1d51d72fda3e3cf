/* Tests when a client is too slow: when it is over two seconds behind the required rate. */
#include "server/http/pace.h"
#include "tests/unit/unit.h"

static const uint64_t second_ns = 1000000000, start_ns = 5000000000;
static const double byte_ns = 1e6; /* the required rate is 1000 bytes per second */

/* Returns whether the client is too slow if `bytes` bytes have moved `after_ns` after the start. */
static bool is_too_slow(struct mm_pace *pace, size_t bytes, uint64_t after_ns) {
    mm_pace_look(pace, bytes, byte_ns, start_ns + after_ns);
    return mm_pace_is_too_slow(pace);
}

static struct mm_pace begin(size_t bytes) {
    struct mm_pace pace;
    mm_pace_begin(&pace, bytes, start_ns);
    assert_false(mm_pace_is_too_slow(&pace));
    return pace;
}

static void stalled_client_has_two_seconds(void **state) {
    struct mm_pace looked_at_once = begin(7), looked_at_often = begin(7);
    assert_false(is_too_slow(&looked_at_once, 7, 2 * second_ns));
    assert_true(is_too_slow(&looked_at_once, 7, 2 * second_ns + 1));
    for (uint64_t after_ns = 0; after_ns <= 2 * second_ns; after_ns += second_ns / 100)
        assert_false(is_too_slow(&looked_at_often, 7, after_ns));
    assert_true(is_too_slow(&looked_at_often, 7, 2 * second_ns + 1));
}

static void earlier_speed_does_not_count(void **state) {
    struct mm_pace pace = begin(0);
    assert_false(is_too_slow(&pace, 1000000, second_ns));
    assert_false(is_too_slow(&pace, 1000000, 3 * second_ns));
    assert_true(is_too_slow(&pace, 1000000, 3 * second_ns + 1));
}

/* At half the required rate, a client falls one second behind in two seconds. */
static void slow_client_can_catch_up(void **state) {
    struct mm_pace pace = begin(0);
    assert_false(is_too_slow(&pace, 2000, 4 * second_ns));
    assert_true(is_too_slow(&pace, 2499, 5 * second_ns));
    assert_true(is_too_slow(&pace, 3499, 6 * second_ns));
    assert_false(is_too_slow(&pace, 5000, 7 * second_ns));
    assert_false(is_too_slow(&pace, 1005000, 1007 * second_ns));
    assert_true(is_too_slow(&pace, 1005000, 1007 * second_ns + 1));
}

static void pace_can_begin_again(void **state) {
    struct mm_pace pace = begin(0);
    assert_true(is_too_slow(&pace, 10, 9 * second_ns));
    mm_pace_begin(&pace, 10, start_ns + 9 * second_ns);
    assert_false(is_too_slow(&pace, 10, 11 * second_ns));
    assert_true(is_too_slow(&pace, 10, 11 * second_ns + 1));
}

/* Times and byte counts may decrease, because threads read them at different times. */
static void decreasing_times_and_counts_are_ignored(void **state) {
    struct mm_pace pace = begin(100);
    mm_pace_look(&pace, 1000, byte_ns, start_ns);
    mm_pace_look(&pace, 1000, byte_ns, start_ns - 1);
    mm_pace_look(&pace, 99, byte_ns, start_ns + 9 * second_ns);
    assert_false(mm_pace_is_too_slow(&pace));
    assert_true(is_too_slow(&pace, 100, 2 * second_ns + 1));
}

/* The client must first send 5 bytes per second, then 1e9, which is too fast for it. */
static void required_rate_may_change(void **state) {
    struct mm_pace pace = begin(0);
    mm_pace_look(&pace, 10, 2e8, start_ns + 2 * second_ns);
    assert_int_equal((uint64_t)pace.ahead_ns, 2 * second_ns);
    mm_pace_look(&pace, 1010, 1, start_ns + 4 * second_ns);
    assert_int_equal((uint64_t)pace.ahead_ns, 1000);
}

RUN_TESTS(stalled_client_has_two_seconds, earlier_speed_does_not_count, slow_client_can_catch_up,
          pace_can_begin_again, decreasing_times_and_counts_are_ignored, required_rate_may_change)
