/* Replaces tls.c in a build without GnuTLS. --tls-cert fails, so no server runs without TLS by mistake. */
#include "server/auth/tls.h"

#include <errno.h>

enum mm_status mm_tls_load(const struct mm_options *options, struct mm_error *error) {
    if (options->tls_cert == NULL)
        return MM_OK;
    return mm_fail(error, MM_UNSUPPORTED,
                   "--tls-cert: this matmuld was built without TLS, which takes GnuTLS (libgnutls28-dev)");
}

time_t mm_tls_expiry(void) {
    return 0;
}

void mm_tls_close(void) {
}

void mm_tls_daemon_options(struct MHD_OptionItem items[MM_TLS_DAEMON_OPTIONS]) {
    items[0] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
}

void mm_tls_attach(void *session, struct mm_tls_stream *stream) {
}

size_t mm_tls_send(void *session, const void *data, size_t bytes) {
    return 0;
}

void mm_tls_end(void *session) {
}

bool mm_tls_ask(int socket, const char *request, char *reply, size_t reply_size) {
    errno = EPROTONOSUPPORT;
    return false;
}
