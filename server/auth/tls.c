/* TLS with GnuTLS. GnuTLS gets its own copy of the certificate and key for each handshake, so the pair can be
 * replaced at any time. The copy costs little compared with the handshake. */
#include "server/auth/tls.h"

#include "server/observe/log.h"
#include "server/auth/secret_file.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* Allows only TLS 1.2 and 1.3. Keys are exchanged only by elliptic curves. So a stolen private key reveals
 * nothing about earlier connections, and clients cannot make the server compute with long numbers. */
static char priorities[] =
    "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:-MAC-ALL:+AEAD:"
    "-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1:+GROUP-SECP521R1";

/* Limits the size of a handshake message. Clients send about a tenth of it. */
enum { HANDSHAKE_BYTES_MAX = 16 << 10 };

static const char cert_file[] = "the certificate", key_file[] = "the private key";

struct pair {
    gnutls_x509_crt_t chain[MM_TLS_CHAIN_MAX]; /* the server's certificate first, then its issuers */
    unsigned length;
    gnutls_x509_privkey_t key;
};

/* The certificate in use. It is global, because GnuTLS passes no pointer of ours to provide_pair. */
static struct {
    struct pair *pair;
    pthread_rwlock_t lock; /* guards `pair` while a handshake copies it */
} in_force = {.lock = PTHREAD_RWLOCK_INITIALIZER};

static void free_pair(struct pair *pair) {
    if (pair == NULL)
        return;
    for (unsigned index = 0; index < pair->length; index++)
        gnutls_x509_crt_deinit(pair->chain[index]);
    if (pair->key != NULL)
        gnutls_x509_privkey_deinit(pair->key);
    free(pair);
}

static gnutls_datum_t datum_of(const struct mm_secret_file *file) {
    return (gnutls_datum_t){.data = (unsigned char *)file->text, .size = (unsigned)file->bytes};
}

static enum mm_status read_chain(struct pair *pair, const char *path, struct mm_error *error) {
    struct mm_secret_file file;
    if (mm_secret_file_read(cert_file, path, MM_TLS_FILE_BYTES_MAX, false, &file, error) != MM_OK)
        return error->status;
    const gnutls_datum_t text = datum_of(&file);
    unsigned length = MM_TLS_CHAIN_MAX;
    const int result = gnutls_x509_crt_list_import(pair->chain, &length, &text, GNUTLS_X509_FMT_PEM,
                                                   GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED |
                                                       GNUTLS_X509_CRT_LIST_FAIL_IF_UNSORTED);
    mm_secret_file_wipe(&file);
    if (result > 0) {
        pair->length = (unsigned)result;
        return MM_OK;
    }
    char why[160];
    snprintf(why, sizeof why, "no chain of 1 to %d PEM certificates, the server's first: %s",
             MM_TLS_CHAIN_MAX, gnutls_strerror(result));
    return mm_secret_file_fail(cert_file, path, why, error);
}

static enum mm_status read_key(struct pair *pair, const char *path, struct mm_error *error) {
    struct mm_secret_file file;
    if (mm_secret_file_read(key_file, path, MM_TLS_FILE_BYTES_MAX, true, &file, error) != MM_OK)
        return error->status;
    const gnutls_datum_t text = datum_of(&file);
    int result = gnutls_x509_privkey_init(&pair->key);
    if (result == GNUTLS_E_SUCCESS)
        result = gnutls_x509_privkey_import(pair->key, &text, GNUTLS_X509_FMT_PEM);
    mm_secret_file_wipe(&file);
    if (result == GNUTLS_E_SUCCESS)
        return MM_OK;
    char why[160];
    snprintf(why, sizeof why, "no PEM private key without a password: %s", gnutls_strerror(result));
    return mm_secret_file_fail(key_file, path, why, error);
}

enum { TIME_TEXT_SIZE = 32 };

static const char *time_text(time_t when, char text[TIME_TEXT_SIZE]) {
    struct tm broken_down;
    gmtime_r(&when, &broken_down);
    strftime(text, TIME_TEXT_SIZE, "%Y-%m-%dT%H:%M:%SZ", &broken_down);
    return text;
}

/* Checks the dates of the server's own certificate. Clients do not need all others of the chain. */
static enum mm_status check_dates(const struct pair *pair, const char *path, struct mm_error *error) {
    const time_t now = time(NULL), from = gnutls_x509_crt_get_activation_time(pair->chain[0]),
                 until = gnutls_x509_crt_get_expiration_time(pair->chain[0]);
    char why[96], text[TIME_TEXT_SIZE];
    if (from <= now && now <= until)
        return MM_OK;
    if (until < now)
        snprintf(why, sizeof why, "it has expired: it was valid until %s", time_text(until, text));
    else
        snprintf(why, sizeof why, "it is not valid yet: it will be valid from %s", time_text(from, text));
    return mm_secret_file_fail(cert_file, path, why, error);
}

