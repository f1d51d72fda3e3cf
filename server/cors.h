/* What a reply tells browsers of the origins whose pages may read it (the CORS protocol of the Fetch
 * standard, https://fetch.spec.whatwg.org/#http-cors-protocol). Knows neither libmicrohttpd nor routes. */
#ifndef MM_SERVER_CORS_H
#define MM_SERVER_CORS_H

#include "server/options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The verdict on a request. All 0: nothing is told. */
struct mm_cors {
    const char *origin; /* that may read the reply, or "*"; NULL: none. Of the options */
    bool varies;        /* another origin would be told something else */
};

struct mm_header {
    const char *name;
    const char *value;
};

enum { MM_CORS_HEADERS_MAX = 3, MM_CORS_PREFLIGHT_MAX = 3, MM_CORS_LINES_MAX = 1024 };

/* Of a request with this header Origin, NULL for none. Any thread. */
struct mm_cors mm_cors_judge(const struct mm_options *options, const char *origin);

/* The headers that any reply has to have; how many. The texts live as long as the options. */
size_t mm_cors_headers(struct mm_cors cors, struct mm_header headers[MM_CORS_HEADERS_MAX]);

/* Those that the reply to OPTIONS has beside them, for a path that takes these methods ("GET, HEAD"), which
 * live as long as the headers. */
size_t mm_cors_preflight(struct mm_cors cors, const char *methods,
                         struct mm_header headers[MM_CORS_PREFLIGHT_MAX]);

/* The headers as lines, each with its line's end, as a text. */
void mm_cors_lines(struct mm_cors cors, char lines[MM_CORS_LINES_MAX]);

#ifdef __cplusplus
}
#endif
#endif
