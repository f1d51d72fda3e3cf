/* TLS: the certificate and the private key in force, their reload, and what is sent without libmicrohttpd. A
 * build without GnuTLS has tls_missing.c, whose mm_tls_load fails. Of HTTP it knows only how to answer a
 * client that sends it without TLS. */
#pragma once

#include "gpu/status.h"
#include "server/options.h"

#include <microhttpd.h>
#include <time.h>

enum { MM_TLS_FILE_BYTES_MAX = 64 << 10, MM_TLS_CHAIN_MAX = 8, MM_TLS_DAEMON_OPTIONS = 3 };

/* What a session may read before a head, or a record of a body, is complete. GnuTLS itself would keep a
 * message of up to 16 MiB. */
enum { MM_TLS_UNREAD_BYTES_MAX = 96 << 10 };

/* Memory that TLS adds to a connection: 13 KiB when idle (400 connections, GnuTLS 3.7.9), a record in each
 * direction, and unread bytes. */
enum { MM_TLS_CONNECTION_BYTES = (48 << 10) + MM_TLS_UNREAD_BYTES_MAX };

/* Reads options->tls_cert and options->tls_key; does nothing if they are not given. New handshakes get the
 * new certificate from then on. MM_BAD_REQUEST if the files are bad or do not match, or if the certificate is
 * not valid now and another is in force. *error shows nothing of the key. MM_UNSUPPORTED if this
 * build or its libmicrohttpd has no TLS. On failure what was in force stays. Logs how long the certificate is
 * valid. Logs a warning if a first certificate is not valid now, or if all users can read the key. One thread
 * at a time may call it. */
enum mm_status mm_tls_load(const struct mm_options *options, struct mm_error *error);

/* When the certificate in force expires, in seconds since the epoch; 0: no TLS. Any thread may call it. */
time_t mm_tls_expiry(void);

/* Frees the certificate and its key. Call it after the last connection. */
void mm_tls_close(void);

/* Sets options of MHD_start_daemon, to use with MHD_USE_TLS. MHD_OPTION_END ends them. */
void mm_tls_daemon_options(struct MHD_OptionItem items[MM_TLS_DAEMON_OPTIONS]);

/* What a session reads from. The caller owns it and keeps it until the session has ended. The session's
 * thread calls `ended` in a read, if either side has closed that direction; data can still be sent then. */
struct mm_tls_stream {
    int fd;
    void (*ended)(struct mm_tls_stream *stream);
    size_t unread_bytes; /* since the owner last set it to 0; above MM_TLS_UNREAD_BYTES_MAX reading fails */
    bool has_begun;      /* something was read; begins as false */
};

/* Makes a session of MHD (MHD_CONNECTION_INFO_GNUTLS_SESSION) read from the stream. Call it before the
 * handshake. */
void mm_tls_attach(void *session, struct mm_tls_stream *stream);

/* Sends what the system accepts at once, and returns how many bytes. Only the session's own thread may call
 * it. */
size_t mm_tls_send(void *session, const void *data, size_t bytes);

/* Ends the server's side of a session. Only the session's own thread may call it. */
void mm_tls_end(void *session);

/* The client's side, for the health check. It does not check whose certificate the server has, so send
 * nothing secret. Sends a text on a connected socket that blocks, and reads the reply to its end as text, at
 * most reply_size - 1 bytes. False with errno on failure: EPROTO if the other side has no TLS,
 * EPROTONOSUPPORT if this build has none. Any thread may call it. */
bool mm_tls_ask(int socket, const char *request, char *reply, size_t reply_size);
