/* Codecs: one wire format a file, one row of the table each. A codec turns a body into matrix views
 * and a result into a body. It knows no sockets and no devices. */
#ifndef MM_API_CODEC_H
#define MM_API_CODEC_H

#include "api/call.h"
#include "gpu/job.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MM_LENGTH_UNKNOWN UINT64_MAX /* a chunked body */

/* A request's body, complete. The caller keeps it until the job is done, but the decoder may write into it:
 * its views may point at elements that it has moved there. */
struct mm_body {
    void *data; /* aligned to 64 bytes; may be NULL where bytes is 0 */
    size_t bytes;
    const char *content_type; /* as the request gave it, with its parameters; NULL: absent */
};

/* Threads that do parts of long work. run calls one(data, index) once for each index below count, on the
 * caller's thread and on others that have nothing to do, several at one time, and returns when all are done.
 */
struct mm_helpers {
    void (*run)(struct mm_helpers *helpers, unsigned count, void (*one)(void *data, unsigned index),
                void *data);
};

/* A finished product, or transposition, on its way out. */
struct mm_answer {
    const struct mm_job *job;   /* done, status MM_OK; product.c is the result, dense */
    struct mm_buffer *result;   /* holds product.c's elements; an encoder may take it over */
    const uint64_t *span_ns;    /* MM_SPAN_COUNT of them; encode and total are final in `finish` alone */
    struct mm_helpers *helpers; /* NULL: none */
};

enum { MM_REPLY_HEAD_MAX = 128 };

/* A reply's body: `head_bytes` of head, then `bytes` at buffer.data, so that what a format puts before the
 * elements costs no copy of them. Whoever holds the struct releases the buffer. */
struct mm_reply_body {
    char head[MM_REPLY_HEAD_MAX];
    size_t head_bytes;
    struct mm_buffer buffer;
    size_t bytes;
};

/* How a format reads a body while it arrives. The body lies in the caller's memory, which is aligned to 64
 * bytes, and has room for all that was received. */
struct mm_body_reader {
    /* Begins a body of so many bytes, or MM_LENGTH_UNKNOWN; call has the parameters of the query. What is
     * given is kept until the end, but for the Content-Type. NULL where there is no memory: the body is then
     * decoded whole. */
    void *(*begin)(const struct mm_call *call, const char *content_type, uint64_t body_bytes,
                   const struct mm_limits *limits, struct mm_buffers *buffers);

    /* Takes the next piece: the last piece_bytes of a body that has body_bytes by now, and that may lie
     * elsewhere than before. Returns how many bytes the body has then: the reader may move what came within
     * it, and close it up, and the next piece is put behind that. */
    size_t (*feed)(void *reading, void *body, size_t body_bytes, size_t piece_bytes);

    /* Whether finish would take no time to speak of, now that all was fed. */
    bool (*is_quick)(const void *reading);

    /* Ends the reading, in place of decode, and as that says; or without a result. body->bytes is what feed
     * has returned last, or 0. */
    enum mm_status (*finish)(void *reading, struct mm_call *call, const struct mm_body *body,
                             struct mm_error *error);
    void (*cancel)(void *reading);
};

struct mm_codec {
    const char *media_type;    /* what a request's Content-Type says, without parameters, lower case; NULL:
                                  this codec is for replies only, and decode is NULL */
    const char *reply_type;    /* the Content-Type of its replies, and what Accept must match; NULL: for
                                  requests only, and encode is NULL */
    const char *natural_reply; /* the reply_type that answers its requests where Accept leaves the choice;
                                  NULL: its own */

    /* Whether m, k, n, lda and ldb (those that the operation has) are parameters with this codec. */
    bool takes_dimensions;

    /* Judges the parameters of the request's Content-Type, which is this codec's: MM_BAD_REQUEST. NULL: they
     * do not matter. */
    enum mm_status (*judge_type)(const char *content_type, struct mm_error *error);

    /* Judges what else the head tells: parameters of the query, and the body's length
     * (MM_LENGTH_UNKNOWN where it is chunked). MM_BAD_REQUEST, MM_TOO_LARGE. Allocates nothing. NULL:
     * nothing to judge. Called a second time with the true length when a chunked body has ended. */
    enum mm_status (*plan)(struct mm_call *call, uint64_t body_bytes, const struct mm_limits *limits,
                           struct mm_error *error);

    /* Reads a complete body into call->a and call->b, as views into the body or into
     * call->storage, which holds nothing on failure. The parameters of the query are set before.
     * MM_BAD_REQUEST (with line, column, field where they help), MM_TOO_LARGE, MM_UNSUPPORTED (the
     * dtype), MM_BUSY, MM_INTERNAL. */
    enum mm_status (*decode)(struct mm_call *call, const struct mm_body *body, const struct mm_limits *limits,
                             struct mm_buffers *buffers, struct mm_error *error);

    /* Whether decode takes no time to speak of, however large the body. */
    bool decodes_quickly;

    /* Reads the body while it arrives; NULL: decode alone, when it is complete. */
    const struct mm_body_reader *reader;

    /* Whether the views that decode makes lie in the body, which is then kept until the job is done. */
    bool views_body;

    /* The most bytes that the reply's body can take for a result of c's shape; false where that passes
     * SIZE_MAX. NULL: the reply is the result's own buffer. */
    bool (*reply_bytes_max)(const struct mm_matrix *c, size_t *bytes);

    /* Writes the result's elements into *body, whose buffer has reply_bytes_max bytes; or, where that is
     * NULL, moves answer->result's buffer there, clearing it. */
    void (*encode)(const struct mm_answer *answer, struct mm_reply_body *body);

    /* Completes the body once the time of encoding is known. NULL: nothing to add. */
    enum mm_status (*finish)(const struct mm_answer *answer, struct mm_reply_body *body,
                             struct mm_error *error);
};

/* The table, in the order in which Accept prefers them where a caller prefers none. */
const struct mm_codec *mm_codecs(size_t *count);

/* The codec of a request's Content-Type (parameters and letter case are ignored; NULL: absent).
 * `first` is the body's first character that is no space, or 0 while it is unknown or there is none,
 * and has_dimensions tells whether the query gives the operation's m, k and n: an absent type, or curl's
 * default application/x-www-form-urlencoded, is told from these: raw where the query gives the dimensions (a
 * raw body may begin with any byte, '{' too), else JSON where `first` is '{'. NULL with MM_OK: not known
 * before the body's first character. MM_UNSUPPORTED_MEDIA_TYPE lists the types that are spoken. */
enum mm_status mm_codec_for_request(const char *content_type, enum mm_op op, bool has_dimensions,
                                    bool body_seen, char first, const struct mm_codec **codec,
                                    struct mm_error *error);

/* The codec of the reply, by RFC 9110's Accept with q-values (NULL: absent, anything goes): the
 * acceptable one of the highest q; that of `natural` (the request's codec, or NULL) wins where several are
 * equal; after that the table's order. MM_NOT_ACCEPTABLE lists what can be produced. */
enum mm_status mm_codec_for_reply(const char *accept, const struct mm_codec *natural,
                                  const struct mm_codec **codec, struct mm_error *error);

#ifdef __cplusplus
}
#endif
#endif
