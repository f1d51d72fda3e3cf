/* Whether a browser sent the request for a page of another site: by Origin, and by Host, which names another
 * site after DNS rebinding. Knows neither libmicrohttpd nor routes. Any thread may call these functions. */
#pragma once

#include "gpu/status.h"

/* MM_FORBIDDEN in *error unless `host` is an IP address, localhost or a name in `allowed`. `host` is the
 * value of a well-formed Host header; NULL, which is allowed: without one. `allowed` is the list of the
 * option, or NULL. The port, capital letters and a final dot do not count. */
enum mm_status mm_origin_check_host(const char *allowed, const char *host, struct mm_error *error);

/* MM_FORBIDDEN in *error if a request by this method may not come from `origin`, the value of its header or
 * NULL. A safe method (RFC 9110, 9.2.1) always may, and so may a request without Origin; else host and port
 * must equal those of `host`. Where a port is missing, the usual port of the origin's scheme counts: behind a
 * proxy with TLS the server does not know its own scheme. */
enum mm_status mm_origin_check(const char *method, const char *origin, const char *host,
                               struct mm_error *error);

/* Whether a text is an origin as browsers write it: scheme://host or scheme://host:port in lower case. */
bool mm_origin_is_origin(const char *text);

/* Whether a text is a list of hosts: HOST or HOST:PORT, separated by commas. */
bool mm_origin_is_list(const char *hosts);
