/* The input of a request: its query and body, which become parameters and operands. The handlers of products
 * and of PUT embed struct mm_input. The codecs know the wire formats. Call these functions on the
 * connection's thread, unless a comment says otherwise. */
#pragma once

#include "server/http/request.h"

/* The connection's thread decodes or encodes up to this many bytes itself, the worker pool more. */
enum { MM_LONG_BYTES = 256 << 10 };

/* The caller fills it with zeros, then sets `operands`. */
struct mm_input {
    struct mm_operands *operands;   /* the handler initialises and releases them */
    const struct mm_codec *decoder; /* NULL until the body's first character decides */
    bool is_decoded;
};

/* Sets parameters from the query. Reports only the most serious error in request->error: too large, then
 * malformed, then an unknown matrix. Of several errors of one kind, reports the first. */
enum mm_status mm_input_read_query(struct mm_request *request, struct mm_parameters *values);

/* Checks Content-Type, query and body length. Call it when the decoder is known. Sets request->error. */
enum mm_status mm_input_plan(struct mm_request *request, struct mm_input *input, uint64_t body_bytes);

/* Starts to decode the body while it arrives, if the decoder can do this and the body is not compressed. */
void mm_input_begin_reading(struct mm_request *request, struct mm_input *input);

/* If decoding takes long, hands the body to the worker pool and returns true. The request then waits.
 * Returns false also if memory runs out; the connection's thread then decodes. */
bool mm_input_decode_on_pool(struct mm_request *request, struct mm_input *input);

/* Decodes the complete body into the operands. MM_BUSY means that memory is short; then the caller can try
 * again. Runs on the connection's thread or on the worker pool. */
enum mm_status mm_input_decode(struct mm_request *request, struct mm_input *input, struct mm_error *error);
