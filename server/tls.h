/* TLS: the certificate and the private key in force, how they are replaced, and what is sent past
 * libmicrohttpd. GnuTLS is behind this, in tls.c; a build without it has tls_missing.c instead, where
 * mm_tls_open says so. Knows no HTTP. */
#ifndef MM_SERVER_TLS_H
#define MM_SERVER_TLS_H

#include "server/options.h"

#include <microhttpd.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mm_tls;

enum { MM_TLS_FILE_BYTES_MAX = 64 << 10, MM_TLS_CHAIN_MAX = 8, MM_TLS_DAEMON_OPTIONS = 3 };

/* What a session may read before its owner gets something of it: a head, or one record of a body, and a
 * handshake before. GnuTLS itself would keep a message of up to 16 MiB for each who begins one. */
enum { MM_TLS_UNREAD_BYTES_MAX = 96 << 10 };

/* What a connection with TLS may hold beside one without: 13 KiB when idle (400 connections, GnuTLS 3.7.9), a
 * record on its way in each direction, and what it may read. */
enum { MM_TLS_CONNECTION_BYTES = (48 << 10) + MM_TLS_UNREAD_BYTES_MAX };

/* Reads options->tls_cert and options->tls_key, which are given both or neither. *tls is NULL where neither
 * is. False, with a sentence in problem that shows nothing of the key, where something is wrong with them,
 * where they do not belong together, or where this build or its libmicrohttpd has no TLS. Logs until when the
 * certificate holds, and warns of a key that others can read. There is one at a time, since GnuTLS asks for a
 * certificate without telling for whom. `options` outlives it. */
bool mm_tls_open(const struct mm_options *options, struct mm_tls **tls, char *problem, size_t problem_size);

/* No connection is there any more. NULL is allowed. */
void mm_tls_close(struct mm_tls *tls);

/* Reads both files again, and logs what came of it: handshakes from now on get the new certificate, or the
 * old pair stays. Connections that are there keep theirs. One thread at a time. */
void mm_tls_reload(struct mm_tls *tls);

/* The options that MHD_start_daemon takes beside MHD_USE_TLS, ended by MHD_OPTION_END. */
void mm_tls_daemon_options(struct MHD_OptionItem items[MM_TLS_DAEMON_OPTIONS]);

/* What a session is read from: the caller's, until the session has ended. `ended` is called in the midst of a
 * read, by the session's thread, where the other side or ours has closed that way, while something can still
 * be sent. */
struct mm_tls_stream {
    int fd;
    void (*ended)(struct mm_tls_stream *stream);
    size_t unread_bytes; /* read since the owner got something, which sets this to 0; past the limit reading
                            fails */
};

/* Has a session read from the stream. Before its handshake. */
void mm_tls_attach(void *session, struct mm_tls_stream *stream);

/* Of a session of MHD's (MHD_CONNECTION_INFO_GNUTLS_SESSION), whose own thread alone may call. Sends what the
 * system takes at once, and says how much that was; the second tells the caller that there is no more to
 * come. */
size_t mm_tls_send(void *session, const void *data, size_t bytes);
void mm_tls_end(void *session);

#ifdef __cplusplus
}
#endif
#endif
