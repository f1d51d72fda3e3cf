/* What the benchmark servers bare.c and sockets.c share: a listening socket on a free port, and buffers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Opens a listening socket and prints "listening on PORT". accept on this socket blocks if `waits` is
 * set. Ends the process on failure. */
int mm_load_listen(const char *host, bool waits);

/* Returns a buffer of zeros, which the caller never frees. Its pages are mapped, so the first access is fast.
 * Ends the process on failure. */
char *mm_load_warm_buffer(size_t bytes);
