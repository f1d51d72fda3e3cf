/* --healthcheck: asks a running server for GET /healthz, so a container can check itself without curl. Knows
 * sockets alone, and TLS if options->tls_cert is given; it does not read that file. Only the main thread
 * calls it, in a process without other threads. */
#pragma once

#include "server/options.h"

/* Asks the server at options->host and options->port, which must not be 0; Linux takes a wildcard
 * address (0.0.0.0, ::) for the loopback. Returns the process's exit status: EXIT_SUCCESS if a reply came
 * whose status is 200; else it has printed the reason. After 3 s, which do not include the look-up of a name,
 * it ends the process itself. From main. */
int mm_healthcheck(const struct mm_options *options);
