/* The acceptor: the thread that accepts connections and gives each to the HTTP thread with the fewest. It
 * closes idle connections to keep some descriptors free, and counts connections by address.
 *
 * libmicrohttpd's own pool shares the listening socket: of 16 connections to 16 threads, one thread got up to
 * 14 (0.9.75). */
#pragma once

#include "server/server.h"

#include <microhttpd.h>

struct mm_acceptor;

/* Starts the thread, and sets server->acceptor before the first connection. listener: blocking. daemons: one
 * thread each, without a listening socket. connections_max: over all of them, 1 or more. The caller owns
 * listener, daemons and server, which outlive the thread. NULL if memory or threads run out. */
struct mm_acceptor *mm_acceptor_start(struct mm_server *server, int listener, struct MHD_Daemon **daemons,
                                      unsigned daemon_count, unsigned connections_max);

/* Ends and joins the thread. Call it once. */
void mm_acceptor_stop(struct mm_acceptor *acceptor);

/* Frees the acceptor, after mm_acceptor_stop and the end of all connections. NULL is allowed. */
void mm_acceptor_free(struct mm_acceptor *acceptor);

/* Removes a connection from the counts. Call this before MHD closes the descriptor. Any thread. */
void mm_acceptor_closed(struct mm_acceptor *acceptor, int fd);

/* How many connections are open; 0 for NULL. Any thread may call it. */
unsigned mm_acceptor_open(const struct mm_acceptor *acceptor);
