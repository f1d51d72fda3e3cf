/* TLS: the certificate and private key in use, their reload, and data sent without libmicrohttpd. In a build
 * without GnuTLS, tls_missing.c replaces tls.c. The only HTTP here is the answer to a client that sends plain
 * HTTP to a TLS port. */
#pragma once

#include "gpu/status.h"
#include "server/options.h"

#include <microhttpd.h>
#include <time.h>

enum { MM_TLS_FILE_BYTES_MAX = 64 << 10, MM_TLS_CHAIN_MAX = 8, MM_TLS_DAEMON_OPTIONS = 3 };

/* Most bytes that a TLS session may read before the head of a request, or a TLS record of its body, is
 * complete. GnuTLS alone would buffer a message of up to 16 MiB. */
enum { MM_TLS_UNREAD_BYTES_MAX = 96 << 10 };

/* Memory that TLS adds to a connection: 13 KiB when idle (measured with 400 connections, GnuTLS 3.7.9), one
 * record in each direction, and unread bytes. */
enum { MM_TLS_CONNECTION_BYTES = (48 << 10) + MM_TLS_UNREAD_BYTES_MAX };

/* Reads options->tls_cert and options->tls_key; does nothing if they are not given. Later handshakes use the
 * new certificate. MM_BAD_REQUEST if the files are bad or do not match. MM_BAD_REQUEST also if the
 * certificate is not valid now and an earlier one is in use. MM_UNSUPPORTED if this build or its
 * libmicrohttpd has no TLS; MM_INTERNAL if out of memory. *error never quotes the key. On failure the old
 * certificate stays in use. Logs when the certificate expires, and a warning if the first certificate is not
 * valid now or if all users can read the key. One thread at a time may call it. */
enum mm_status mm_tls_load(const struct mm_options *options, struct mm_error *error);

/* When the certificate in use expires, in Unix time; 0 without TLS. Any thread may call it. */
time_t mm_tls_expiry(void);

/* Frees the certificate and its key. Call it after the last connection. */
void mm_tls_close(void);

/* Fills in options for MHD_start_daemon, to pass with MHD_USE_TLS. MHD_OPTION_END ends them. */
void mm_tls_daemon_options(struct MHD_OptionItem items[MM_TLS_DAEMON_OPTIONS]);

/* What a TLS session reads from. The caller owns it and keeps it until the session has ended. A read calls
 * `ended`, on the session's thread, if the client or the server has closed this direction; data can still be
 * sent then. */
struct mm_tls_stream {
    int fd;
    void (*ended)(struct mm_tls_stream *stream);
    size_t unread_bytes; /* bytes read since the owner reset it; above MM_TLS_UNREAD_BYTES_MAX reads fail */
    bool has_begun;      /* some byte was read; initialise it to false */
};

/* Makes a session of MHD (MHD_CONNECTION_INFO_GNUTLS_SESSION) read from `stream`, before the handshake. */
void mm_tls_attach(void *session, struct mm_tls_stream *stream);

/* Sends what the system accepts at once, and returns how many bytes. For the session's own thread only. */
size_t mm_tls_send(void *session, const void *data, size_t bytes);

/* Tells the client that the server will send nothing more. Only the session's own thread may call it. */
void mm_tls_end(void *session);

/* The TLS client of the health check. Sends `request` on a connected, blocking socket and reads the reply to
 * its end as text, at most reply_size - 1 bytes. Does not verify the server's certificate, so send nothing
 * secret. False with errno set on failure: EPROTO if the server does not speak TLS, EPROTONOSUPPORT if this
 * build has no TLS. Any thread may call it. */
bool mm_tls_ask(int socket, const char *request, char *reply, size_t reply_size);
