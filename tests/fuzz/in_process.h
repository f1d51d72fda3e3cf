/* Runs the service with the CPU backend inside a fuzz target, on the calling thread. It serves one connection
 * at a time, over a socket pair. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The API key of the service, if it requires one. */
#define IN_PROCESS_KEY "0123456789abcdef-fuzz"

/* Starts the service on the first call. Each call sets whether API keys are required and whether pages of all
 * origins may read responses. */
void in_process_begin(bool asks_keys, bool has_cors);

/* A connection to the service, and what the service sent over it. */
struct talk {
    int fd;
    bool is_over; /* the service has closed its side */
    char *reply;
    size_t reply_bytes;
};

void talk_begin(struct talk *talk);

/* Sends bytes, and runs the service until it has read them all and has nothing more to send, or has closed.
 */
void talk_send(struct talk *talk, const char *bytes, size_t count);

/* Closes the sending side, and runs the service until it has closed the connection. Fails if that takes
 * seconds, or if the service still holds memory for it. The reply stays until talk_free. */
void talk_end(struct talk *talk);
void talk_free(struct talk *talk);
