/* The description of the HTTP interface: OpenAPI 3.1, from api/openapi.json. */
#ifndef MM_API_OPENAPI_H
#define MM_API_OPENAPI_H

#include "gpu/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The body of GET /openapi.json for the open devices: api/openapi.json with the names that can be
 * chosen here (`auto` and the open backends; each name of a row of their tables, once; the element types)
 * and the server's version filled in. malloc'ed, ended by NUL, the caller frees; NULL when memory is
 * out. Any thread. */
char *mm_openapi_json(struct mm_device *const *devices, size_t count, const char *version, size_t *length);

#ifdef __cplusplus
}
#endif
#endif
