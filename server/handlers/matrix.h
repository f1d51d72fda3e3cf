/* Checks for all requests to /v1/matrices/NAME. The connection's thread calls these functions. */
#pragma once

#include "gpu/store/store.h"
#include "server/http/request.h"

/* The name in the request's path; it points into request->path. */
const char *mm_matrix_name(const struct mm_request *request);

/* Checks the name in the path: MM_OK, or MM_BAD_REQUEST in request->error. Notes `op` for the counters. */
enum mm_status mm_matrix_check_name(struct mm_request *request, enum mm_store_op op);

/* Checks the request's conditions on the value that this name has now: MM_OK, or MM_PRECONDITION_FAILED in
 * request->error, or MM_BAD_REQUEST if a list is too long. *is_there: the name has a value. *expected is then
 * what mm_store_put and mm_store_remove have to find: `etag`, which gets the value's tag or "" if there is
 * none; or NULL without conditions. */
enum mm_status mm_matrix_check_condition(struct mm_request *request, const char *name,
                                         char etag[MM_ETAG_MAX + 1], const char **expected, bool *is_there);
