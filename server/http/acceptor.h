/* The acceptor: a thread that accepts connections and passes each to the HTTP thread with the fewest
 * connections. It closes idle connections to keep some descriptors free, and counts connections by address.
 *
 * libmicrohttpd's own pool shares the listening socket among its threads. That is uneven: one of 16 threads
 * got up to 14 of 16 connections (version 0.9.75). */
#pragma once

#include "server/server.h"

#include <microhttpd.h>

struct mm_acceptor;

/* Sets server->acceptor, and starts the thread. `listener` must be blocking. Each daemon must have one
 * thread and no listening socket. connections_max, at least 1, is the limit for all daemons together.
 * The caller owns listener, daemons and server, which must outlive the thread. Returns NULL if out of
 * memory or threads. */
struct mm_acceptor *mm_acceptor_start(struct mm_server *server, int listener, struct MHD_Daemon **daemons,
                                      unsigned daemon_count, unsigned connections_max);

/* Stops the thread and waits for its end. Call it once. */
void mm_acceptor_stop(struct mm_acceptor *acceptor);

/* Frees the acceptor. Call it after mm_acceptor_stop, when all connections have ended. NULL is allowed. */
void mm_acceptor_free(struct mm_acceptor *acceptor);

/* Stops counting a connection. Call it before MHD closes the descriptor. Any thread may call it. */
void mm_acceptor_closed(struct mm_acceptor *acceptor, int fd);

/* Returns the number of open connections, or 0 if `acceptor` is NULL. Any thread may call it. */
unsigned mm_acceptor_open(const struct mm_acceptor *acceptor);
