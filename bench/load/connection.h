/* A keep-alive connection to the service, and the reading of HTTP/1.1 replies. It knows nothing of
 * what is asked or answered. */
#ifndef MM_LOAD_CONNECTION_H
#define MM_LOAD_CONNECTION_H

#include "bench/load/bytes.h"

#include <netdb.h>

enum { MM_LOAD_HEADERS_MAX = 32, MM_LOAD_PROBLEM_BYTES = 512 };

struct mm_load_connection {
    int socket; /* -1: closed */
    struct mm_load_bytes received;
};

/* A reply; good until the next is received into it. Starts as {0}; the owner frees head and body. */
struct mm_load_reply {
    unsigned status;
    bool closes; /* says Connection: close */
    size_t header_count;
    struct {
        const char *name;
        const char *value;
    } headers[MM_LOAD_HEADERS_MAX];
    struct mm_load_bytes head;
    struct mm_load_bytes body;
};

/* What goes wrong is said in `problem`, of MM_LOAD_PROBLEM_BYTES, and the connection is then closed. */
bool mm_load_connect(struct mm_load_connection *connection, const struct addrinfo *address, char *problem);
bool mm_load_send(struct mm_load_connection *connection, const char *data, size_t bytes, char *problem);

/* Receives one reply, an interim one (1xx) too. A reply without a Content-Length of its exact length,
 * with a header twice, or cut off is malformed. */
bool mm_load_receive(struct mm_load_connection *connection, struct mm_load_reply *reply, char *problem);

/* Closes; `received` is freed. */
void mm_load_disconnect(struct mm_load_connection *connection);

/* The same by a reset, as a process that is killed with unread data leaves. */
void mm_load_reset(struct mm_load_connection *connection);

/* A header's value; NULL where there is none. Case is ignored. */
const char *mm_load_header(const struct mm_load_reply *reply, const char *name);

/* The same in the text of a head that ends with a NUL: where the value begins there. */
const char *mm_load_header_in(const char *head, const char *name);

void mm_load_reply_free(struct mm_load_reply *reply);

#endif
