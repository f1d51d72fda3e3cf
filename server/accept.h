/* The Accept header of a request, however often it stands there. */
#ifndef MM_SERVER_ACCEPT_H
#define MM_SERVER_ACCEPT_H

#include "server/exchange.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What does not fit is left out: nobody who means it writes so much. */
struct mm_accept {
    char text[4096];
    size_t length;
    bool given;
};

/* Reads it into *accept, and returns its text, which lives as long as that; NULL where there is none. The
 * connection's thread. */
const char *mm_accept_read(const struct mm_exchange *exchange, struct mm_accept *accept);

#ifdef __cplusplus
}
#endif
#endif
