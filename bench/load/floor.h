/* Shared code of the benchmark servers (bare.c, sockets.c): a listening socket on a free port, and buffers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Opens a listening socket and prints "listening on PORT" to stdout. If `waits`, accept blocks. Ends the
 * process on failure. */
int mm_load_listen(const char *host, bool waits);

/* A buffer of zeros whose pages are already mapped. It is never freed. Ends the process if memory runs out.
 */
char *mm_load_warm_buffer(size_t bytes);
