/* Codecs: one for each wire format. A codec turns a body into matrix views, and a result into a body. Codecs
 * know no sockets and no devices.
 *
 * The connection's thread calls a codec for small bodies and results. For large ones, a thread of the worker
 * pool calls `decode`, `encode` and `finish`, while the connection waits. If the client disconnects, or if a
 * request ends while it waits for memory, the thread that ends the request calls `cancel`. */
#pragma once

#include "api/operand.h"
#include "gpu/queue/outcome.h"

struct mm_call; /* api/call.h */

#define MM_LENGTH_UNKNOWN UINT64_MAX /* length of a chunked body that is still arriving */

/* A complete request body. The caller keeps the body until the job is done, because views may point into the
 * body. A codec may move elements within the body. */
struct mm_body {
    void *data; /* aligned to 64 bytes; NULL if no bytes arrived */
    size_t bytes;
};

/* Threads that divide long work. `run` calls one(data, index) for each index below count, and makes these
 * calls in parallel. It returns when all calls have returned. The calling thread takes part in the work. */
struct mm_helpers {
    void (*run)(struct mm_helpers *helpers, unsigned count, void (*one)(void *data, unsigned index),
                void *data);
};

/* The content of a reply: a matrix or figures such as its sum, and facts about the computation. For a stored
 * matrix, `outcome` is NULL, and `device` and `operand_dtype` are not used. */
struct mm_answer {
    const struct mm_call *call; /* the request; used only by the Open Inference Protocol */
    const struct mm_outcome *outcome;
    const struct mm_device *device;
    enum mm_dtype operand_dtype;
    struct mm_matrix matrix; /* dense; if has_matrix is false, only its member dtype is set */
    const struct mm_shape *shape;
    bool has_matrix;                      /* the reply includes the elements; false only in JSON */
    uint64_t figures;                     /* bits of enum mm_figure; 0 except in JSON */
    const struct mm_reduction *reduction; /* values of the figures */
    struct mm_buffer *result;             /* memory of the elements; `encode` may move it to the body */
    const uint64_t
        *span_ns; /* durations, indexed by enum mm_span; encode and total are final only in `finish` */
    struct mm_helpers *helpers; /* NULL if the encoder works alone */
};

enum { MM_REPLY_HEAD_MAX = 256 };

/* A reply's body: head_bytes bytes of `head`, then `bytes` bytes of the buffer from `offset` on. Because a
 * format can put its header into `head`, or before the elements in the buffer, the elements need not be
 * copied. The struct's owner frees the buffer. */
struct mm_reply_body {
    char head[MM_REPLY_HEAD_MAX];
    size_t head_bytes;
    struct mm_buffer buffer;
    size_t offset;
    size_t bytes;
    size_t json_bytes; /* for the header Inference-Header-Content-Length; 0: no such header */
};

/* Functions that read a body while it arrives. The body is in the caller's memory, aligned to 64 bytes. */
struct mm_body_reader {
    /* Begins to read a body of body_bytes bytes, or of unknown length (MM_LENGTH_UNKNOWN). content_type is
     * the whole header, or NULL, and is not read after the call. `into` is the first member of the endpoint's
     * struct, where the query's parameters are. The reader copies the endpoint's whole struct. The caller
     * keeps `limits` and `memory` until it calls `finish` or `cancel`. Returns the state for the other
     * functions, or NULL if memory runs out. The caller can call `begin` again when the body is complete. */
    void *(*begin)(const struct mm_operands *into, const char *content_type, uint64_t body_bytes,
                   const struct mm_limits *limits, struct mm_reservation *memory);

    /* Reads on, after the body has grown to body_bytes. The caller may have moved the body. The reader may
     * move elements within the body. Returns the body's new length; the caller puts the next chunk there. */
    size_t (*feed)(void *reading, void *body, size_t body_bytes);

    /* Frees the memory of decoded elements for other requests, so `finish` will read the body again. The
     * member is NULL if the reader keeps no such memory. */
    void (*yield)(void *reading);

    /* Whether `finish` is quick enough for the connection's thread. Call this after `feed` has read the
     * body. */
    bool (*is_quick)(const void *reading);

    /* Ends the reading, and fills the endpoint's struct. On failure the endpoint's struct is unchanged.
     * body->bytes is the last value that `feed` returned, or the body's length if `feed` was never called.
     * Frees the state, except after MM_BUSY: the caller must then call `finish` again, or `cancel`. */
    enum mm_status (*finish)(void *reading, struct mm_operands *into, const struct mm_body *body,
                             struct mm_error *error);

    void (*cancel)(void *reading);
};

/* Reads a body that is a single file: CSV if its Content-Type is text/csv, otherwise .npy. */
extern const struct mm_body_reader mm_file_reader;

/* A codec that reads bodies has `decode` or `reader`. A codec that writes replies has `encode`. If media_type
 * is NULL, the codec reads only uploads of matrices to store, and their Content-Type is reply_type. */
struct mm_codec {
    const char *media_type;     /* Content-Type of requests, lower case; NULL if there are none */
    const char *reply_type;     /* Content-Type of replies; NULL if there are none */
    const char *file_extension; /* such as ".npy"; NULL if the format has no files */
    const char *natural_reply;  /* preferred reply type if Accept allows several; NULL means reply_type */

