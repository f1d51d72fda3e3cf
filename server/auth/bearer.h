/* Whether a request has a key that its route needs, in Authorization (RFC 6750, 2.1). keys.h knows the
 * keys. */
#pragma once

#include "gpu/status.h"

#include <stddef.h>

/* WWW-Authenticate of a 401. */
#define MM_BEARER_CHALLENGE "Bearer realm=\"matmuld\""

struct mm_request;

/* MM_OK, or MM_UNAUTHORIZED in request->error, whose sentence shows nothing of the header. request->route
 * must be known. Takes no memory, and waits for a
 * reload of the keys at most. The connection's thread. */
enum mm_status mm_bearer_check(struct mm_request *request);

/* Sets *key to the key within a value such as "Bearer KEY", and returns its length; 0 if the value is not
 * such. Any thread. */
size_t mm_bearer_key(const char *value, size_t value_bytes, const char **key);
