/* The asking side of TLS, for the health check: who answers is not looked at, so that nothing secret may be
 * sent. GnuTLS is behind this; a build without it has tls_missing.c instead. */
#ifndef MM_SERVER_TLS_CLIENT_H
#define MM_SERVER_TLS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Waits for an event of poll's; false with errno where it does not come in time. */
typedef bool mm_tls_wait(int socket, short events, uint64_t deadline_ns);

/* Sends a text on a connected socket that does not block, and reads the reply to its end, at most reply_size
 * - 1 bytes, as a text. False with errno: EPROTO where what answers is no TLS, EPROTONOSUPPORT where this
 * build has none. Any thread. */
bool mm_tls_ask(int socket, uint64_t deadline_ns, mm_tls_wait *wait, const char *request, char *reply,
                size_t reply_size);

#ifdef __cplusplus
}
#endif
#endif
