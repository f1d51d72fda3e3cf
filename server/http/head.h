/* Checks that libmicrohttpd has read a head as the client sent it. The guard (guard.h) checks the values. */
#pragma once

#include "gpu/names.h"
#include "gpu/status.h"

#include <microhttpd.h>

#define MM_HEADER_TABLE(X)                                                                                   \
    X(MM_HEADER_ACCEPT, MHD_HTTP_HEADER_ACCEPT)                                                              \
    X(MM_HEADER_CONTENT_ENCODING, MHD_HTTP_HEADER_CONTENT_ENCODING)                                          \
    X(MM_HEADER_CONTENT_LENGTH, MHD_HTTP_HEADER_CONTENT_LENGTH)                                              \
    X(MM_HEADER_CONTENT_TYPE, MHD_HTTP_HEADER_CONTENT_TYPE)                                                  \
    X(MM_HEADER_EXPECT, MHD_HTTP_HEADER_EXPECT)                                                              \
    X(MM_HEADER_HOST, MHD_HTTP_HEADER_HOST)                                                                  \
    X(MM_HEADER_IF_MATCH, MHD_HTTP_HEADER_IF_MATCH)                                                          \
    X(MM_HEADER_IF_NONE_MATCH, MHD_HTTP_HEADER_IF_NONE_MATCH)                                                \
    X(MM_HEADER_INFERENCE_LENGTH, "Inference-Header-Content-Length")                                         \
    X(MM_HEADER_ORIGIN, MHD_HTTP_HEADER_ORIGIN)                                                              \
    X(MM_HEADER_FORWARDED_FOR, "X-Forwarded-For")                                                            \
    X(MM_HEADER_REQUEST_ID, "X-Request-Id")                                                                  \
    X(MM_HEADER_TRACEPARENT, "traceparent")

enum mm_header { MM_HEADER_TABLE(MM_CONSTANT) MM_HEADER_COUNT };

const char *mm_header_name(enum mm_header header);

struct mm_request;

/* Callbacks of MHD (server/http/http.c), on the connection's thread. mm_head_unescape decodes a path or a
 * part of a query in place. mm_head_note_target records the target's length before decoding. */
size_t mm_head_unescape(void *server, struct MHD_Connection *connection, char *text);
void *mm_head_note_target(void *server, const char *target, struct MHD_Connection *connection);

/* Sets request->headers, and checks that every parser would understand the head equally. Sets
 * request->upload.content_length, or fails with MM_BAD_REQUEST. The other arguments are those of MHD's first
 * call of the handler; `url` is decoded. Call it on the connection's thread during that call. */
enum mm_status mm_head_check(struct mm_request *request, const char *method, const char *url,
                             const char *version);

/* Sets request->client, by the connection's address or what a trusted proxy says. Call it on the connection's
 * thread. */
void mm_head_find_client(struct mm_request *request);

/* Sets request->traceparent. Call it on the connection's thread. */
void mm_head_find_trace(struct mm_request *request);

/* Sets request->upload.inflation.coding. Fails with MM_UNSUPPORTED_MEDIA_TYPE if the route does not take this
 * coding. Call it on the connection's thread. */
enum mm_status mm_head_check_coding(struct mm_request *request);

/* Returns the codings that the route takes, for Accept-Encoding. Any thread may call it. */
const char *mm_head_codings(const struct mm_request *request);

/* Whether an error is about the body's coding, so the reply needs Accept-Encoding. Any thread may call it. */
bool mm_head_is_about_coding(const struct mm_error *error);
