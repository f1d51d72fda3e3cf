/* The sweep: a thread that checks all connections ten times a second. It finds what no event reports: a
 * client that left while its connection was suspended, a missed deadline, and a slow client. */
#pragma once

#include "server/server.h"

/* Initialise it with zeros. */
struct mm_sweep {
    struct mm_server *server;
    pthread_t thread;
    int stopping; /* __atomic access only */
};

/* Starts the thread. Returns false on failure. `sweep` and `server` must outlive the thread. */
bool mm_sweep_start(struct mm_sweep *sweep, struct mm_server *server);

/* Closes idle connections, the longest idle first, until `count` connections are being closed as idle.
 * Returns how many it closed. An idle connection has no request and no part of a head; with TLS it may also
 * be waiting for its first request. Any thread may call it, with no mutex held. */
size_t mm_sweep_close_idle(struct mm_server *server, size_t count);

/* Stops the thread and waits for its end. Does nothing if it was not started. */
void mm_sweep_stop(struct mm_sweep *sweep);
