/* The HTTP server: the listening socket and all HTTP threads. Only main may call these functions. */
#pragma once

#include "server/server.h"

struct mm_http;

/* Listens on options->host and options->port, with options->threads threads. Sets *port to the bound port,
 * and sets server->is_local and server->checks_host. Fails with MM_INTERNAL. `server` must outlive *http. */
enum mm_status mm_http_start(struct mm_server *server, struct mm_http **http, unsigned *port,
                             struct mm_error *error);

/* Closes all connections and ends all threads. No request may be suspended. NULL is allowed. */
void mm_http_stop(struct mm_http *http);
