/* Detects requests that a browser sends for a page of another site, by the headers Origin and Host. After DNS
 * rebinding only Host names the other site. This file knows neither libmicrohttpd nor routes. Any thread may
 * call these functions. */
#pragma once

#include "gpu/status.h"

/* Fails with MM_FORBIDDEN if `host` is neither an IP address nor localhost nor a name in `allowed`. `host` is
 * the value of a well-formed Host header; NULL means no header, and is allowed. `allowed` is the value of
 * --allowed-hosts, or NULL. Port, letter case and a final dot do not matter. */
enum mm_status mm_origin_check_host(const char *allowed, const char *host, struct mm_error *error);

/* Fails with MM_FORBIDDEN if a page of `origin` must not send a request with this method. `origin` is the
 * value of the Origin header, or NULL. Safe methods (RFC 9110, 9.2.1) and requests without Origin are always
 * allowed. Other requests are allowed if `host` has the host and port of `origin`. A missing port means the
 * usual port of the origin's scheme, because the server may be behind a TLS proxy. */
enum mm_status mm_origin_check(const char *method, const char *origin, const char *host,
                               struct mm_error *error);

/* Whether a text is an origin as browsers write it: scheme://host or scheme://host:port in lower case. */
bool mm_origin_is_origin(const char *text);

/* Whether a text is a list of hosts: HOST or HOST:PORT, separated by commas. */
bool mm_origin_is_list(const char *hosts);
