/* Media types as headers write them: matching a type, and weighing one against Accept (RFC 9110, sections
 * 8.3.1 and 12.5.1). Knows nothing of codecs. Any thread may call these functions. */
#pragma once

#include "gpu/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Whether a Content-Type names this type (lower case), whatever its parameters and letter case. */
bool mm_media_is(const char *content_type, const char *type);

/* Whether it says nothing of the body: NULL, empty, or what clients send by default: curl
 * application/x-www-form-urlencoded, and fetch in a browser text/plain. */
bool mm_media_untyped(const char *content_type);

/* Writes the types as a list for people; here and below NULL among `types` stands for none. Cut to fit. */
void mm_media_list(const char *const *types, size_t count, char *text, size_t text_bytes);

/* The index of the type that a Content-Type names. MM_UNSUPPORTED_MEDIA_TYPE lists the types. */
enum mm_status mm_media_find(const char *content_type, const char *const *types, size_t count, size_t *found,
                             struct mm_error *error);

/* The weight, 0 … 1000, that Accept gives to a type (lower case): the most specific range that matches
 * decides; 0: not acceptable. accept NULL, or without any range: 1000. A malformed range is passed
 * over; a malformed q counts as 0. */
int mm_media_weight(const char *accept, const char *type);

/* The index of the type that Accept gives the highest weight; `natural` (or NULL) wins among equals, then the
 * first. MM_NOT_ACCEPTABLE lists the types. */
enum mm_status mm_media_choose(const char *accept, const char *const *types, size_t count,
                               const char *natural, size_t *chosen, struct mm_error *error);
