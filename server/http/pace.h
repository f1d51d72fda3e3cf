/* Decides whether a client sends its upload, or reads its reply, too slowly to finish in time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A client needs a constant rate to finish in time, and may be two seconds behind it. A client that was
 * faster gains nothing. So a client that stops counts as too slow after two seconds. */
struct mm_pace {
    uint64_t looked_ns;
    size_t bytes;    /* bytes sent or read until looked_ns */
    double ahead_ns; /* what is left of the two seconds of grace; below 0: too slow */
};

/* Begins an upload or a reply. `bytes` bytes of it were already sent or read. */
void mm_pace_begin(struct mm_pace *pace, size_t bytes, uint64_t now_ns);

/* Records that `bytes` bytes were sent or read so far. The required rate allows byte_ns for each byte. */
void mm_pace_look(struct mm_pace *pace, size_t bytes, double byte_ns, uint64_t now_ns);

/* Records `bytes` like mm_pace_look, but ignores the time since the last call, when the server was slow. */
void mm_pace_skip(struct mm_pace *pace, size_t bytes, uint64_t now_ns);

bool mm_pace_is_too_slow(const struct mm_pace *pace);
