/* Decides whether a client sends its upload, or reads its reply, too slowly to finish in time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* At the required rate, which is constant, a client finishes just in time. A client may fall two seconds
 * behind this rate, but gains nothing by being faster. So a client that stops counts as too slow after two
 * seconds. */
struct mm_pace {
    uint64_t looked_ns;
    size_t bytes;    /* bytes sent or read until looked_ns */
    double ahead_ns; /* what is left of the two seconds of grace; below 0: too slow */
};

/* Begins to measure an upload or a reply, of which `bytes` bytes were already sent or read. */
void mm_pace_begin(struct mm_pace *pace, size_t bytes, uint64_t now_ns);

/* Records progress. `bytes` is the total sent or read so far. The client may take byte_ns for each byte. */
void mm_pace_look(struct mm_pace *pace, size_t bytes, double byte_ns, uint64_t now_ns);

/* Records `bytes`, but not the time since the last call. Call it if the server was slow in this time. */
void mm_pace_skip(struct mm_pace *pace, size_t bytes, uint64_t now_ns);

bool mm_pace_is_too_slow(const struct mm_pace *pace);
