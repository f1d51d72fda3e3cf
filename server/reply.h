/* Replies: headers and bodies handed to MHD. Each function queues one reply and makes the exchange
 * MM_ANSWERED; where that fails it says so, with exchange->error set and the state as it was. The
 * connection's thread. */
#ifndef MM_SERVER_REPLY_H
#define MM_SERVER_REPLY_H

#include "server/exchange.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Queues exchange->error as a problem, with Retry-After, Allow, WWW-Authenticate or Connection: close where
 * they belong. MHD_NO: nothing could be queued, and the connection is to be closed. */
enum MHD_Result mm_reply_problem(struct mm_exchange *exchange);

/* Queues a 200 with a malloc'ed text of this media type, which is taken over. NULL: memory was out. */
enum mm_status mm_reply_text(struct mm_exchange *exchange, char *text, size_t length, const char *type);

/* Queues a 204 with exchange->allow, for OPTIONS, and with what a browser asks before it sends a request of
 * another origin's page. */
enum mm_status mm_reply_options(struct mm_exchange *exchange);

/* Queues the 200 of a finished product: body (taken over, also on failure), Server-Timing, Matmul-*. */
enum mm_status mm_reply_product(struct mm_exchange *exchange, struct mm_reply_body *body, const char *type);

#ifdef __cplusplus
}
#endif
#endif
