/* A listening socket on a free port, for the floors. */
#ifndef MM_LOAD_LISTENER_H
#define MM_LOAD_LISTENER_H

#include <stdbool.h>

/* An accept on it waits for a connection, or does not. Says "listening on PORT" on stdout. Ends the process
 * where it cannot. */
int mm_load_listen(const char *host, bool waits);

#endif
