#include "server/http/headers.h"

#include "api/problem.h"
#include "server/auth/bearer.h"
#include "server/http/head.h"

#include <assert.h>
#include <string.h>

/* Headers that scripts of other sites may read. They are listed, because some browsers do not know *. */
static const char exposed[] =
    "X-Request-Id, traceparent, Server-Timing, Retry-After, WWW-Authenticate, Accept-Encoding, Allow, "
    "Matmul-Shape, Matmul-Dtype, Matmul-Operand-Dtype, Matmul-Variant, Matmul-Backend, Matmul-Device, "
    "Matmul-Devices, Matmul-Tiles, Matmul-Path, Matmul-Verify, ETag, Location, "
    "Inference-Header-Content-Length";

struct mm_cors mm_cors_decide(const struct mm_options *options, const char *origin) {
    const char *allowed = options->cors_origin;
    struct mm_cors cors = {0};
    if (allowed == NULL)
        return cors;
    cors.varies = strcmp(allowed, "*") != 0;
    if (!cors.varies || (origin != NULL && strcmp(origin, allowed) == 0))
        cors.origin = allowed;
    return cors;
}

static void add(struct mm_headers *headers, const char *name, const char *value) {
    assert(headers->count < MM_HEADERS_MAX);
    headers->list[headers->count].name = name;
    headers->list[headers->count++].value = value;
}

void mm_headers_add_common(struct mm_headers *headers, const char *request_id, const char *traceparent,
                           struct mm_cors cors, bool closes) {
    add(headers, MHD_HTTP_HEADER_SERVER, "matmuld/" MATMULD_VERSION);
    add(headers, "X-Request-Id", request_id);
    if (traceparent[0] != '\0')
        add(headers, mm_header_name(MM_HEADER_TRACEPARENT), traceparent);
    if (cors.origin != NULL) {
        add(headers, "Access-Control-Allow-Origin", cors.origin);
        add(headers, "Access-Control-Expose-Headers", exposed);
    }
    if (cors.varies)
        add(headers, "Vary", "Origin");
    if (closes)
        add(headers, MHD_HTTP_HEADER_CONNECTION, "close");
}

const struct mm_problem_form mm_problem_details = {MM_PROBLEM_TYPE, mm_problem_json};

void mm_headers_add_problem(struct mm_headers *headers, const struct mm_problem_reply *reply) {
    const struct mm_error *error = reply->error;
    add(headers, MHD_HTTP_HEADER_CONTENT_TYPE, reply->form->type);
    if (error->status == MM_METHOD_NOT_ALLOWED)
        add(headers, MHD_HTTP_HEADER_ALLOW, reply->allow);
    if (error->status == MM_UNAUTHORIZED)
        add(headers, MHD_HTTP_HEADER_WWW_AUTHENTICATE, MM_BEARER_CHALLENGE);
    if (mm_head_is_about_coding(error))
        add(headers, MHD_HTTP_HEADER_ACCEPT_ENCODING, reply->codings);
    *mm_put_digits(headers->retry_after, reply->retry_after_s) = '\0';
    if (reply->retry_after_s > 0)
        add(headers, MHD_HTTP_HEADER_RETRY_AFTER, headers->retry_after);
}

/* Lets browsers cache the answer to a preflight for two hours. */
void mm_headers_add_options(struct mm_headers *headers, struct mm_cors cors, const char *methods) {
    add(headers, MHD_HTTP_HEADER_ALLOW, methods);
    if (cors.origin == NULL)
        return;
    add(headers, "Access-Control-Allow-Methods", methods);
    add(headers, "Access-Control-Allow-Headers",
        "Authorization, Content-Type, Content-Encoding, Accept, X-Request-Id, traceparent, If-Match, "
        "If-None-Match, Inference-Header-Content-Length, Matmul-Affinity");
    add(headers, "Access-Control-Max-Age", "7200");
}
