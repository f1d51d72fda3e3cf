/* What came back over a connection, read and judged: each reply is well-formed HTTP with a status of the
 * contract's, a refusal is a problem that says why, JSON is JSON. */
#ifndef MM_TESTS_FUZZ_REPLIES_H
#define MM_TESTS_FUZZ_REPLIES_H

#include "tests/fuzz/fuzz.h"

enum { REPLY_HEADERS_MAX = 32 };

struct reply {
    unsigned status;
    size_t header_count;
    struct piece names[REPLY_HEADERS_MAX];
    struct piece values[REPLY_HEADERS_MAX];
    struct piece body;
    bool is_ours; /* it has an X-Request-Id: libmicrohttpd's own refusals have none */
};

/* How far replies are known before they are read. */
struct reply_bounds {
    bool has_deadline;  /* some request may have asked for little time */
    bool has_head_only; /* some request may have been HEAD, whose reply has no body */
};

/* Takes the next reply that is no 1xx from what came back; false where nothing is left. `head_only`: it
 * answers HEAD. What is promised of any reply is checked. */
bool reply_take(struct piece *rest, const struct reply_bounds *bounds, bool head_only, struct reply *reply);

/* The value of a header; no text where there is none. */
struct piece reply_header(const struct reply *reply, const char *name);
bool piece_is(struct piece piece, const char *text);

#endif