    /* For each operation, a valid request for error messages: a JSON body, a query, or curl's arguments. */
    const char *example[MM_OP_COUNT];

    /* A body without a Content-Type has this format if its first character is `first`. 0 if none. */
    char first;

    /* The dimensions that the query must give for each operation, in words. NULL if the body shows them. */
    const char *dimensions[MM_OP_COUNT];

    /* Checks the Content-Type's parameters. Fails with MM_BAD_REQUEST. NULL if the codec ignores them. */
    enum mm_status (*check_type)(const char *content_type, struct mm_error *error);

    /* Checks the query's parameters and the body's length before the body arrives. Allocates nothing. Fails
     * with MM_BAD_REQUEST, MM_TOO_LARGE or MM_UNSUPPORTED. For a chunked body, body_bytes is
     * MM_LENGTH_UNKNOWN, and the caller calls `plan` again at the end. NULL if there is nothing to check. */
    enum mm_status (*plan)(struct mm_operands *into, uint64_t body_bytes, const struct mm_limits *limits,
                           struct mm_error *error);

    /* Points views into a complete body whose length `plan` has checked. Copies nothing, so it is quick. */
    void (*decode)(struct mm_operands *into, const struct mm_body *body);

    /* NULL if the codec has `decode`, or reads no bodies. */
    const struct mm_body_reader *reader;

    /* The highest rank of a result that a reply can hold. */
    unsigned reply_rank_max;

    /* Sets *bytes to the largest size of a reply's body for this shape and type. Returns false if that size
     * exceeds SIZE_MAX. The member is NULL if the elements are not written as text. */
    bool (*reply_bytes_max)(const struct mm_shape *shape, enum mm_dtype dtype, size_t *bytes);

    /* The largest size of a reply's text without elements; 0 if the format has no such text. If
     * reply_bytes_max is NULL, this text can stand before the elements in the same buffer. */
    size_t facts_bytes_max;

    /* Writes the reply into *body, whose buffer has as many bytes as reply_bytes_max computed. If
     * reply_bytes_max is NULL, and facts_bytes_max is 0, moves the buffer of answer->result to *body. */
    void (*encode)(const struct mm_answer *answer, struct mm_reply_body *body);

    /* Completes the body when the encoding time is known. NULL if the format does not show times. */
    void (*finish)(const struct mm_answer *answer, struct mm_reply_body *body);
};

#define MM_MATMUL_EXAMPLE "{\"a\": [[1,2]], \"b\": [[3],[4]]}"
#define MM_TRANSPOSE_EXAMPLE "{\"a\": [[1,2]]}"

extern const struct mm_codec mm_json_codec, mm_raw_codec, mm_npy_codec, mm_form_codec, mm_csv_codec;

/* Chooses the codec by a request's Content-Type, which is NULL if absent. A type that clients send by default
 * (mm_media_untyped) counts as absent. Without a type, the body is raw if the query has all dimensions
 * (has_dimensions). Otherwise the body's first character decides. `first` is this character without leading
 * spaces, or 0 if the body is empty. If the character is needed but has not arrived (body_seen is false),
 * sets *codec to NULL and returns MM_OK. Fails with MM_UNSUPPORTED_MEDIA_TYPE. */
enum mm_status mm_codec_for_request(const char *content_type, enum mm_op op, bool has_dimensions,
                                    bool body_seen, char first, const struct mm_codec **codec,
                                    struct mm_error *error);

/* Chooses the codec for a matrix to store. content_type may be NULL, or the type of a .npy or CSV file.
 * Without a type, the body is raw if the query has dimensions (has_dimensions). Otherwise the body's first
 * character (`first`) may show the format. It can show .npy if the type is absent, octet-stream or unknown.
 * It can show JSON only if the type is absent. If the character is needed but has not arrived (body_seen is
 * false), sets *codec to NULL and returns MM_OK. Fails with MM_UNSUPPORTED_MEDIA_TYPE. */
enum mm_status mm_codec_for_stored(const char *content_type, bool has_dimensions, bool body_seen, char first,
                                   const struct mm_codec **codec, struct mm_error *error);

/* Chooses the reply's codec by Accept (NULL if absent). `natural` is the preferred codec, or NULL. It is
 * usually the request's codec. Fails with MM_NOT_ACCEPTABLE. */
enum mm_status mm_codec_for_reply(const char *accept, const struct mm_codec *natural,
                                  const struct mm_codec **codec, struct mm_error *error);

/* Returns the codec for a reply without elements: JSON, or NULL if Accept excludes JSON. */
const struct mm_codec *mm_codec_for_facts(const char *accept);

/* Fails with MM_BAD_REQUEST, because only JSON can hold the figures, but Accept excludes JSON. */
enum mm_status mm_codec_fail_figures(struct mm_error *error);

/* Fails with MM_NOT_ACCEPTABLE if the codec's replies cannot hold a result of this shape. */
enum mm_status mm_codec_check_reply(const struct mm_codec *codec, const struct mm_shape *shape,
                                    struct mm_error *error);
