/* The headers of a response. A response is sent through libmicrohttpd (reply.c), or without it if the
 * connection is ended early (connection.c). Any thread may call these functions. */
#pragma once

#include "gpu/status.h"
#include "api/number/digits.h"
#include "server/options.h"

/* The pages of other sites that may read a response (the CORS protocol of the Fetch standard,
 * https://fetch.spec.whatwg.org/#http-cors-protocol). All zeros: the response has no CORS headers. */
struct mm_cors {
    const char *origin; /* "*", or the site whose pages may read the response; NULL: none; not owned */
    bool varies;        /* another Origin header would change the response */
};

/* Decides by the value of the request's Origin header. `origin` is NULL if the request has none. */
struct mm_cors mm_cors_decide(const struct mm_options *options, const char *origin);

enum { MM_HEADERS_MAX = 11 };

/* Size of the longest Allow header's value, with its NUL. */
enum { MM_ALLOW_MAX = 48 };

/* A list of headers. All zeros are an empty list. It owns only the text retry_after. */
struct mm_headers {
    struct {
        const char *name;
        const char *value;
    } list[MM_HEADERS_MAX];
    size_t count;
    char retry_after[MM_DIGITS_MAX + 1];
};

/* Adds the headers that every response has. If `traceparent` is not "", the response has it too. If `closes`,
 * the connection closes after this response. */
void mm_headers_add_common(struct mm_headers *headers, const char *request_id, const char *traceparent,
                           struct mm_cors cors, bool closes);

struct mm_problem_form {
    const char *type;

    /* Returns a malloc'ed text, or NULL if out of memory. Any thread may call it. */
    char *(*write)(const struct mm_error *error, const char *request_id, size_t *length);
};

/* Error replies as problem details (RFC 9457, api/problem.h). */
extern const struct mm_problem_form mm_problem_details;

/* The reply to a request that fails. It owns nothing. */
struct mm_problem_reply {
    const struct mm_problem_form *form;
    const struct mm_error *error;
    const char *request_id;
    const char *traceparent;  /* "" if the request has no valid one */
    char allow[MM_ALLOW_MAX]; /* methods for the header Allow, if the status is 405 */
    const char *codings;      /* content codings for Accept-Encoding, if the error is about the coding */
    struct mm_cors cors;
    bool head_only;
    unsigned retry_after_s; /* 0: no Retry-After */
};

/* Adds the headers that only the reply to a failed request has. */
void mm_headers_add_problem(struct mm_headers *headers, const struct mm_problem_reply *reply);

/* Adds the headers of the response to OPTIONS. `methods` is a list such as "GET, HEAD". */
void mm_headers_add_options(struct mm_headers *headers, struct mm_cors cors, const char *methods);
