/* One question by TLS. GnuTLS says when it wants to wait, and for what. */
#include "server/tls_client.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <poll.h>
#include <string.h>
#include <sys/types.h>

/* A client's call of GnuTLS that is to be repeated: once the socket is ready, or at once after a word of
 * warning. */
static bool may_repeat(gnutls_session_t session, ssize_t result, int socket, uint64_t deadline_ns,
                       mm_tls_wait *wait) {
    if (gnutls_error_is_fatal((int)result) != 0) {
        errno = EPROTO;
        return false;
    }
    return result != GNUTLS_E_AGAIN ||
           wait(socket, gnutls_record_get_direction(session) == 0 ? POLLIN : POLLOUT, deadline_ns);
}

static bool converse(gnutls_session_t session, int socket, uint64_t deadline_ns, mm_tls_wait *wait,
                     const char *request, char *reply, size_t reply_size) {
    size_t length = 0;
    ssize_t result;
    while ((result = gnutls_handshake(session)) < 0)
        if (!may_repeat(session, result, socket, deadline_ns, wait))
            return false;
    while ((result = gnutls_record_send(session, request, strlen(request))) < 0)
        if (!may_repeat(session, result, socket, deadline_ns, wait))
            return false;
    while (length < reply_size - 1) {
        result = gnutls_record_recv(session, reply + length, reply_size - 1 - length);
        if (result == 0)
            break;
        if (result > 0)
            length += (size_t)result;
        else if (!may_repeat(session, result, socket, deadline_ns, wait))
            return false;
    }
    reply[length] = '\0';
    return true;
}

bool mm_tls_ask(int socket, uint64_t deadline_ns, mm_tls_wait *wait, const char *request, char *reply,
                size_t reply_size) {
    gnutls_session_t session = NULL;
    gnutls_certificate_credentials_t credentials = NULL;
    bool good =
        gnutls_init(&session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) == GNUTLS_E_SUCCESS &&
        gnutls_certificate_allocate_credentials(&credentials) == GNUTLS_E_SUCCESS &&
        gnutls_set_default_priority(session) == GNUTLS_E_SUCCESS &&
        gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials) == GNUTLS_E_SUCCESS;
    if (good) {
        gnutls_transport_set_int(session, socket);
        good = converse(session, socket, deadline_ns, wait, request, reply, reply_size);
    } else {
        errno = ENOMEM;
    }
    if (session != NULL)
        gnutls_deinit(session);
    if (credentials != NULL)
        gnutls_certificate_free_credentials(credentials);
    return good;
}
