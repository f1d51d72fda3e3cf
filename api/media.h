/* Media types in headers (RFC 9110, sections 8.3.1 and 12.5.1): compares Content-Type with a type, and
 * chooses a type by Accept. Any thread may call these functions. */
#pragma once

#include "gpu/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Whether a Content-Type names this type. Ignores parameters and letter case. */
bool mm_media_is(const char *content_type, const char *type);

/* Whether a Content-Type says nothing about the body: it is NULL, empty, or a client's default. curl's
 * default is application/x-www-form-urlencoded, and a browser's fetch sends text/plain. */
bool mm_media_untyped(const char *content_type);

/* Writes a list of types for an error, cut to fit. Skips NULL entries. */
void mm_media_list(const char *const *types, size_t count, char *text, size_t text_bytes);

/* Finds the index of the type that a Content-Type names. Skips NULL entries. Fails with
 * MM_UNSUPPORTED_MEDIA_TYPE; the error lists the types. */
enum mm_status mm_media_find(const char *content_type, const char *const *types, size_t count, size_t *found,
                             struct mm_error *error);

/* Returns the weight that Accept gives to a type, from 0 (not acceptable) to 1000. The most specific range
 * that matches decides. If `accept` is NULL or has no valid range, the weight is 1000. Malformed ranges are
 * skipped, and a malformed q means 0. */
int mm_media_weight(const char *accept, const char *type);

/* Finds the index of the type with the highest weight by Accept. If several types have this weight, prefers
 * `natural`, then the first type. `natural` may be NULL. Skips NULL entries. Fails with MM_NOT_ACCEPTABLE if
 * all weights are 0; the error lists the types. */
enum mm_status mm_media_choose(const char *accept, const char *const *types, size_t count,
                               const char *natural, size_t *chosen, struct mm_error *error);
