/* --healthcheck: sends GET /healthz to a running server, so a container can check itself without curl. Uses
 * TLS if options->tls_cert is given, but does not read that file. Only main may call it. */
#pragma once

#include "server/options.h"

/* Asks the server at options->host and options->port, which must not be 0. On Linux a wildcard address
 * (0.0.0.0, ::) reaches the loopback. Returns the process's exit status: EXIT_SUCCESS if the reply is a 200.
 * Otherwise prints the reason and returns EXIT_FAILURE. Takes at most 3 s after name resolution. */
int mm_healthcheck(const struct mm_options *options);
