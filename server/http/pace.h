/* Decides whether a client is too slow to complete its upload or reply in time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A client may fall two seconds behind the constant rate that completes its bytes in time. Extra speed earns
 * no credit, so a client that stops is too slow after two seconds. */
struct mm_pace {
    uint64_t looked_ns;
    size_t bytes;    /* bytes moved by looked_ns */
    double ahead_ns; /* what is left of the two seconds; below 0: too slow */
};

/* Begins an upload or a reply. `bytes` of it have already moved. */
void mm_pace_begin(struct mm_pace *pace, size_t bytes, uint64_t now_ns);

/* Records that `bytes` have moved in total. byte_ns is the time that the required rate allows for a byte. */
void mm_pace_look(struct mm_pace *pace, size_t bytes, double byte_ns, uint64_t now_ns);

/* Ignores the time since the last call, because the server itself was slow. */
void mm_pace_skip(struct mm_pace *pace, size_t bytes, uint64_t now_ns);

bool mm_pace_is_too_slow(const struct mm_pace *pace);
