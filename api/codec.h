/* Codecs: one wire format a file. A codec turns a body into matrix views
 * and a result into a body. It knows no sockets and no devices.
 *
 * The connection's thread calls everything for its request. If a body or a result is large, a thread of the
 * worker pool decodes (`decode`, the reader's `finish`) or encodes (`encode`, `finish`) in its place, while
 * the connection waits. The thread that ends a request which waits for memory, or that was abandoned, calls
 * `cancel`. */
#pragma once

#include "api/operand.h"
#include "gpu/queue/outcome.h"

#define MM_LENGTH_UNKNOWN UINT64_MAX /* a chunked body */

/* A complete request body. The caller keeps it until the job is done. The decoder may move elements within
 * it: its views may point at them. */
struct mm_body {
    void *data; /* aligned to 64 bytes; may be NULL if bytes is 0 */
    size_t bytes;
    const char *content_type; /* as the request gave it, with its parameters; NULL: absent */
};

/* Threads that share long work. run calls one(data, index) once for each index below count, on the calling
 * thread and on idle ones, several at a time, and returns when all are done. */
struct mm_helpers {
    void (*run)(struct mm_helpers *helpers, unsigned count, void (*one)(void *data, unsigned index),
                void *data);
};

/* What a reply tells: a matrix, or figures about it, and how it was computed. */
struct mm_answer {
    const struct mm_outcome *outcome; /* of the product; NULL: the matrix is a stored one, and the next two
                                         have no meaning */
    const struct mm_device *device;   /* that computed it */
    enum mm_dtype operand_dtype;
    struct mm_matrix matrix; /* all elements that are returned, dense, if has_matrix; its dtype in any case */
    const struct mm_shape *shape;         /* of that matrix */
    bool has_matrix;                      /* the elements are returned; if not, the format is JSON */
    uint64_t figures;                     /* bits of enum mm_figure; not 0: the format is JSON */
    const struct mm_reduction *reduction; /* has these figures */
    struct mm_buffer *result;             /* holds the matrix's elements; an encoder may take it over */
    const uint64_t *span_ns;    /* MM_SPAN_COUNT of them; encode and total are final in `finish` alone */
    struct mm_helpers *helpers; /* NULL: none */
};

enum { MM_REPLY_HEAD_MAX = 256 };

/* A reply's body: `head_bytes` of head, then `bytes` at buffer.data. The head lets a format put something
 * before the elements without copying them. The owner of the struct releases the buffer. */
struct mm_reply_body {
    char head[MM_REPLY_HEAD_MAX];
    size_t head_bytes;
    struct mm_buffer buffer;
    size_t bytes;
};

/* How a format reads a body while it arrives. The body lies in memory of the caller that is aligned to 64
 * bytes and has room for all that was received. */
struct mm_body_reader {
    /* Begins a body of body_bytes, or MM_LENGTH_UNKNOWN. `into` has the parameters of the query; the reader
     * copies it, and the endpoint's struct behind it. limits and memory are kept until the end. NULL if
     * memory runs out: then mm_codec_decode may try again. */
    void *(*begin)(const struct mm_operands *into, const char *content_type, uint64_t body_bytes,
                   const struct mm_limits *limits, struct mm_reservation *memory);

    /* Reads on in a body that has body_bytes by now and may have moved. Returns how many bytes the body has
     * then: the reader may move what came and close gaps, and the next chunk follows behind that. */
    size_t (*feed)(void *reading, void *body, size_t body_bytes);

    /* Gives back the memory of what was read, if memory is short: finish then reads the body again. NULL: it
     * holds none. */
    void (*yield)(void *reading);

    /* Whether finish will be quick, now that all was fed. */
    bool (*is_quick)(const void *reading);

    /* Ends the reading: fills the endpoint's struct, or leaves it untouched. body->bytes is what feed
     * returned last, or the body's length if nothing was fed. After MM_BUSY the reading goes on: finish or
     * cancel it later. */
    enum mm_status (*finish)(void *reading, struct mm_operands *into, const struct mm_body *body,
                             struct mm_error *error);
    void (*cancel)(void *reading);
};

/* Readers of bodies that are one file alone (api/form/form.c). */
extern const struct mm_body_reader mm_npy_file_reader, mm_csv_file_reader;

/* A codec for requests has a decode or a reader, a codec for replies an encode. */
struct mm_codec {
    const char *media_type;    /* the Content-Type of its requests, lower case; NULL: it is for replies, and
                                  for the body, of its reply_type, that is a matrix to be stored */
    const char *reply_type;    /* the Content-Type of its replies, which Accept must match; NULL: for requests
                                  only */
    const char *natural_reply; /* the reply_type that answers its requests if Accept leaves the choice; NULL:
                                  its own */

    /* A request that works, by operation, for the details of errors: a body of text, a query, or curl's
     * arguments. */
    const char *example[MM_OP_COUNT];

    /* A body without a type is this format's if it begins with this character; 0: that says nothing. */
    char first;

