/* Whether a head as libmicrohttpd has read it is what the client sent. The guard judges what its headers
 * hold. */
#pragma once

#include "gpu/status.h"

#include <microhttpd.h>

/* Callbacks of MHD (server/http/http.c): decode a path or a part of a query in place, and note the length of
 * the target before that. The connection's thread. */
size_t mm_head_unescape(void *server, struct MHD_Connection *connection, char *text);
void *mm_head_note_target(void *server, const char *target, struct MHD_Connection *connection);

/* Whether every parser would read the head alike: MM_OK, or MM_BAD_REQUEST in *error. The texts are what MHD
 * passes to the handler at its first call, the url decoded. The connection's thread, at that call. */
enum mm_status mm_head_judge(struct MHD_Connection *connection, const char *method, const char *url,
                             const char *version, struct mm_error *error);

/* Whether the body is uncompressed: MM_OK, or MM_UNSUPPORTED_MEDIA_TYPE in *error. The connection's
 * thread. */
enum mm_status mm_head_judge_coding(struct MHD_Connection *connection, struct mm_error *error);

/* Whether the refusal is that one: its reply names the codings that are taken, which is MM_HEAD_CODINGS, in
 * Accept-Encoding (RFC 9110, 15.5.16). Any thread. */
#define MM_HEAD_CODINGS "identity"
bool mm_head_is_about_coding(const struct mm_error *error);
