/* Checks that a request has the API key which its route needs, in Authorization (RFC 6750, 2.1). keys.h knows
 * the keys. */
#pragma once

#include "gpu/status.h"

#include <stddef.h>

/* The value of WWW-Authenticate in a 401. */
#define MM_BEARER_CHALLENGE "Bearer realm=\"matmuld\""

struct mm_request;

/* MM_OK, or MM_UNAUTHORIZED in request->error, whose sentence shows nothing of the header. request->route
 * must be set. Allocates nothing, and waits only while a reload swaps the keys. The connection's thread calls
 * it. */
enum mm_status mm_bearer_check(struct mm_request *request);

/* Sets *key to the key within a value such as "Bearer KEY", and returns its length; 0 if the value has
 * another form. Any thread may call it. */
size_t mm_bearer_key(const char *value, size_t value_bytes, const char **key);
