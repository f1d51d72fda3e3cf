/* The headers of a response, for both ways of sending it: through libmicrohttpd (reply.c), or without it on a
 * connection that is cut off (connection.c). Any thread may call these functions. */
#pragma once

#include "gpu/status.h"
#include "api/number/digits.h"
#include "server/options.h"

/* Which pages of other origins may read a response (the CORS protocol of the Fetch standard,
 * https://fetch.spec.whatwg.org/#http-cors-protocol). All 0: the response has no header for that. */
struct mm_cors {
    const char *origin; /* the origin that may read the response, or "*"; NULL: none. A text of the options */
    bool varies;        /* other origins get another answer */
};

/* Decides for a request with this Origin header; NULL: without one. */
struct mm_cors mm_cors_decide(const struct mm_options *options, const char *origin);

enum { MM_HEADERS_MAX = 10 };

/* The longest value of Allow, with its NUL. */
enum { MM_ALLOW_MAX = 48 };

/* A list of headers; zeros are an empty list. It owns no text except Retry-After's. */
struct mm_headers {
    struct {
        const char *name;
        const char *value;
    } list[MM_HEADERS_MAX];
    size_t count;
    char retry_after[MM_DIGITS_MAX + 1];
};

/* Adds the headers that every response has. `closes`: the connection ends with this response. */
void mm_headers_add_common(struct mm_headers *headers, const char *request_id, struct mm_cors cors,
                           bool closes);

/* How a protocol writes its errors. */
struct mm_problem_form {
    const char *type; /* media type */

    /* malloc'ed; NULL if out of memory. Any thread may call it. */
    char *(*write)(const struct mm_error *error, const char *request_id, size_t *length);
};

/* RFC 9457 (api/problem.h). */
extern const struct mm_problem_form mm_problem_details;

/* The reply to a request that fails. It owns nothing. */
struct mm_problem_reply {
    const struct mm_problem_form *form;
    const struct mm_error *error;
    const char *request_id;
    char allow[MM_ALLOW_MAX]; /* the methods for a 405 */
    struct mm_cors cors;
    bool head_only;         /* send no body */
    unsigned retry_after_s; /* 0: no Retry-After */
};

/* Adds the headers that the reply to a failed request has beside those of every response. */
void mm_headers_add_problem(struct mm_headers *headers, const struct mm_problem_reply *reply);

/* Adds the headers of the response to OPTIONS, for a path with these methods ("GET, HEAD"). */
void mm_headers_add_options(struct mm_headers *headers, struct mm_cors cors, const char *methods);
