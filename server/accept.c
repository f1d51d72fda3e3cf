/* A list header may stand several times, which means its values joined by commas (RFC 9110, 5.3). */
#include "server/accept.h"

#include <stdio.h>
#include <strings.h>

static enum MHD_Result join(void *argument, enum MHD_ValueKind kind, const char *name, const char *value) {
    struct mm_accept *accept = argument;
    (void)kind;
    if (strcasecmp(name, MHD_HTTP_HEADER_ACCEPT) != 0 || value == NULL)
        return MHD_YES;
    size_t room = sizeof accept->text - accept->length;
    size_t length =
        (size_t)snprintf(accept->text + accept->length, room, "%s%s", accept->given ? ", " : "", value);
    accept->given = true;
    if (length >= room) {
        accept->text[accept->length] = '\0';
        return MHD_NO;
    }
    accept->length += length;
    return MHD_YES;
}

const char *mm_accept_read(const struct mm_exchange *exchange, struct mm_accept *accept) {
    accept->text[0] = '\0'; /* the rest is not cleared: that would cost every request 4 KiB of writing */
    accept->length = 0;
    accept->given = false;
    MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, join, accept);
    return accept->given ? accept->text : NULL;
}
