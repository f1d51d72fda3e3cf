/* Tests that the log thread's timeouts are right after the wall clock is set back. Our clock_gettime runs a
 * minute ahead of the kernel's wall clock, which looks like that. */
#include "server/observe/log.h"
#include "gpu/clock.h"
#include "tests/unit/unit.h"

#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LINES = 4, AHEAD_S = 60, PATIENCE_MS = 30000, PIPE_BYTES = 64 << 10 };

int clock_gettime(clockid_t clock, struct timespec *now) {
    const int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME)
        now->tv_sec += AHEAD_S;
    return result;
}

static void expect_lines(int end) {
    static const char line[] = "a line\n";
    for (unsigned index = 0; index < LINES; index++) {
        struct pollfd readable = {.fd = end, .events = POLLIN};
        char text[2 * sizeof line];
        mm_log_put(line, sizeof line - 1, true);
        assert_int_equal(poll(&readable, 1, PATIENCE_MS), 1);
        assert_int_equal(read(end, text, sizeof text), sizeof line - 1);
    }
}

/* Lines are written immediately. If nobody reads them, closing the log waits about a second. */
static void test_wall_clock_set_back(void **state) {
    static char text[4 * PIPE_BYTES];
    int ends[2];
    memset(text, '\n', sizeof text);
    const int terminal = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    mm_log_start();
    expect_lines(ends[0]);
    mm_log_put(text, sizeof text, true);
    const uint64_t begun_ns = mm_clock_ns();
    mm_log_stop();
    const uint64_t took_ns = mm_clock_ns() - begun_ns;
    for (size_t left = sizeof text; left > 0;)
        left -= (size_t)read(ends[0], text, sizeof text);
    mm_log_stop();
    assert_int_equal(dup2(terminal, STDERR_FILENO), STDERR_FILENO);
    assert_in_range(took_ns, UINT64_C(900000000), UINT64_C(1000000) * PATIENCE_MS);
}

RUN_TESTS(test_wall_clock_set_back)
