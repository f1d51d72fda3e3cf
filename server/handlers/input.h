/* The input of a request: its query and its body, which become parameters and operands. The handlers of
 * products and of PUT embed struct mm_input. The codecs know the wire formats. Unless noted, the connection's
 * thread calls these functions. */
#pragma once

#include "server/http/request.h"

/* Decoding or encoding up to this size is quick enough for the connection's thread. */
enum { MM_LONG_BYTES = 256 << 10 };

/* Initialise it with zeros, and set `operands`. */
struct mm_input {
    struct mm_operands *operands;   /* the handler initialises and releases them */
    const struct mm_codec *decoder; /* NULL: the first character of the body decides */
    const char *content_type;       /* memory of MHD, or copied_type; NULL: the request has none */
    char *copied_type;              /* owned copy of the header, for the worker pool */
    bool is_decoded;
};

/* Sets parameters from the query. If there are several errors, request->error gets the first of the most
 * serious kind: too large, then malformed, then an unknown matrix. */
enum mm_status mm_input_read_query(struct mm_request *request, struct mm_parameters *values);

/* Checks the Content-Type, the query and the body's length once the decoder is known. Sets request->error. */
enum mm_status mm_input_plan(struct mm_request *request, struct mm_input *input, uint64_t body_bytes);

/* If the decoder has a reader, begins to read the body while it arrives. */
void mm_input_begin_reading(struct mm_request *request, struct mm_input *input);

/* Hands a complete body to the worker pool if decoding takes long. True: the request waits for the pool. */
bool mm_input_decode_on_pool(struct mm_request *request, struct mm_input *input);

/* Decodes the complete body into the operands. MM_BUSY means that memory is short, and the caller may try
 * again. The connection's thread or a thread of the worker pool calls it. */
enum mm_status mm_input_decode(struct mm_request *request, struct mm_input *input, struct mm_error *error);

/* Frees copied_type, but not the operands. */
void mm_input_release(struct mm_input *input);
