/* TLS: the certificate and the private key in force, their reload, and what is sent past libmicrohttpd. A
 * build without GnuTLS has tls_missing.c, whose mm_tls_load fails. Of HTTP it knows only what to answer a
 * client that speaks it without TLS. */
#pragma once

#include "gpu/status.h"
#include "server/options.h"

#include <microhttpd.h>
#include <time.h>

enum { MM_TLS_FILE_BYTES_MAX = 64 << 10, MM_TLS_CHAIN_MAX = 8, MM_TLS_DAEMON_OPTIONS = 3 };

/* What a session may read before a head, or a record of a body, is complete. GnuTLS itself would keep a
 * message of up to 16 MiB. */
enum { MM_TLS_UNREAD_BYTES_MAX = 96 << 10 };

/* What a connection holds more with TLS: 13 KiB when idle (400 connections, GnuTLS 3.7.9), a record in each
 * direction, and what it may read. */
enum { MM_TLS_CONNECTION_BYTES = (48 << 10) + MM_TLS_UNREAD_BYTES_MAX };

/* Reads options->tls_cert and options->tls_key; does nothing if they are not given. New handshakes get the
 * new certificate from then on. MM_BAD_REQUEST in *error, which shows nothing of the key, if the files are
 * bad or do not match, or if the certificate is not valid now and another is in force; MM_UNSUPPORTED if this
 * build or its libmicrohttpd has no TLS: what was in force stays. Logs how long the certificate is valid, and
 * warns of a first certificate that is not valid now and of a key that all users can read. One thread at a
 * time. */
enum mm_status mm_tls_load(const struct mm_options *options, struct mm_error *error);

/* When the certificate in force expires, in seconds since the epoch; 0: there is no TLS. Any thread. */
time_t mm_tls_expiry(void);

/* After the last connection. */
void mm_tls_close(void);

/* Options of MHD_start_daemon beside MHD_USE_TLS, ended by MHD_OPTION_END. */
void mm_tls_daemon_options(struct MHD_OptionItem items[MM_TLS_DAEMON_OPTIONS]);

/* What a session reads from; the caller's, until the session has ended. `ended` is called in a read, by the
 * session's thread, if either side has closed that direction, while data can still be sent. */
struct mm_tls_stream {
    int fd;
    void (*ended)(struct mm_tls_stream *stream);
    size_t unread_bytes; /* since the owner last set it to 0; reading fails past the limit */
    bool has_begun;      /* something was read; begins as false */
};

/* Makes a session read from the stream. Before its handshake. */
void mm_tls_attach(void *session, struct mm_tls_stream *stream);

/* For a session of MHD (MHD_CONNECTION_INFO_GNUTLS_SESSION), on its own thread. Sends what the system takes
 * at once, and returns how much; the second ends our side. */
size_t mm_tls_send(void *session, const void *data, size_t bytes);
void mm_tls_end(void *session);

/* The client's side, for the health check: it does not check whose certificate the server has, so send
 * nothing secret. Sends a text on a connected socket that blocks, and reads the reply to its end, at most
 * reply_size - 1 bytes, as a text. False with errno: EPROTO if the other side has no TLS, EPROTONOSUPPORT if
 * this build has none. Any thread. */
bool mm_tls_ask(int socket, const char *request, char *reply, size_t reply_size);
