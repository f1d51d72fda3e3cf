/* The client's side of TLS, for the health check: it does not check whose certificate the server has, so send
 * nothing secret. GnuTLS is behind this; a build without it has tls_missing.c instead. */
#ifndef MM_SERVER_AUTH_TLS_CLIENT_H
#define MM_SERVER_AUTH_TLS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

/* Sends a text on a connected socket that blocks, and reads the reply to its end, at most reply_size - 1
 * bytes, as a text. False with errno: EPROTO if the other side has no TLS, EPROTONOSUPPORT if this build has
 * none. Any thread. */
bool mm_tls_ask(int socket, const char *request, char *reply, size_t reply_size);

#endif
