/* Whether a peer is too slow: an upload or a reply that would not be complete in time at its present rate. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A peer may fall two seconds behind the constant rate that completes its bytes in time. What it is ahead of
 * that rate does not count, so one that stops is too slow after two seconds. */
struct mm_pace {
    uint64_t looked_ns;
    size_t bytes;    /* that had moved by then */
    double ahead_ns; /* of two seconds behind; below 0: too slow */
};

/* A body or a reply begins, of which so many bytes count as moved. */
void mm_pace_begin(struct mm_pace *pace, size_t bytes, uint64_t now_ns);

/* Looks at the bytes that have moved by now. byte_ns is the time that the rate allows for a byte. */
void mm_pace_look(struct mm_pace *pace, size_t bytes, double byte_ns, uint64_t now_ns);

/* The time since the last look does not count: the server was slow, or did not read. */
void mm_pace_skip(struct mm_pace *pace, size_t bytes, uint64_t now_ns);

bool mm_pace_is_too_slow(const struct mm_pace *pace);
