/* Checks the API key in a request's Authorization header (RFC 6750, 2.1). keys.h knows the valid keys. */
#pragma once

#include "gpu/status.h"

#include <stddef.h>

#define MM_BEARER_CHALLENGE "Bearer realm=\"matmuld\""

struct mm_request;

/* Checks the request's API key if request->route needs a key. Fails with MM_UNAUTHORIZED in request->error,
 * which never quotes the header. Can block during a reload of the keys. Call it on the connection's
 * thread. */
enum mm_status mm_bearer_check(struct mm_request *request);

/* Finds the key in a value such as "Bearer KEY": sets *key to its start and returns its length, or 0 if the
 * value has another form. Any thread may call it. */
size_t mm_bearer_key(const char *value, size_t value_bytes, const char **key);
