/* The HTTP server: the listening socket, libmicrohttpd's threads, the acceptor and the sweep. Only the main
 * thread calls these functions. */
#pragma once

#include "server/server.h"

struct mm_http;

/* Listens on options->host and port, and serves with options->threads threads. *port is the port that was
 * bound. Sets server->is_local and checks_host. MM_INTERNAL in *error on failure. `server` must outlive
 * *http. */
enum mm_status mm_http_start(struct mm_server *server, struct mm_http **http, unsigned *port,
                             struct mm_error *error);

/* Ends all connections and threads. No request may be suspended. NULL is allowed. */
void mm_http_stop(struct mm_http *http);
