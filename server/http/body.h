/* Receiving a body: its limits, and the memory that it reserves step by step as it arrives. Knows no format.
 * The connection's thread calls these functions, unless they say otherwise. */
#pragma once

#include "server/http/request.h"

/* The most bytes that are kept of a body that is passed on. */
enum { MM_BODY_PASSED_BYTES = 2 << 20 };

/* Checks the body's length as the head gives it: MM_LENGTH_REQUIRED or MM_TOO_LARGE in request->error. A
 * route of MM_BODY_SIZED checks the limit in `admit`. */
enum mm_status mm_body_check(struct mm_request *request);
enum mm_status mm_body_check_limit(struct mm_request *request);

/* MM_LENGTH_REQUIRED in request->error if the request has neither Content-Length nor chunks. It is for a
 * route whose requests may lack the length of an empty body. */
enum mm_status mm_body_require_length(struct mm_request *request);

/* Reserves the first step of memory for a request with a body. MM_BUSY, with needed_bytes, if the request
 * must wait for it. */
enum mm_status mm_body_reserve_first(struct mm_request *request);

/* Keeps a chunk of the body and sets *bytes to 0; drops the chunk if the request was refused or needs no
 * body. If memory is full, suspends the connection and leaves *bytes: libmicrohttpd passes the chunk again
 * after the resume. */
enum MHD_Result mm_body_receive(struct mm_request *request, const char *data, size_t *bytes);

/* Whether the body has at most 64 KiB, and is not chunked. */
bool mm_body_is_small(const struct mm_request *request);

/* Releases the memory of the body and of its reader. The connection's thread calls it, or any thread that
 * holds server->mutex while the request waits. */
void mm_body_drop(struct mm_request *request);

/* Releases all memory of a request that ends, also its route's, before the client gets the reply: it may send
 * the next request at once. With server->mutex held, while the request waits or in MM_PHASE_CUT. */
void mm_body_drop_all(struct mm_request *request);

/* How long the upload has taken so far, without its waits for memory. Call it with server->mutex held. */
uint64_t mm_body_upload_ns(const struct mm_request *request, uint64_t now_ns);

/* Whether the deadline has passed before the body was complete; *error is then the reply. Call it with
 * server->mutex held. */
bool mm_body_is_late(const struct mm_request *request, uint64_t now_ns, struct mm_error *error);

/* The time of a byte at the constant rate that completes the body at the request's deadline. The length of a
 * chunked body counts as what has come, and its rate is at least --receive-rate. Any thread. */
double mm_body_byte_ns(const struct mm_request *request);
