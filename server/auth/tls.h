/* TLS: the certificate and private key in use, their reload, and sending data without libmicrohttpd. In a
 * build without GnuTLS, tls_missing.c replaces tls.c. The only HTTP here is the answer to a client that sends
 * plain HTTP to a TLS port. */
#pragma once

#include "gpu/status.h"
#include "server/options.h"

#include <microhttpd.h>
#include <time.h>

enum { MM_TLS_FILE_BYTES_MAX = 64 << 10, MM_TLS_CHAIN_MAX = 8, MM_TLS_DAEMON_OPTIONS = 3 };

/* Limits the bytes that a TLS session may read for one request head, or for one TLS record of a body. GnuTLS
 * alone would buffer a message of up to 16 MiB. */
enum { MM_TLS_UNREAD_BYTES_MAX = 96 << 10 };

/* Memory that TLS adds to a connection: 13 KiB for the session, a TLS record for each direction, and unread
 * bytes. 13 KiB was measured with 400 idle connections and GnuTLS 3.7.9. */
enum { MM_TLS_CONNECTION_BYTES = (48 << 10) + MM_TLS_UNREAD_BYTES_MAX };

/* Reads options->tls_cert and options->tls_key; does nothing if they are not given. Later handshakes use the
 * new certificate. Fails with MM_BAD_REQUEST if the files are bad or do not match, or if a reload finds a
 * certificate that is not valid now. Fails with MM_UNSUPPORTED if this build or its libmicrohttpd has no TLS,
 * or with MM_INTERNAL if out of memory. After a failure the old certificate stays in use. *error never quotes
 * the key. Warns if the first certificate is not valid now, or if all users can read the key. Only one thread
 * at a time may call it. */
enum mm_status mm_tls_load(const struct mm_options *options, struct mm_error *error);

/* Returns when the certificate in use expires, in Unix time; 0 without TLS. Any thread may call it. */
time_t mm_tls_expiry(void);

/* Frees the certificate and its key. Call it after the last connection. */
void mm_tls_close(void);

/* Fills in the TLS options for MHD_start_daemon. Pass them with MHD_USE_TLS. Ends with MHD_OPTION_END. */
void mm_tls_daemon_options(struct MHD_OptionItem items[MM_TLS_DAEMON_OPTIONS]);

/* The source of a TLS session's bytes. The caller owns the struct, and keeps it until the session has ended.
 * A read that finds the end of the data calls `ended` on the session's thread. `ended` can still send
 * data. */
struct mm_tls_stream {
    int fd;
    void (*ended)(struct mm_tls_stream *stream);
    size_t unread_bytes; /* bytes read since the owner last set this to 0; limited */
    bool has_begun;      /* a byte was read; initialise it to false */
};

/* Lets MHD's TLS session (MHD_CONNECTION_INFO_GNUTLS_SESSION) read from `stream`, from the handshake on. */
void mm_tls_attach(void *session, struct mm_tls_stream *stream);

/* Sends the bytes that the socket accepts without waiting, and returns how many. Call it on the session's
 * thread. */
size_t mm_tls_send(void *session, const void *data, size_t bytes);

/* Tells the client that the server will send nothing more. Only the session's own thread may call it. */
void mm_tls_end(void *session);

/* For the health check: sends `request` through TLS on a connected, blocking socket, and reads the whole
 * reply as text, at most reply_size - 1 bytes. It does not verify the server's certificate, so send nothing
 * secret. On failure it returns false and sets errno: EPROTO if the server does not speak TLS,
 * EPROTONOSUPPORT if this build has no TLS. Any thread may call it. */
bool mm_tls_ask(int socket, const char *request, char *reply, size_t reply_size);
