/* One question by TLS. */
#include "server/auth/tls_client.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <string.h>
#include <sys/types.h>

/* False at the end of the data and after a fatal error; a warning is passed over. */
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
    if (session != NULL)
        gnutls_deinit(session);
    if (credentials != NULL)
        gnutls_certificate_free_credentials(credentials);
    return good;
}
