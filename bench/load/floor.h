/* What the floors have in common: a listening socket on a free port, and buffers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* An accept on it waits for a connection, or does not. Says "listening on PORT" on stdout. Ends the process
 * where it cannot. */
int mm_load_listen(const char *host, bool waits);

/* Zeros, written once, so that no page is new to a request. They live as long as the process. */
char *mm_load_warm_buffer(size_t bytes);
