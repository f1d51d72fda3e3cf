/* The guard against request smuggling (RFC 9112, 11.2): refuses what a front end and this server could read
 * differently, if libmicrohttpd accepts it. It sees one head, header by header, and knows no route and no
 * libmicrohttpd. */
#pragma once

#include "gpu/status.h"

#include <stddef.h>

/* The state of one head. It owns nothing. */
struct mm_guard {
    struct mm_error *error; /* set by the first call that refuses */
    bool http_1_0;
    bool has_length;
    bool has_coding;
    bool has_host;
    uint64_t length; /* Content-Length; 0: none */
};

/* Checks a head: call begin, then header for each header in order, then end. Each returns MM_OK, or
 * MM_BAD_REQUEST with *error filled in: close the connection without reading the body, and do not call the
 * guard again. `version` is a text like "HTTP/1.1", `path` the decoded target without its query. Texts with a
 * size may hold any bytes, and be NULL if the size is 0. Any thread. */
enum mm_status mm_guard_begin(struct mm_guard *guard, const char *version, const char *path,
                              struct mm_error *error);
enum mm_status mm_guard_header(struct mm_guard *guard, const char *name, size_t name_bytes, const char *value,
                               size_t value_bytes);
enum mm_status mm_guard_end(const struct mm_guard *guard);

/* Replaces zero bytes, which a percent escape leaves in a decoded target, by \x01. The guard refuses \x01 in
 * a path, and no parameter's value contains it. */
void mm_guard_show_zeros(char *text, size_t bytes);
