/* Codecs: one file for each wire format. A codec turns a body into matrix views, and a result into a body. It
 * knows no sockets and no devices.
 *
 * The connection's thread calls the functions for its request. If a body or a result is large, a thread of
 * the worker pool decodes it (`decode`, the reader's `finish`) or encodes it (`encode`, `finish`), and the
 * connection waits. If a request ends while it waits for memory, or its client leaves, the thread that ends
 * the request calls `cancel`. */
#pragma once

#include "api/operand.h"
#include "gpu/queue/outcome.h"

#define MM_LENGTH_UNKNOWN UINT64_MAX /* the length of a chunked body */

/* A complete request body. The caller keeps it until the job is done, because views may point into it. The
 * decoder may move elements within it. */
struct mm_body {
    void *data; /* aligned to 64 bytes; may be NULL if bytes is 0 */
    size_t bytes;
    const char *content_type; /* the Content-Type header, with its parameters; NULL: absent */
};

/* Threads that share long work. `run` calls one(data, index) once for each index below count, in parallel,
 * and returns when all calls have returned. The calling thread makes some of the calls. */
struct mm_helpers {
    void (*run)(struct mm_helpers *helpers, unsigned count, void (*one)(void *data, unsigned index),
                void *data);
};

/* The content of a reply: a matrix, or figures about it, and how it was computed. */
struct mm_answer {
    const struct mm_outcome *outcome; /* how the product ran; NULL: the matrix is a stored one, and `device`
                                         and `operand_dtype` have no meaning */
    const struct mm_device *device;   /* the device that computed the product */
    enum mm_dtype operand_dtype;
    struct mm_matrix matrix;      /* the returned elements, dense; without has_matrix only its dtype is set */
    const struct mm_shape *shape; /* the shape of `matrix` */
    bool has_matrix;              /* the reply has the elements; false only in JSON */
    uint64_t figures;             /* bits of enum mm_figure; always 0 except in JSON */
    const struct mm_reduction *reduction; /* the values of the figures */
    struct mm_buffer *result;   /* holds the matrix's elements; an encoder may move it to the body */
    const uint64_t *span_ns;    /* by enum mm_span; encode and total are final only in `finish` */
    struct mm_helpers *helpers; /* NULL: the encoder works alone */
};

enum { MM_REPLY_HEAD_MAX = 256 };

/* A reply's body: `head_bytes` of head, then `bytes` at buffer.data. Because of the head, a format can put
 * something in front of the elements without copying them. The struct's owner frees the buffer. */
struct mm_reply_body {
    char head[MM_REPLY_HEAD_MAX];
    size_t head_bytes;
    struct mm_buffer buffer;
    size_t bytes;
};

/* Reads a body while it arrives. The body lies in the caller's memory, which is aligned to 64 bytes. */
struct mm_body_reader {
    /* Begins to read a body of body_bytes bytes, or MM_LENGTH_UNKNOWN. `into` is the first member of the
     * endpoint's struct, which has the parameters of the query. The reader copies the whole struct. The
     * caller keeps limits and memory until finish or cancel. Returns the reading that the other functions
     * take. NULL if memory runs out: mm_codec_decode may then read the complete body. */
    void *(*begin)(const struct mm_operands *into, const char *content_type, uint64_t body_bytes,
                   const struct mm_limits *limits, struct mm_reservation *memory);

    /* Continues with a body that has grown to body_bytes. The caller may have moved the body. The reader may
     * move elements within the body. Returns the new length of the body, where the caller appends the next
     * chunk. */
    size_t (*feed)(void *reading, void *body, size_t body_bytes);

    /* Frees the memory of decoded elements for other requests. `finish` then reads the body again. NULL: the
     * reader has no such memory. */
    void (*yield)(void *reading);

    /* Whether `finish` will be quick, so the connection's thread may call it. Valid once `feed` has read
     * the whole body. */
    bool (*is_quick)(const void *reading);

    /* Ends the reading, and fills the endpoint's struct; on failure the struct is untouched. body->bytes is
     * the last value that feed returned, or the body's length if the caller never called feed. Frees the
     * reading, except after MM_BUSY: the caller then calls finish or cancel later. */
    enum mm_status (*finish)(void *reading, struct mm_operands *into, const struct mm_body *body,
                             struct mm_error *error);

    /* Frees the reading and its memory. */
    void (*cancel)(void *reading);
};

/* Readers of bodies that are a single file (api/form/form.c). */
extern const struct mm_body_reader mm_npy_file_reader, mm_csv_file_reader;

/* A codec for requests has `decode` or `reader`. A codec for replies has `encode`. */
struct mm_codec {
    const char *media_type;     /* the Content-Type of its requests, lower case; NULL: the codec reads no
                                   requests, only matrices to store, and their Content-Type is reply_type */
    const char *reply_type;     /* the Content-Type of its replies, which Accept must match; NULL: the codec
                                   writes no replies */
    const char *file_extension; /* ".npy"; NULL: the format has no files that a form or PUT may send */
    const char *natural_reply;  /* the Content-Type of the reply if Accept leaves the choice; NULL:
                                   reply_type */

    /* For each operation, a request that works, which error details show: a body of text, a query, or curl's
     * arguments. */
    const char *example[MM_OP_COUNT];

