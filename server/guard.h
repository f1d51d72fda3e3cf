/* The guard against malformed requests: what a front end and this server could read differently, so that
 * one's body is the other's next request (request smuggling, RFC 9112, 11.2), and which libmicrohttpd lets
 * pass. It sees a request's head, one header at a time, knows no route, and does not know libmicrohttpd. */
#ifndef MM_SERVER_GUARD_H
#define MM_SERVER_GUARD_H

#include "gpu/status.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One head under judgement. The caller's, on its stack; nothing in it is owned. */
struct mm_guard {
    struct mm_error *error; /* the caller's; filled in by the first call that refuses */
    bool http_1_0;
    bool has_length;
    bool has_coding;
    bool has_host;
};

/* In this order: begin, header for each in the order of arrival, end. Each returns MM_OK, or
 * MM_BAD_REQUEST with *error filled in: the head is refused, its connection is to be closed without its
 * body being read, and the guard is not called again. `version` is such as "HTTP/1.1"; `path` is the decoded
 * target without its query. Texts with a size need no zero at their end, may hold any bytes, and may be
 * NULL where the size is 0. Any thread, one a guard. */
enum mm_status mm_guard_begin(struct mm_guard *guard, const char *version, const char *path,
                              struct mm_error *error);
enum mm_status mm_guard_header(struct mm_guard *guard, const char *name, size_t name_bytes, const char *value,
                               size_t value_bytes);
enum mm_status mm_guard_end(const struct mm_guard *guard);

/* Makes what a percent escape left in a decoded target visible as a C string: each zero byte becomes
 * \x01, which the guard refuses in a path and no parameter's value contains. */
void mm_guard_show_zeros(char *text, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
