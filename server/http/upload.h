/* An upload: the body of a request while it arrives, its limits, and its memory, which is reserved step by
 * step. Knows no format. A body is buffered until it is complete, or streamed to the route in chunks. Unless
 * noted, the connection's thread uses the upload and calls these functions. */
#pragma once

#include "api/codec.h"
#include "gpu/memory/buffer.h"

#include <microhttpd.h>

struct mm_request;

/* Bytes of a chunk of a streamed body. */
enum { MM_UPLOAD_CHUNK_BYTES = 2 << 20 };

enum mm_upload_state {
    MM_UPLOAD_PENDING,  /* the head is being checked, or waits for its first memory */
    MM_UPLOAD_ARRIVING, /* the body arrives; if the request was refused, it is dropped */
    MM_UPLOAD_COMPLETE
};

enum mm_upload_mode {
    MM_UPLOAD_BUFFERED,  /* `body` keeps all bytes */
    MM_UPLOAD_UNDECIDED, /* buffered; route->state->decide_to_stream may still choose another mode */
    MM_UPLOAD_STREAMED   /* route->state->stream gets each chunk; `body` has the current one */
};

/* Initialise it with zeros. */
struct mm_upload {
    enum mm_upload_state state;
    int mode;                /* enum mm_upload_mode; the sweep reads it too, by __atomic access */
    uint64_t content_length; /* MM_LENGTH_UNKNOWN: chunked */
    size_t need_bytes;       /* memory that the request needs beside the body; 0: unknown */
    struct mm_buffer body;   /* owned; counts in request->memory */
    size_t body_bytes;       /* in `body` now; the reader may remove decoded bytes */
    size_t received_bytes;   /* received so far; __atomic access only, any thread may read it */
    size_t streamed_bytes;   /* passed to the route, and no longer in `body` */
    size_t dropped_bytes;

    /* Decodes the body while it arrives. `reading` is owned, and NULL if nothing decodes. */
    const struct mm_body_reader *reader;
    void *reading;
};

/* Check the length that the head gives. On failure they set request->error to MM_LENGTH_REQUIRED or
 * MM_TOO_LARGE. If the route is MM_BODY_SIZED, mm_upload_check leaves the limit to `admit`. */
enum mm_status mm_upload_check(struct mm_request *request);
enum mm_status mm_upload_check_limit(struct mm_request *request);

/* Sets request->error to MM_LENGTH_REQUIRED if the request has neither Content-Length nor chunks. For routes
 * whose requests may lack the length of an empty body. */
enum mm_status mm_upload_require_length(struct mm_request *request);

/* Reserves the first memory for a body. MM_BUSY with needed_bytes if the request must wait. */
enum mm_status mm_upload_reserve_first(struct mm_request *request);

/* Stores a chunk of the body and sets *bytes to 0. Drops the chunk if the request was refused or takes no
 * body. If memory is full, suspends the connection and leaves *bytes, so MHD passes the chunk again after the
 * resume. */
enum MHD_Result mm_upload_receive(struct mm_request *request, const char *data, size_t *bytes);

/* Whether the body can have at most 64 KiB. */
bool mm_upload_is_small(const struct mm_request *request);

/* Releases the memory of the body and of its reader. The connection's thread calls it, or a thread that holds
 * server->mutex while the request waits or is in MM_PHASE_CUT. */
void mm_upload_drop(struct mm_request *request);

/* Releases all memory of a request that ends, also its route's. Runs before the client gets the reply,
 * because the client may send its next request at once. Call it with server->mutex held, while the request
 * waits or is in MM_PHASE_CUT. */
void mm_upload_drop_all(struct mm_request *request);

/* How long the upload has taken so far, without its waits for memory. Call it with server->mutex held. */
uint64_t mm_upload_time_ns(const struct mm_request *request, uint64_t now_ns);

/* Whether the body missed its deadline; *error is then the reply. Call it with server->mutex held. */
bool mm_upload_is_late(const struct mm_request *request, uint64_t now_ns, struct mm_error *error);

/* The time for a byte at the constant rate that completes the body by its deadline. A chunked body is taken
 * to end with what has arrived, and its rate is at least --receive-rate. Any thread may call it. */
double mm_upload_byte_ns(const struct mm_request *request);
