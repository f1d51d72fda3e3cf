/* The HTTP server: the listening socket and libmicrohttpd's threads. Only the main thread calls these
 * functions. */
#ifndef MM_SERVER_HTTP_HTTP_H
#define MM_SERVER_HTTP_HTTP_H

#include "server/server.h"

struct mm_http;

/* Listens on options->host and port, and serves with options->threads threads. *port: the port that was
 * bound. Sets server->is_local and checks_host. False, with a sentence in problem, if that fails. `server`
 * outlives it. */
bool mm_http_start(struct mm_server *server, struct mm_http **http, unsigned *port, char *problem,
                   size_t problem_size);

/* Ends all connections and threads. No request may be suspended. NULL is allowed. */
void mm_http_stop(struct mm_http *http);

#endif
