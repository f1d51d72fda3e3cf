/* The service within a fuzz target: all of server/, api/ and gpu/ with the CPU backend, and libmicrohttpd,
 * which this file's caller turns itself, in place of a thread. One connection at a time, over a socket pair.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The key that the service has where it asks for one. */
#define IN_PROCESS_KEY "0123456789abcdef-fuzz"

/* Starts the service, once; later calls say anew whether it asks for keys and lets pages of all origins read.
 */
void in_process_begin(bool asks_keys, bool has_cors);

/* A connection. What came back is grown by realloc, ended by NUL, and freed by talk_end. */
struct talk {
    int fd;
    bool is_over; /* the service sends nothing more */
    char *reply;
    size_t reply_bytes;
};

void talk_begin(struct talk *talk);

/* Sends, and lets the service work until it has taken all and has nothing more to say, or has closed. */
void talk_send(struct talk *talk, const char *bytes, size_t count);

/* Sends no more, and waits until the service has let go of the connection: it has to, within seconds, and to
 * hold nothing for it after that. What came back stays until talk_free. */
void talk_end(struct talk *talk);
void talk_free(struct talk *talk);