    /* The names of the dimensions that its query must have, by operation: m, k, n, lda, ldb and the shapes
     * (those that the operation has) are parameters with this codec. NULL: they are not. */
    const char *dimensions[MM_OP_COUNT];

    /* Checks the parameters of its Content-Type: MM_BAD_REQUEST. NULL: they do not matter. */
    enum mm_status (*check_type)(const char *content_type, struct mm_error *error);

    /* Checks the query's parameters and the body's length (MM_LENGTH_UNKNOWN: chunked) before the body
     * arrives. MM_BAD_REQUEST, MM_TOO_LARGE, MM_UNSUPPORTED (the dtype). Allocates nothing. NULL: nothing to
     * check. Called again with the true length when a chunked body has ended. */
    enum mm_status (*plan)(struct mm_operands *into, uint64_t body_bytes, const struct mm_limits *limits,
                           struct mm_error *error);

    /* Lays views over a complete body whose length `plan` has checked, in next to no time. */
    void (*decode)(struct mm_operands *into, const struct mm_body *body);
    const struct mm_body_reader *reader;

    /* The most dimensions of a result that its replies can hold. */
    unsigned reply_rank_max;

    /* The most bytes that the reply's body can take for a result of this shape and type; false if that
     * exceeds SIZE_MAX. NULL: the reply is the result's own buffer. */
    bool (*reply_bytes_max)(const struct mm_shape *shape, enum mm_dtype dtype, size_t *bytes);

    /* The most bytes of the body of a reply without the elements; 0: the format has no such reply. */
    size_t facts_bytes_max;

    /* Writes the result's elements into *body, whose buffer has reply_bytes_max bytes; if that is NULL, moves
     * answer->result's buffer there and clears it. */
    void (*encode)(const struct mm_answer *answer, struct mm_reply_body *body);

    /* Completes the body once the time of encoding is known. NULL: nothing to add. */
    void (*finish)(const struct mm_answer *answer, struct mm_reply_body *body);
};

/* Examples of JSON bodies. */
#define MM_MATMUL_EXAMPLE "{\"a\": [[1,2]], \"b\": [[3],[4]]}"
#define MM_TRANSPOSE_EXAMPLE "{\"a\": [[1,2]]}"

/* All codecs. */
extern const struct mm_codec mm_json_codec, mm_raw_codec, mm_npy_codec, mm_form_codec, mm_csv_codec;

/* The codec of a request's Content-Type (NULL: absent). A body without a type, or with a client's default, is
 * raw if the query gives all dimensions (has_dimensions), else that of the codec whose bodies begin with
 * `first`: the body's first character that is no space, or 0. It is known once body_seen; before that *codec
 * may be NULL with MM_OK. MM_UNSUPPORTED_MEDIA_TYPE lists the types. */
enum mm_status mm_codec_for_request(const char *content_type, enum mm_op op, bool has_dimensions,
                                    bool body_seen, char first, const struct mm_codec **codec,
                                    struct mm_error *error);

/* The codec of a matrix to store, by Content-Type (NULL: absent). Any codec of mm_codec_for_request, and
 * those of single .npy and CSV files. If the query has dimensions (has_dimensions), a body without a type is
 * raw. Else a body that begins as a .npy file does is one, if the Content-Type is octet-stream or a type that
 * the server does not read. *codec is NULL with MM_OK if the first character of the body has to decide;
 * `first` is that character once body_seen. MM_UNSUPPORTED_MEDIA_TYPE lists the types. */
enum mm_status mm_codec_for_stored(const char *content_type, bool has_dimensions, bool body_seen, char first,
                                   const struct mm_codec **codec, struct mm_error *error);

/* The codec of the reply, by Accept (NULL: absent) as mm_media_choose says. `natural` is the request's codec,
 * or NULL. MM_NOT_ACCEPTABLE. */
enum mm_status mm_codec_for_reply(const char *accept, const struct mm_codec *natural,
                                  const struct mm_codec **codec, struct mm_error *error);

/* The codec of a reply that has no elements: JSON; NULL if Accept excludes it. */
const struct mm_codec *mm_codec_for_facts(const char *accept);

/* MM_BAD_REQUEST: a reply has figures, but Accept excludes JSON. */
enum mm_status mm_codec_fail_figures(struct mm_error *error);

/* Whether the codec's replies can hold a result of this shape: else MM_NOT_ACCEPTABLE. */
enum mm_status mm_codec_check_reply(const struct mm_codec *codec, const struct mm_shape *shape,
                                    struct mm_error *error);

/* Reads a complete body into the operands: views into the body or into their storage, which holds nothing on
 * failure. The query's parameters are set before, and the codec's plan has checked them with the
 * body's length. MM_BAD_REQUEST (with line, column, field if they help), MM_TOO_LARGE, MM_UNSUPPORTED (the
 * dtype), MM_BUSY, MM_INTERNAL. */
enum mm_status mm_codec_decode(const struct mm_codec *codec, struct mm_operands *into,
                               const struct mm_body *body, const struct mm_limits *limits,
                               struct mm_reservation *memory, struct mm_error *error);
