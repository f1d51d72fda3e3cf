/* The HTTP server: the listening socket, and all its threads. Only main may call these functions. */
#pragma once

#include "server/server.h"

struct mm_http;

/* Listens on options->host and options->port, with options->threads threads. Sets *port to the port that was
 * bound, and sets server->is_local and server->checks_host. MM_INTERNAL in *error on failure. `server` must
 * outlive *http. */
enum mm_status mm_http_start(struct mm_server *server, struct mm_http **http, unsigned *port,
                             struct mm_error *error);

/* Closes all connections and ends all threads. No request may be suspended. NULL is allowed. */
void mm_http_stop(struct mm_http *http);
