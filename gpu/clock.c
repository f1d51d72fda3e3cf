/* Monotonic time and the names of the spans. */
#include "gpu/clock.h"

#include "gpu/names.h"

#include <time.h>

MM_DEFINE_NAMES(mm_span_name, mm_span, MM_SPAN_COUNT, MM_SPAN_TABLE)

uint64_t mm_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}
