/* An upload: the body of a request while it arrives, its limits, and its memory, which is reserved in steps.
 * Knows no format. A body is buffered until it is complete, or is streamed to the route in chunks. Use the
 * upload and these functions on the connection's thread, unless a comment allows others. */
#pragma once

#include "api/codec.h"
#include "gpu/memory/buffer.h"
#include "server/http/inflation.h"

#include <microhttpd.h>

struct mm_request;

enum { MM_UPLOAD_CHUNK_BYTES = 2 << 20 };

enum mm_upload_state {
    MM_UPLOAD_PENDING,  /* the head is being checked, or the request waits for memory */
    MM_UPLOAD_ARRIVING, /* the body arrives; after a refusal it is dropped */
    MM_UPLOAD_COMPLETE
};

enum mm_upload_mode {
    MM_UPLOAD_BUFFERED,  /* `body` keeps the whole body */
    MM_UPLOAD_UNDECIDED, /* buffered until decide_to_stream changes the mode */
    MM_UPLOAD_STREAMED   /* the route gets each chunk; `body` has only one chunk */
};

/* Initialise it with zeros. */
struct mm_upload {
    enum mm_upload_state state;
    int mode;                /* enum mm_upload_mode; the sweep reads it too, by __atomic access */
    uint64_t content_length; /* MM_LENGTH_UNKNOWN if the body is chunked or compressed */
    size_t lead_bytes;       /* unused bytes before the body in its buffer; set by `admit` */
    size_t need_bytes;       /* memory for the request besides its body; 0: unknown */
    struct mm_buffer body;   /* owned; counts in request->memory */
    size_t body_bytes;       /* bytes now in `body`, with lead_bytes; the reader may remove decoded bytes */
    size_t received_bytes;   /* all bytes so far; any thread may read it, by __atomic access */
    size_t streamed_bytes;   /* bytes passed to the route, so no longer in `body` */
    size_t dropped_bytes;

    struct mm_inflation inflation; /* of a compressed body */

    /* Decodes the body while it arrives. `reading` is owned, and NULL while nothing decodes. */
    const struct mm_body_reader *reader;
    void *reading;
};

/* Check the length that the head gives. Fail with MM_LENGTH_REQUIRED or MM_TOO_LARGE in request->error.
 * mm_upload_check_limit checks only the limit. mm_upload_check checks all but the limit of MM_BODY_SIZED. */
enum mm_status mm_upload_check(struct mm_request *request);
enum mm_status mm_upload_check_limit(struct mm_request *request);

/* Fails with MM_LENGTH_REQUIRED if the request has neither Content-Length nor chunks. Call it if a request
 * needs a body but its route does not always require one. */
enum mm_status mm_upload_require_length(struct mm_request *request);

/* Reserves the first memory for a body. Returns MM_BUSY with needed_bytes if the request must wait. */
enum mm_status mm_upload_reserve_first(struct mm_request *request);

/* Stores a chunk of the body and sets *bytes to 0. Drops the chunk if the request was refused or its route
 * takes no body. If memory is short, suspends the connection and leaves *bytes unchanged. So MHD passes the
 * chunk again after the wait. */
enum MHD_Result mm_upload_receive(struct mm_request *request, const char *data, size_t *bytes);

/* Inflates the next slice of a complete compressed body. After the last slice, replaces upload.body, and sets
 * inflation.coding to 0. Fails as mm_inflation_step does. Runs on the worker pool. */
enum mm_status mm_upload_inflate(struct mm_request *request, struct mm_error *error);

/* Whether the body has at most 64 KiB. If the length is unknown, the limit decides. */
bool mm_upload_is_small(const struct mm_request *request);

/* Releases the memory of the body and of its reader. Call it on the connection's thread, or with
 * server->mutex held while the request waits or is in MM_PHASE_CUT. */
void mm_upload_drop(struct mm_request *request);

/* Releases all memory of a request that ends, even memory of its route. Call it before the client gets the
 * reply, because the client may then send its next request. Call it with server->mutex held, while the
 * request waits or its connection is in MM_PHASE_CUT. */
void mm_upload_drop_all(struct mm_request *request);

/* Returns the duration of the upload so far, without waits for memory. Call it with server->mutex held. */
uint64_t mm_upload_time_ns(const struct mm_request *request, uint64_t now_ns);

/* Whether the body missed its deadline. If so, *error becomes the reply. Call it with server->mutex held. */
bool mm_upload_is_late(const struct mm_request *request, uint64_t now_ns, struct mm_error *error);

/* Returns the ns for a byte if the body arrives evenly until its deadline. For a chunked body, assumes that
 * no more bytes follow, but returns at most the ns for a byte at --receive-rate. Any thread may call it. */
double mm_upload_byte_ns(const struct mm_request *request);
