/* The sweep: a thread that looks at all connections ten times a second, for what no event reports: a client
 * that left while its connection is suspended, deadlines, slow clients. */
#pragma once

#include "server/server.h"

/* Begins as zeros. */
struct mm_sweep {
    struct mm_server *server; /* NULL: not started */
    pthread_t thread;
    int stopping; /* __atomic access only */
};

/* False if that fails. Both outlive the thread. */
bool mm_sweep_start(struct mm_sweep *sweep, struct mm_server *server);

/* Closes idle connections, the longest idle first, until `count` of those closed as idle are still being
 * closed; returns how many it closed. Idle: no request, and nothing of a head has arrived; with TLS, also if
 * there was no request yet. Any thread, no mutex held. */
size_t mm_sweep_close_idle(struct mm_server *server, size_t count);

/* Joins the thread, if it was started. */
void mm_sweep_stop(struct mm_sweep *sweep);
