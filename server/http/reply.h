/* Replies handed to MHD. Each function queues one reply and moves the request to MM_SENDING; on failure
 * request->error is set and the state unchanged. The connection's thread. */
#pragma once

#include "server/http/request.h"

/* Queues request->error as a problem. MHD_NO: nothing could be queued; close the connection. */
enum MHD_Result mm_reply_problem(struct mm_request *request);

/* Queues a 200 with a malloc'ed text of this media type, and takes it over. NULL: memory ran out. */
enum mm_status mm_reply_text(struct mm_request *request, char *text, size_t length, const char *type);

/* The same for a text that outlives all replies, and is not copied. */
enum mm_status mm_reply_kept(struct mm_request *request, const void *text, size_t length, const char *type);

/* Queues a 204 with request->allow, for OPTIONS, with the answer to a CORS preflight. */
enum mm_status mm_reply_options(struct mm_request *request);

/* Queues the 200 of a finished product of this shape with Server-Timing and Matmul-*, or a 204 if type is
 * NULL, for which the body is empty; takes the body over, also on failure. */
enum mm_status mm_reply_product(struct mm_request *request, struct mm_reply_body *body,
                                const struct mm_shape *shape, const char *type);
