/* Shared code of bare.c and sockets.c: a listening socket on a free port, and buffers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Opens a listening socket and prints "listening on PORT". If `waits` is set, accept blocks. Ends the
 * process on failure. */
int mm_load_listen(const char *host, bool waits);

/* Returns a buffer of zeros whose pages are already mapped. Nobody frees the buffer. Ends the process on
 * failure. */
char *mm_load_warm_buffer(size_t bytes);
