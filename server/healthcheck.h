/* --healthcheck: asks a running server for GET /healthz, so that a container can look after itself
 * without curl. Knows sockets alone, and TLS where options->tls_cert is given, whose files it does not read:
 * it opens no device and starts no thread. */
#ifndef MM_SERVER_HEALTHCHECK_H
#define MM_SERVER_HEALTHCHECK_H

#include "server/options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Asks the server at options->host and options->port, which must not be 0; a wildcard address (0.0.0.0,
 * ::) stands for the loopback of its family. True if the reply came whole within 3 s and its status is 200;
 * else the reason is in problem (cut to fit). Where the host is a name, looking it up comes before these
 * 3 s. Any thread. */
bool mm_healthcheck(const struct mm_options *options, char *problem, size_t problem_size);

#ifdef __cplusplus
}
#endif
#endif
