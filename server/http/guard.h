/* The guard against request smuggling (RFC 9112, 11.2): refuses heads that libmicrohttpd accepts but a front
 * end may read differently. It checks the headers one by one, and knows no route. */
#pragma once

#include "gpu/status.h"

#include <stddef.h>

/* The guard's state for one head. It owns no memory. */
struct mm_guard {
    struct mm_error *error; /* the first failed check sets it */
    bool http_1_0;
    bool has_length;
    bool has_coding;
    bool has_host;
    uint64_t length; /* Content-Length; 0 if there is none */
};

/* Check a head: call mm_guard_begin, then mm_guard_header for each header in order, then mm_guard_end. Each
 * returns MM_OK, or MM_BAD_REQUEST in *error. After an error, close the connection without reading the body,
 * and do not call the guard again. `version` is a text like "HTTP/1.1", and `path` is the decoded target
 * without its query. Texts with a size may contain any bytes, and may be NULL if the size is 0. Any thread
 * may call these functions. */
enum mm_status mm_guard_begin(struct mm_guard *guard, const char *version, const char *path,
                              struct mm_error *error);
enum mm_status mm_guard_header(struct mm_guard *guard, const char *name, size_t name_bytes, const char *value,
                               size_t value_bytes);
enum mm_status mm_guard_end(const struct mm_guard *guard);

/* Replaces zero bytes in a decoded target by \x01, which the guard refuses in a path. */
void mm_guard_show_zeros(char *text, size_t bytes);
