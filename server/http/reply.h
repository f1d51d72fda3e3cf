/* Replies through MHD. Each function queues one reply and moves the request to MM_SENDING. On failure it sets
 * request->error and leaves the state unchanged. Call these functions on the connection's thread. */
#pragma once

#include "api/embedded.h"
#include "gpu/store/store.h"
#include "server/http/request.h"

/* Queues request->error as a problem. If it returns MHD_NO, the caller must close the connection. */
enum MHD_Result mm_reply_problem(struct mm_request *request);

/* Queues a 200 with a malloc'ed text, and takes ownership of it. NULL means that memory ran out. */
enum mm_status mm_reply_text(struct mm_request *request, char *text, size_t length, const char *type);

/* Queues a 200 with a long text of this media type. Takes ownership of the malloc'ed text; NULL means out of
 * memory. The text counts in the memory budget until it is sent, so the function can fail with MM_BUSY. */
enum mm_status mm_reply_long_text(struct mm_request *request, char *text, size_t length, const char *type);

/* Queues a 200 with a text of this media type, without copying it. The text must outlive all replies. */
enum mm_status mm_reply_kept(struct mm_request *request, const void *text, size_t length, const char *type);

/* Queues a 200 with a file of the web page, its ETag and its Content-Security-Policy; or a 304 if the client
 * has the file. `coding` is the Content-Encoding of the file; NULL if it is not compressed. */
enum mm_status mm_reply_page(struct mm_request *request, const struct mm_embedded_file *file,
                             const char *type, const char *coding);

/* Queues the reply to a request that has stored a matrix. `http` is 200 or 201. The reply has a JSON text,
 * the ETag, and the request's path as Location. Takes ownership of the malloc'ed text; NULL means out of
 * memory. */
enum mm_status mm_reply_stored(struct mm_request *request, unsigned http, char *text, size_t length,
                               const char *etag);

/* Queues a 200 or 304 (`http`) with a stored matrix, or with a part of it that has this shape. Takes
 * ownership of the body and of request->value, even on failure. The body may point into the value's memory. A
 * 304 or a reply to HEAD uses only the body's length. If `body` is NULL, the reply has no length. */
enum mm_status mm_reply_value(struct mm_request *request, unsigned http, struct mm_reply_body *body,
                              const struct mm_shape *shape, const char *type);

enum mm_status mm_reply_no_content(struct mm_request *request);

/* Queues a 204 for OPTIONS, with the methods of the path and the headers for a CORS preflight. */
enum mm_status mm_reply_options(struct mm_request *request);

/* Queues a 200 with a finished product of this shape, Server-Timing and the Matmul-* headers. If type is
 * NULL, queues a 204, and the body must be empty. If request->value is not NULL, it must be the stored
 * result; then the reply has Location and ETag. Takes ownership of the body, even on failure. span_ns has
 * MM_SPAN_COUNT times for Server-Timing. */
enum mm_status mm_reply_product(struct mm_request *request, struct mm_reply_body *body,
                                const struct mm_shape *shape, const char *type, const uint64_t *span_ns);
