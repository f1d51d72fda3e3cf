/* Checks the name in /v1/matrices/NAME, and conditions. Call these functions on the connection's thread. */
#pragma once

#include "gpu/store/store.h"
#include "server/http/request.h"

/* Returns the matrix name, which is a part of request->path. */
const char *mm_matrix_name(const struct mm_request *request);

/* Checks the name in the path, and records `op` for the metrics. On failure sets request->error. */
enum mm_status mm_matrix_check_name(struct mm_request *request, enum mm_store_op op);

/* Checks the headers If-Match and If-None-Match against the current value of `name`. Sets `etag` to the
 * value's tag, or to "" if the name has no value. Fails with MM_PRECONDITION_FAILED, or with MM_BAD_REQUEST
 * if a header cannot be read. */
enum mm_status mm_matrix_check_condition(struct mm_request *request, const char *name,
                                         char etag[MM_ETAG_MAX + 1]);
