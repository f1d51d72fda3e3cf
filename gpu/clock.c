/* Monotonic time and the names of its spans. */
#include "gpu/clock.h"

#include <assert.h>
#include <time.h>

static const char *const spans[MM_SPAN_COUNT] = {
#define X(constant, name) [constant] = name,
    MM_SPAN_TABLE(X)
#undef X
};

uint64_t mm_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

const char *mm_span_name(enum mm_span span) {
    assert(span < MM_SPAN_COUNT);
    return spans[span];
}
