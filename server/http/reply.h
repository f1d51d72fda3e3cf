/* Replies through MHD. Each function queues one reply and moves the request to MM_SENDING; on failure
 * request->error is set and the state does not change. The connection's thread calls these functions. */
#pragma once

#include "api/embedded.h"
#include "gpu/store/store.h"
#include "server/http/request.h"

/* Queues request->error as a problem. MHD_NO: nothing could be queued; close the connection. */
enum MHD_Result mm_reply_problem(struct mm_request *request);

/* Queues a 200 with a malloc'ed text of this media type, and becomes the owner of the text. text NULL: memory
 * was out. */
enum mm_status mm_reply_text(struct mm_request *request, char *text, size_t length, const char *type);

/* Queues a 200 with a long malloc'ed text of this media type, and becomes its owner. The text counts in the
 * memory budget until it is sent: MM_BUSY, MM_TOO_LARGE. NULL: memory ran out. */
enum mm_status mm_reply_long_text(struct mm_request *request, char *text, size_t length, const char *type);

/* Queues a 200 with a text of this media type that outlives all replies, and is not copied. */
enum mm_status mm_reply_kept(struct mm_request *request, const void *text, size_t length, const char *type);

/* Queues a 200 with a file of the page, with its ETag and policy; or a 304 if the client has the file.
 * `coding` is the Content-Encoding of the text; NULL: none. */
enum mm_status mm_reply_page(struct mm_request *request, const struct mm_embedded_file *file,
                             const char *type, const char *coding);

/* Queues the reply to a request that has stored a matrix: a 200 or 201 (`http`) with a malloc'ed JSON text,
 * which the reply then owns, the ETag, and the request's own path as Location. NULL: memory ran out. */
enum mm_status mm_reply_stored(struct mm_request *request, unsigned http, char *text, size_t length,
                               const char *etag);

/* Queues a 200 with a stored matrix, or with a part of it of this shape; or a 304 (`http`) with the length of
 * that body. Takes the body and request->value over, also on failure. The body may point into the value's
 * memory. A 304, or a reply to HEAD, may have a body without data, whose length is then sent, or NULL: no
 * length. */
enum mm_status mm_reply_value(struct mm_request *request, unsigned http, struct mm_reply_body *body,
                              const struct mm_shape *shape, const char *type);

/* Queues a 204. */
enum mm_status mm_reply_no_content(struct mm_request *request);

/* Queues a 204 with the methods of the path, for OPTIONS, and the answer to a CORS preflight. */
enum mm_status mm_reply_options(struct mm_request *request);

/* Queues the 200 of a finished product of this shape with Server-Timing and Matmul-*; or a 204 if type is
 * NULL, and then the body is empty. request->value is the stored result, for Location and ETag; NULL: the
 * result is not stored. Takes the body over, also on failure. span_ns: MM_SPAN_COUNT times for
 * Server-Timing. */
enum mm_status mm_reply_product(struct mm_request *request, struct mm_reply_body *body,
                                const struct mm_shape *shape, const char *type, const uint64_t *span_ns);
