/* Whether a peer is too slow: its upload or reply would not be complete in time at its present rate. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A peer may be two seconds behind the constant rate that completes its bytes in time. Being ahead of that
 * rate does not count, so a peer that stops is too slow after two seconds. */
struct mm_pace {
    uint64_t looked_ns;
    size_t bytes;    /* moved by looked_ns */
    double ahead_ns; /* time left of the two seconds; below 0: too slow */
};

/* Begins a body or a reply, of which `bytes` count as moved. */
void mm_pace_begin(struct mm_pace *pace, size_t bytes, uint64_t now_ns);

/* `bytes` have moved by now. byte_ns is the time that the rate allows for a byte. */
void mm_pace_look(struct mm_pace *pace, size_t bytes, double byte_ns, uint64_t now_ns);

/* Ignores the time since the last look, because the server was slow or did not read. */
void mm_pace_skip(struct mm_pace *pace, size_t bytes, uint64_t now_ns);

bool mm_pace_is_too_slow(const struct mm_pace *pace);
