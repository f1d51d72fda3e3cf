/* Checks the name in /v1/matrices/NAME and the conditions. The connection's thread calls these functions. */
#pragma once

#include "gpu/store/store.h"
#include "server/http/request.h"

/* The matrix name in the request's path. It points into request->path. */
const char *mm_matrix_name(const struct mm_request *request);

/* Checks the name in the path: MM_OK, or MM_BAD_REQUEST in request->error. Records `op` for the metrics. */
enum mm_status mm_matrix_check_name(struct mm_request *request, enum mm_store_op op);

/* Checks the headers If-Match and If-None-Match against the current value of `name`. MM_OK, or in
 * request->error MM_PRECONDITION_FAILED, or MM_BAD_REQUEST if a header cannot be read. *is_there: the name
 * has a value. `etag` gets the value's tag, or "" if there is no value. Pass *expected on to mm_store_put or
 * mm_store_remove: it is `etag`, or NULL if the request has no conditions. */
enum mm_status mm_matrix_check_condition(struct mm_request *request, const char *name,
                                         char etag[MM_ETAG_MAX + 1], const char **expected, bool *is_there);
