/* The headers of CORS. */
#include "server/cors.h"

#include <stdio.h>
#include <string.h>

/* What a page's script may read beside what the standard always lets it. Without credentials * would do, but
 * not every browser knows it. */
static const char exposed[] =
    "X-Request-Id, Server-Timing, Retry-After, WWW-Authenticate, Allow, Matmul-Shape, "
    "Matmul-Dtype, Matmul-Variant, Matmul-Backend, Matmul-Device, Matmul-Path, "
    "Matmul-Verify";

struct mm_cors mm_cors_judge(const struct mm_options *options, const char *origin) {
    const char *allowed = options->cors_origin;
    struct mm_cors cors = {0};
    if (allowed == NULL)
        return cors;
    cors.varies = strcmp(allowed, "*") != 0;
    if (!cors.varies || (origin != NULL && strcmp(origin, allowed) == 0))
        cors.origin = allowed;
    return cors;
}

size_t mm_cors_headers(struct mm_cors cors, struct mm_header headers[MM_CORS_HEADERS_MAX]) {
    size_t count = 0;
    if (cors.origin != NULL) {
        headers[count++] = (struct mm_header){"Access-Control-Allow-Origin", cors.origin};
        headers[count++] = (struct mm_header){"Access-Control-Expose-Headers", exposed};
    }
    if (cors.varies)
        headers[count++] = (struct mm_header){"Vary", "Origin"};
    return count;
}

/* Browsers keep the answer for two hours at most. */
size_t mm_cors_preflight(struct mm_cors cors, const char *methods,
                         struct mm_header headers[MM_CORS_PREFLIGHT_MAX]) {
    if (cors.origin == NULL)
        return 0;
    headers[0] = (struct mm_header){"Access-Control-Allow-Methods", methods};
    headers[1] = (struct mm_header){"Access-Control-Allow-Headers",
                                    "Authorization, Content-Type, Accept, X-Request-Id"};
    headers[2] = (struct mm_header){"Access-Control-Max-Age", "7200"};
    return MM_CORS_PREFLIGHT_MAX;
}

void mm_cors_lines(struct mm_cors cors, char lines[MM_CORS_LINES_MAX]) {
    struct mm_header headers[MM_CORS_HEADERS_MAX];
    const size_t count = mm_cors_headers(cors, headers);
    size_t length = 0;
    lines[0] = '\0';
    for (size_t index = 0; index < count; index++)
        length += (size_t)snprintf(lines + length, MM_CORS_LINES_MAX - length, "%s: %s\r\n",
                                   headers[index].name, headers[index].value);
}
