/* One request and its reply over HTTP/1.1, taken apart no further than a test of failures needs. */
#ifndef MM_TESTS_FAULTS_EXCHANGE_H
#define MM_TESTS_FAULTS_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>

enum ending {
    COMPLETE, /* the reply is whole */
    CLOSED,   /* the connection ended before that */
    HUNG      /* neither in time */
};

struct reply {
    enum ending ending;
    unsigned status;   /* 0 before there was one */
    const char *head;  /* of the last reply but interim ones, in text */
    size_t head_bytes; /* with the empty line */
    const char *body;
    size_t body_bytes;
    char *text; /* all that came, and a NUL; owned */
    size_t text_bytes;
};

/* A connection to the port of this machine; −1 where there is none. */
int exchange_connect(unsigned port);

/* Sends the request, a text, and reads until the reply is whole, the connection closed or the time over; if
 * it asks for the connection's close, until that, when the server holds nothing of it any more. The reply is
 * to be freed by reply_free, however it ended. The connection stays open on this side. */
void exchange_talk(int connection, const char *request, size_t request_bytes, struct reply *reply);

void reply_free(struct reply *reply);

/* The header's value, up to the line's end; NULL where it is absent. */
const char *reply_header(const struct reply *reply, const char *name, size_t name_bytes);

#endif