static enum mm_status check_pair(const struct mm_options *options, struct pair *pair,
                                 struct mm_error *error) {
    gnutls_certificate_credentials_t trial;
    int result = gnutls_certificate_allocate_credentials(&trial);
    if (result == GNUTLS_E_SUCCESS) {
        result = gnutls_certificate_set_x509_key(trial, pair->chain, (int)pair->length, pair->key);
        gnutls_certificate_free_credentials(trial);
    }
    if (result >= 0)
        return MM_OK;
    return mm_fail(error, MM_BAD_REQUEST,
                   "the private key %.200s does not go with the certificate %.200s: %s", options->tls_key,
                   options->tls_cert, gnutls_strerror(result));
}

static struct pair *read_pair(const struct mm_options *options, struct mm_error *error) {
    struct pair *pair = calloc(1, sizeof *pair);
    if (pair == NULL)
        mm_fail(error, MM_INTERNAL, "the system has no memory for a certificate");
    else if (read_chain(pair, options->tls_cert, error) == MM_OK &&
             read_key(pair, options->tls_key, error) == MM_OK && check_pair(options, pair, error) == MM_OK)
        return pair;
    free_pair(pair);
    return NULL;
}

/* Copies a pair for GnuTLS. If it returns a negative GnuTLS code, the caller must free *key and the first
 * *count certificates. */
static int copy_pair(const struct pair *pair, gnutls_pcert_st *certs, unsigned *count,
                     gnutls_privkey_t *key) {
    int result = gnutls_privkey_init(key);
    if (result == GNUTLS_E_SUCCESS)
        result = gnutls_privkey_import_x509(*key, pair->key, GNUTLS_PRIVKEY_IMPORT_COPY);
    for (*count = 0; result == GNUTLS_E_SUCCESS && *count < pair->length;
         *count += result == GNUTLS_E_SUCCESS)
        result = gnutls_pcert_import_x509(&certs[*count], pair->chain[*count], 0);
    return result;
}

/* Gives GnuTLS a copy of the pair, which GnuTLS frees. Returns 0 on success. Runs on any thread of MHD. */
static int provide_pair(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
                        gnutls_pcert_st **certs, unsigned *count, gnutls_ocsp_data_st **ocsp,
                        unsigned *ocsp_count, gnutls_privkey_t *key, unsigned *flags) {
    *ocsp = NULL;
    *ocsp_count = 0;
    *key = NULL;
    *count = 0;
    *certs = gnutls_calloc(MM_TLS_CHAIN_MAX, sizeof **certs);
    if (*certs == NULL)
        return -1;
    pthread_rwlock_rdlock(&in_force.lock);
    const int result = copy_pair(in_force.pair, *certs, count, key);
    pthread_rwlock_unlock(&in_force.lock);
    *flags = GNUTLS_CERT_RETR_DEINIT_ALL;
    if (result == GNUTLS_E_SUCCESS)
        return 0;
    while (*count > 0)
        gnutls_pcert_deinit(&(*certs)[--*count]);
    gnutls_free(*certs);
    if (*key != NULL)
        gnutls_privkey_deinit(*key);
    return -1;
}

static enum mm_status is_supported(struct mm_error *error) {
    if (MHD_is_feature_supported(MHD_FEATURE_TLS) == MHD_YES &&
        MHD_is_feature_supported(MHD_FEATURE_HTTPS_CERT_CALLBACK2) == MHD_YES)
        return MM_OK;
    return mm_fail(error, MM_UNSUPPORTED, "--tls-cert: libmicrohttpd %s was built here without TLS",
                   MHD_get_version());
}

enum mm_status mm_tls_load(const struct mm_options *options, struct mm_error *error) {
    if (options->tls_cert == NULL)
        return MM_OK;
    if (is_supported(error) != MM_OK)
        return error->status;
    struct pair *made = read_pair(options, error);
    if (made == NULL)
        return error->status;
    if (check_dates(made, options->tls_cert, error) != MM_OK) {
        if (in_force.pair != NULL) {
            free_pair(made);
            return error->status;
        }
        mm_log_warning("%s", error->detail); /* there is no earlier certificate to keep, so use the new one */
    }
    pthread_rwlock_wrlock(&in_force.lock);
    struct pair *replaced = in_force.pair;
    in_force.pair = made;
    pthread_rwlock_unlock(&in_force.lock);
    free_pair(replaced);
    char text[TIME_TEXT_SIZE];
    mm_log_info("the certificate in force is valid until %s", time_text(mm_tls_expiry(), text));
    return MM_OK;
}

time_t mm_tls_expiry(void) {
    pthread_rwlock_rdlock(&in_force.lock);
    const time_t expiry =
        in_force.pair == NULL ? 0 : gnutls_x509_crt_get_expiration_time(in_force.pair->chain[0]);
    pthread_rwlock_unlock(&in_force.lock);
    return expiry;
}

void mm_tls_close(void) {
    free_pair(in_force.pair);
    in_force.pair = NULL;
}

void mm_tls_daemon_options(struct MHD_OptionItem items[MM_TLS_DAEMON_OPTIONS]) {
    items[0] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0, priorities};
    items[1] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, (void *)provide_pair};
    items[2] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
}

