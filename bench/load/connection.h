/* A connection to the service, and where a header begins in a reply's head. */
#ifndef MM_LOAD_CONNECTION_H
#define MM_LOAD_CONNECTION_H

#include "bench/load/bytes.h"

#include <netdb.h>

enum { MM_LOAD_PROBLEM_BYTES = 512 };

struct mm_load_connection {
    int socket; /* -1: closed */
    struct mm_load_bytes received;
};

/* `received` starts empty. What goes wrong is said in `problem`, of MM_LOAD_PROBLEM_BYTES, and there is no
 * connection then. */
bool mm_load_connect(struct mm_load_connection *connection, const struct addrinfo *address, char *problem);

/* Closes; `received` is freed. */
void mm_load_disconnect(struct mm_load_connection *connection);

/* Where a header's value begins in the text of a head that ends with a NUL; NULL where there is none. Case is
 * ignored. */
const char *mm_load_header_in(const char *head, const char *name);

#endif
