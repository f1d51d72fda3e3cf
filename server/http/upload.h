/* An upload: the body of a request while it arrives, its limits, and the memory that it reserves step by
 * step. Knows no format. A body is buffered until it is complete, or streamed to the route in chunks. The
 * connection's thread uses the upload and calls these functions, unless a comment says otherwise. */
#pragma once

#include "api/codec.h"
#include "gpu/memory/buffer.h"

#include <microhttpd.h>

struct mm_request;

/* The size of the chunks in which a streamed body is passed to its route. */
enum { MM_UPLOAD_CHUNK_BYTES = 2 << 20 };

enum mm_upload_state {
    MM_UPLOAD_PENDING,  /* the head is checked, or waits for the first step of memory */
    MM_UPLOAD_ARRIVING, /* the body arrives; if the request was refused, the body is dropped */
    MM_UPLOAD_COMPLETE  /* the whole body has arrived */
};

/* What happens to the bytes of the body. */
enum mm_upload_mode {
    MM_UPLOAD_BUFFERED,  /* `body` keeps all of them */
    MM_UPLOAD_UNDECIDED, /* buffered; route->state->decide_to_stream may still choose the next mode */
    MM_UPLOAD_STREAMED   /* route->state->stream gets each chunk, and `body` has the last one */
};

/* Begins as zeros. */
struct mm_upload {
    enum mm_upload_state state;
    int mode;                /* enum mm_upload_mode; the sweep reads it too, by __atomic access */
    uint64_t content_length; /* MM_LENGTH_UNKNOWN: chunked */
    size_t need_bytes;       /* memory that the request needs beside the body; 0: unknown */
    struct mm_buffer body;   /* owned; counts in request->memory */
    size_t body_bytes;       /* in `body` now; the reader may remove bytes that it has decoded */
    size_t received_bytes;   /* of the body so far; __atomic access only, any thread may read it */
    size_t streamed_bytes;   /* passed to the route, and no longer in `body` */
    size_t dropped_bytes;    /* received after a refusal */

    /* Decodes the body while it arrives. `reading` is owned; NULL: nothing decodes. */
    const struct mm_body_reader *reader;
    void *reading;
};

/* Checks the body's length as the head gives it: MM_LENGTH_REQUIRED or MM_TOO_LARGE in request->error. A
 * route of MM_BODY_SIZED checks the limit in `admit`. */
enum mm_status mm_upload_check(struct mm_request *request);
enum mm_status mm_upload_check_limit(struct mm_request *request);

/* MM_LENGTH_REQUIRED in request->error if the request has neither Content-Length nor chunks. It is for a
 * route whose requests may lack the length of an empty body. */
enum mm_status mm_upload_require_length(struct mm_request *request);

/* Reserves the first step of memory for a request with a body. MM_BUSY, with needed_bytes, if the request
 * must wait for it. */
enum mm_status mm_upload_reserve_first(struct mm_request *request);

/* Stores a chunk of the body and sets *bytes to 0; drops the chunk if the request was refused or needs no
 * body. If memory is full, suspends the connection and leaves *bytes: libmicrohttpd passes the chunk again
 * after the resume. */
enum MHD_Result mm_upload_receive(struct mm_request *request, const char *data, size_t *bytes);

/* Whether the body has at most 64 KiB, and is not chunked. */
bool mm_upload_is_small(const struct mm_request *request);

/* Releases the memory of the body and of its reader. The connection's thread calls it, or any thread that
 * holds server->mutex while the request waits. */
void mm_upload_drop(struct mm_request *request);

/* Releases all memory of a request that ends, also its route's, before the client gets the reply: it may send
 * the next request at once. With server->mutex held, while the request waits or in MM_PHASE_CUT. */
void mm_upload_drop_all(struct mm_request *request);

/* How long the upload has taken so far, without its waits for memory. Call it with server->mutex held. */
uint64_t mm_upload_time_ns(const struct mm_request *request, uint64_t now_ns);

/* Whether the deadline has passed before the body was complete; *error is then the reply. Call it with
 * server->mutex held. */
bool mm_upload_is_late(const struct mm_request *request, uint64_t now_ns, struct mm_error *error);

/* The time of a byte at the constant rate that completes the body at the request's deadline. The length of a
 * chunked body counts as what has arrived, and its rate is at least --receive-rate. Any thread. */
double mm_upload_byte_ns(const struct mm_request *request);
