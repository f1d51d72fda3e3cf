/* Runs the service with the CPU backend inside a fuzz target, on the calling thread. Only one connection,
 * which is a socket pair, can be open at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The API key that the service accepts if keys are required. */
#define IN_PROCESS_KEY "0123456789abcdef-fuzz"

/* Starts the service on the first call. Each call sets whether API keys are required, and whether pages of
 * all origins may read replies. */
void in_process_begin(bool asks_keys, bool has_cors);

struct talk {
    int fd;
    bool is_over; /* the service has closed the connection */
    char *reply;
    size_t reply_bytes;
};

void talk_begin(struct talk *talk);

/* Sends bytes. Runs the service until it has read all of them and has nothing left to send, or has closed the
 * connection. */
void talk_send(struct talk *talk, const char *bytes, size_t count);

/* Closes the sending side, and runs the service until it has closed the connection. Aborts if that takes
 * seconds, or if the service still uses memory for the connection. `reply` stays valid until talk_free. */
void talk_end(struct talk *talk);
void talk_free(struct talk *talk);
