/* What a request brings: its query and its body, which become parameters and operands. Products and PUT embed
 * it. The codecs know the wire formats. The connection's thread calls these functions. */
#pragma once

#include "server/http/request.h"

/* Up to this size, decoding or encoding takes a fraction of a millisecond, on the connection's own thread. */
enum { MM_LONG_BYTES = 256 << 10 };

/* Begins as zeros, with `operands` set. */
struct mm_input {
    struct mm_operands *operands;   /* the endpoint initialises and releases them */
    const struct mm_codec *decoder; /* NULL: only the body shows which one */
    const char *content_type;       /* MHD owns this, and the worker pool decodes by a copy; NULL: absent */
    char *copied_type;              /* that copy; owned */
    bool is_decoded;
};

/* Sets parameters from the query. Of several errors, request->error gets the first of the gravest kind: too
 * large, then malformed, then an unknown matrix. */
enum mm_status mm_input_read_query(struct mm_request *request, struct mm_parameters *values);

/* Checks the Content-Type, the query and the length of the body, once the decoder is known. Errors go into
 * request->error. */
enum mm_status mm_input_plan(struct mm_request *request, struct mm_input *input, uint64_t body_bytes);

/* Begins to read the body while it arrives, if the decoder has a reader. */
void mm_input_begin_reading(struct mm_request *request, struct mm_input *input);

/* Lets the worker pool decode a complete body if that takes long. True: the request waits for it. */
bool mm_input_decode_on_pool(struct mm_request *request, struct mm_input *input);

/* Decodes the complete body into the operands. MM_BUSY if memory is short: the caller may try again. The
 * connection's thread calls it, or one of the worker pool. */
enum mm_status mm_input_decode(struct mm_request *request, struct mm_input *input, struct mm_error *error);

/* Frees what `input` owns. */
void mm_input_release(struct mm_input *input);
