/* --healthcheck: asks a running server for GET /healthz, so a container can check itself without curl. Uses
 * TLS if options->tls_cert is given, but does not read that file. Only the main thread calls it, in a process
 * without other threads. */
#pragma once

#include "server/options.h"

/* Asks the server at options->host and options->port, which must not be 0. Linux takes a wildcard address
 * (0.0.0.0, ::) for the loopback. Returns the process's exit status: EXIT_SUCCESS if the reply has status
 * 200; else EXIT_FAILURE, after printing the reason, at the latest 3 s after the look-up of the name. */
int mm_healthcheck(const struct mm_options *options);
