/* What the requests to /v1/matrices/NAME share. The connection's thread calls these functions. */
#pragma once

#include "gpu/store/store.h"
#include "server/http/request.h"

/* The name in the request's path; it points into request->path. */
const char *mm_matrix_name(const struct mm_request *request);

/* MM_BAD_REQUEST in request->error if the name in the path is malformed. Notes `op` for the metrics. */
enum mm_status mm_matrix_check_name(struct mm_request *request, enum mm_store_op op);

/* Checks the request's conditions on the value that `name` has now: MM_OK, or in request->error
 * MM_PRECONDITION_FAILED, or MM_BAD_REQUEST if a condition cannot be read. *is_there: the name has a value.
 * `etag` gets the value's tag, or "" if there is none. *expected is what mm_store_put and mm_store_remove
 * must find: `etag`, or NULL if the request has no conditions. */
enum mm_status mm_matrix_check_condition(struct mm_request *request, const char *name,
                                         char etag[MM_ETAG_MAX + 1], const char **expected, bool *is_there);