    /* A body without a type has this format if it begins with this character; 0: no character decides. */
    char first;

    /* For each operation, the names of the dimensions that the query must have. NULL: the format has shapes
     * of its own. */
    const char *dimensions[MM_OP_COUNT];

    /* Checks the parameters of the Content-Type. MM_BAD_REQUEST. NULL: they do not matter. */
    enum mm_status (*check_type)(const char *content_type, struct mm_error *error);

    /* Checks the query's parameters and the body's length (MM_LENGTH_UNKNOWN: chunked) before the body
     * arrives. MM_BAD_REQUEST, MM_TOO_LARGE, MM_UNSUPPORTED (the dtype). Allocates nothing. NULL: nothing to
     * check. When a chunked body has ended, the caller calls plan again with the true length. */
    enum mm_status (*plan)(struct mm_operands *into, uint64_t body_bytes, const struct mm_limits *limits,
                           struct mm_error *error);

    /* Points views into a complete body whose length `plan` has checked. Copies nothing, so it is quick. */
    void (*decode)(struct mm_operands *into, const struct mm_body *body);

    /* Reads a body while it arrives. NULL: the codec has `decode`, or reads no requests. */
    const struct mm_body_reader *reader;

    /* The most dimensions of a result that its replies can hold. */
    unsigned reply_rank_max;

    /* The most bytes that the reply's body needs for a result of this shape and type; false if they exceed
     * SIZE_MAX. NULL: the body is the result's own buffer. */
    bool (*reply_bytes_max)(const struct mm_shape *shape, enum mm_dtype dtype, size_t *bytes);

    /* The most bytes that the body of a reply without elements needs; 0: the format has no such reply. */
    size_t facts_bytes_max;

    /* Writes the result's elements into *body, whose buffer has reply_bytes_max bytes. If reply_bytes_max is
     * NULL, encode moves the buffer of answer->result to *body. */
    void (*encode)(const struct mm_answer *answer, struct mm_reply_body *body);

    /* Completes the body once the encoding time is known. NULL: nothing to add. */
    void (*finish)(const struct mm_answer *answer, struct mm_reply_body *body);
};

/* Examples of JSON bodies. */
#define MM_MATMUL_EXAMPLE "{\"a\": [[1,2]], \"b\": [[3],[4]]}"
#define MM_TRANSPOSE_EXAMPLE "{\"a\": [[1,2]]}"

/* All codecs. */
extern const struct mm_codec mm_json_codec, mm_raw_codec, mm_npy_codec, mm_form_codec, mm_csv_codec;

/* Chooses the codec by a request's Content-Type (NULL: absent). If the type is absent or a client's default,
 * a query with all dimensions (has_dimensions) means raw. Otherwise the codec is the one whose bodies begin
 * with `first`: the body's first character that is no space, or 0. If `first` must
 * decide but body_seen is false, returns MM_OK and sets *codec to NULL. MM_UNSUPPORTED_MEDIA_TYPE lists the
 * types. */
enum mm_status mm_codec_for_request(const char *content_type, enum mm_op op, bool has_dimensions,
                                    bool body_seen, char first, const struct mm_codec **codec,
                                    struct mm_error *error);

/* Chooses the codec of a matrix to store by its Content-Type (NULL: absent). A body may also be a single .npy
 * or CSV file. If the query has dimensions (has_dimensions), a body without a type is raw. Otherwise a body
 * whose type is absent, octet-stream or unknown is a .npy file if it begins like one. `first` is the body's
 * first character. If it must decide but body_seen is false, returns MM_OK and sets *codec to NULL.
 * MM_UNSUPPORTED_MEDIA_TYPE lists the types. */
enum mm_status mm_codec_for_stored(const char *content_type, bool has_dimensions, bool body_seen, char first,
                                   const struct mm_codec **codec, struct mm_error *error);

/* Chooses the reply's codec by Accept (NULL: absent) through mm_media_choose. `natural` is the request's
 * codec, or NULL. MM_NOT_ACCEPTABLE. */
enum mm_status mm_codec_for_reply(const char *accept, const struct mm_codec *natural,
                                  const struct mm_codec **codec, struct mm_error *error);

/* The codec of a reply without elements: JSON, or NULL if Accept excludes JSON. */
const struct mm_codec *mm_codec_for_facts(const char *accept);

/* Fails with MM_BAD_REQUEST: the reply has figures, but Accept excludes JSON. */
enum mm_status mm_codec_fail_figures(struct mm_error *error);

/* MM_NOT_ACCEPTABLE if the codec's replies cannot hold a result of this shape. */
enum mm_status mm_codec_check_reply(const struct mm_codec *codec, const struct mm_shape *shape,
                                    struct mm_error *error);

/* Decodes a complete body. The operands' views point into the body or into their storage; on failure the
 * storage is empty. The query's parameters are already set, and the codec's plan has checked them with the
 * body's length. MM_BAD_REQUEST (with line, column, field if they help), MM_TOO_LARGE, MM_UNSUPPORTED (the
 * dtype), MM_BUSY, MM_INTERNAL. */
enum mm_status mm_codec_decode(const struct mm_codec *codec, struct mm_operands *into,
                               const struct mm_body *body, const struct mm_limits *limits,
                               struct mm_reservation *memory, struct mm_error *error);