/* An HTTP method begins with a capital letter, a TLS record with a byte below 32. */
static bool is_plain_http(char first) {
    return first >= 'A' && first <= 'Z';
}

/* Answers in plain HTTP. Then reads the bytes that have arrived, because closing a socket with unread bytes
 * resets the connection, and the client could lose the reply. */
static void refuse_plain_http(int fd) {
    static const char reply[] = "HTTP/1.1 400 Bad Request\r\n"
                                "Content-Type: text/plain\r\n"
                                "Content-Length: 68\r\n"
                                "Connection: close\r\n"
                                "\r\n"
                                "The request is plain HTTP, but this port speaks TLS: send to https.\n";
    char unread[4096];
    (void)send(fd, reply, sizeof reply - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)shutdown(fd, SHUT_WR);
    for (size_t bytes = 0; bytes < MM_TLS_UNREAD_BYTES_MAX; bytes += sizeof unread)
        if (recv(fd, unread, sizeof unread, MSG_DONTWAIT) <= 0)
            break;
}

static ssize_t pull(gnutls_transport_ptr_t argument, void *data, size_t bytes) {
    struct mm_tls_stream *stream = argument;
    if (stream->unread_bytes > MM_TLS_UNREAD_BYTES_MAX) {
        errno = EMSGSIZE;
        return -1;
    }
    const ssize_t got = recv(stream->fd, data, bytes, 0);
    stream->unread_bytes += got > 0 ? (size_t)got : 0;
    if (got > 0 && !stream->has_begun && is_plain_http(*(const char *)data)) {
        refuse_plain_http(stream->fd);
        return 0; /* 0 makes the handshake fail, and MHD closes the connection */
    }
    stream->has_begun = stream->has_begun || got > 0;
    if (got == 0)
        stream->ended(stream); /* `ended` may send data here: GnuTLS allows it during a read */
    return got;
}

/* GnuTLS requires this function together with a pull function, although MHD never waits by it. */
static int pull_timeout(gnutls_transport_ptr_t argument, unsigned milliseconds) {
    const struct mm_tls_stream *stream = argument;
    struct pollfd ready = {.fd = stream->fd, .events = POLLIN};
    return poll(&ready, 1, milliseconds > INT_MAX ? -1 : (int)milliseconds);
}

void mm_tls_attach(void *session, struct mm_tls_stream *stream) {
    gnutls_transport_ptr_t read_from, write_to;
    gnutls_transport_get_ptr2(session, &read_from, &write_to);
    gnutls_transport_set_ptr2(session, stream, write_to);
    gnutls_transport_set_pull_function(session, pull);
    gnutls_transport_set_pull_timeout_function(session, pull_timeout);
    gnutls_handshake_set_max_packet_length(session, HANDSHAKE_BYTES_MAX);
}

size_t mm_tls_send(void *session, const void *data, size_t bytes) {
    size_t sent = 0;
    while (sent < bytes) {
        const ssize_t took = gnutls_record_send(session, (const char *)data + sent, bytes - sent);
        if (took > 0)
            sent += (size_t)took;
        else if (took != GNUTLS_E_INTERRUPTED)
            break;
    }
    return sent;
}

void mm_tls_end(void *session) {
    (void)gnutls_bye(session, GNUTLS_SHUT_WR);
}

/* Whether GnuTLS can continue after this result: false at the end of the data or after a fatal error. */
static bool goes_on(ssize_t result) {
    return result > 0 || (result < 0 && gnutls_error_is_fatal((int)result) == 0);
}

static bool converse(gnutls_session_t session, const char *request, char *reply, size_t reply_size) {
    size_t length = 0;
    ssize_t result;
    do
        result = gnutls_handshake(session);
    while (goes_on(result));
    if (result == 0)
        result = gnutls_record_send(session, request, strlen(request));
    while (goes_on(result) && length < reply_size - 1) {
        result = gnutls_record_recv(session, reply + length, reply_size - 1 - length);
        length += result > 0 ? (size_t)result : 0;
    }
    reply[length] = '\0';
    if (result != GNUTLS_E_PULL_ERROR && result != GNUTLS_E_PUSH_ERROR)
        errno = EPROTO;
    return result >= 0;
}

bool mm_tls_ask(int socket, const char *request, char *reply, size_t reply_size) {
    gnutls_session_t session = NULL;
    gnutls_certificate_credentials_t credentials = NULL;
    bool good = gnutls_init(&session, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL) == GNUTLS_E_SUCCESS &&
                gnutls_certificate_allocate_credentials(&credentials) == GNUTLS_E_SUCCESS &&
                gnutls_set_default_priority(session) == GNUTLS_E_SUCCESS &&
                gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials) == GNUTLS_E_SUCCESS;
    if (good) {
        gnutls_transport_set_int(session, socket);
        good = converse(session, request, reply, reply_size);
    } else {
        errno = ENOMEM;
    }
    const int failure = errno;
    if (session != NULL)
        gnutls_deinit(session);
    if (credentials != NULL)
        gnutls_certificate_free_credentials(credentials);
    errno = failure;
    return good;
}
