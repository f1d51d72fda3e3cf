/* Media types as headers write them: matching a type, and weighing one against Accept (RFC 9110,
 * sections 8.3.1 and 12.5.1). Knows nothing of codecs. */
#ifndef MM_API_MEDIA_H
#define MM_API_MEDIA_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether a Content-Type names this type (lower case), whatever its parameters and letter case. */
bool mm_media_is(const char *content_type, const char *type);

/* The weight, 0 … 1000, that Accept gives to a type (lower case): the most specific range that matches
 * decides; 0: not acceptable. accept NULL, or without any range: 1000. A malformed range is passed
 * over; a malformed q counts as 0. */
int mm_media_weight(const char *accept, const char *type);

#ifdef __cplusplus
}
#endif
#endif
