#include "server/http/pace.h"

static const double grace_ns = 2e9;

void mm_pace_begin(struct mm_pace *pace, size_t bytes, uint64_t now_ns) {
    *pace = (struct mm_pace){.looked_ns = now_ns, .bytes = bytes, .ahead_ns = grace_ns};
}

void mm_pace_look(struct mm_pace *pace, size_t bytes, double byte_ns, uint64_t now_ns) {
    if (now_ns <= pace->looked_ns || bytes < pace->bytes)
        return;
    pace->ahead_ns += byte_ns * (double)(bytes - pace->bytes) - (double)(now_ns - pace->looked_ns);
    if (pace->ahead_ns > grace_ns)
        pace->ahead_ns = grace_ns;
    pace->looked_ns = now_ns;
    pace->bytes = bytes;
}

void mm_pace_skip(struct mm_pace *pace, size_t bytes, uint64_t now_ns) {
    pace->looked_ns = now_ns;
    pace->bytes = bytes;
}

bool mm_pace_is_too_slow(const struct mm_pace *pace) {
    return pace->ahead_ns < 0;
}
