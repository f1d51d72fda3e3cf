/* What a request brings: its query and its body, which become parameters and operands. Products and PUT embed
 * it. Knows no wire format: those are the codecs'. */
#pragma once

#include "server/http/request.h"

/* Less than this is decoded or encoded in a fraction of a millisecond, on the connection's own thread. */
enum { MM_LONG_BYTES = 256 << 10 };

/* Begins as zeros, with `operands` set. */
struct mm_input {
    struct mm_operands *operands;   /* the endpoint's, which initialises and releases them */
    const struct mm_codec *decoder; /* NULL: only the body can tell */
    const char *content_type;       /* MHD owns this, and the worker pool decodes by a copy; NULL: absent */
    char *copied_type;              /* that copy; owned */
    bool is_decoded;
};

/* Sets parameters from the query. Of several errors the one that weighs most goes into
 * request->error. The connection's thread. */
enum mm_status mm_input_read_query(struct mm_request *request, struct mm_parameters *values);

/* Once the decoder is known: checks the query, the parameters of the type, and the length. Errors go into
 * request->error. The connection's thread. */
enum mm_status mm_input_plan(struct mm_request *request, struct mm_input *input, uint64_t body_bytes);

/* Lets the decoder's reader, if it has one, read the body while it arrives. The connection's thread. */
void mm_input_begin_reading(struct mm_request *request, struct mm_input *input);

/* The body is complete: lets the worker pool decode it if that takes long. True: the request waits. The
 * connection's thread. */
bool mm_input_decode_on_pool(struct mm_request *request, struct mm_input *input);

/* Reads the complete body into the operands. After MM_BUSY this may be called again. The connection's thread,
 * or one of the worker pool. */
enum mm_status mm_input_decode(struct mm_request *request, struct mm_input *input, struct mm_error *error);

/* Frees what `input` owns. */
void mm_input_release(struct mm_input *input);
