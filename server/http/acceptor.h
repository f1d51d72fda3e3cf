/* The acceptor: the thread that accepts connections and gives each to the HTTP thread with the fewest. It
 * closes idle connections to keep some descriptors free, and counts connections by address.
 *
 * libmicrohttpd's own pool shares the listening socket: of 16 connections to 16 threads, one thread got up to
 * 14 (0.9.75). */
#pragma once

#include "server/server.h"

#include <microhttpd.h>

struct mm_acceptor;

/* Starts the thread, and sets server->acceptor before the first connection. The listener blocks. Each daemon
 * has one thread and no listening socket. connections_max, 1 or more, limits all daemons together. Listener,
 * daemons and server belong to the caller and must outlive the thread. NULL if out of memory or threads. */
struct mm_acceptor *mm_acceptor_start(struct mm_server *server, int listener, struct MHD_Daemon **daemons,
                                      unsigned daemon_count, unsigned connections_max);

/* Ends and joins the thread. Call it once. */
void mm_acceptor_stop(struct mm_acceptor *acceptor);

/* Call it after mm_acceptor_stop and the end of all connections. NULL is allowed. */
void mm_acceptor_free(struct mm_acceptor *acceptor);

/* Frees the slot of a connection whose descriptor MHD is about to close. Any thread may call it. */
void mm_acceptor_closed(struct mm_acceptor *acceptor, int fd);

/* How many connections are open; 0 for NULL. Any thread may call it. */
unsigned mm_acceptor_open(const struct mm_acceptor *acceptor);
