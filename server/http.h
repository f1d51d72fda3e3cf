/* The HTTP server: the listening socket and libmicrohttpd's threads. */
#ifndef MM_SERVER_HTTP_H
#define MM_SERVER_HTTP_H

#include "server/server.h"

#ifdef __cplusplus
extern "C" {
#endif

struct mm_http;

/* Listens on options->host and port and accepts with options->threads threads. The port that was bound
 * is told in *port. False, with a sentence in problem, where that fails. `server` outlives it. */
bool mm_http_start(struct mm_server *server, struct mm_http **http, unsigned *port, char *problem,
                   size_t problem_size);

/* Whether it listens on an address that only this machine reaches. */
bool mm_http_is_local(const struct mm_http *http);

/* Ends all connections and threads. No exchange is suspended any more. NULL is allowed. */
void mm_http_stop(struct mm_http *http);

#ifdef __cplusplus
}
#endif
#endif
