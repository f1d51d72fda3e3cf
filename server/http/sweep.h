/* The sweep: a thread that checks all connections ten times a second for what no event reports: clients that
 * left while their connections are suspended, missed deadlines, and slow clients. */
#pragma once

#include "server/server.h"

/* Initialise it with zeros. */
struct mm_sweep {
    struct mm_server *server;
    pthread_t thread;
    int stopping; /* __atomic access only */
};

/* Starts the thread; false on failure. `sweep` and `server` must outlive the thread. */
bool mm_sweep_start(struct mm_sweep *sweep, struct mm_server *server);

/* Closes idle connections, the longest idle first, until `count` connections are being closed as idle.
 * Returns how many it closed. A connection is idle if it has no request and no part of a head has arrived;
 * with TLS, also if it has had no request yet. Any thread may call it, with no mutex held. */
size_t mm_sweep_close_idle(struct mm_server *server, size_t count);

/* Ends and joins the thread, if it was started. */
void mm_sweep_stop(struct mm_sweep *sweep);
