/* Who may in: whether a request's Authorization has a key that its route asks for (RFC 6750, 2.1). Knows the
 * header's form; which keys are in force, keys.h tells. */
#ifndef MM_SERVER_BEARER_H
#define MM_SERVER_BEARER_H

#include "gpu/status.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The challenge that every 401 has to have. */
#define MM_BEARER_CHALLENGE "Bearer realm=\"matmuld\""

struct mm_exchange;

/* MM_OK, or MM_UNAUTHORIZED in exchange->error, whose sentence shows nothing of what came. By the head alone;
 * exchange->route is found. Takes no lock and no memory. The connection's thread. */
enum mm_status mm_bearer_judge(struct mm_exchange *exchange);

/* The key in a header's value such as "Bearer KEY": sets *key, which points into it, and returns its bytes; 0
 * where the scheme is another one or no key follows. The value needs no zero at its end. Any thread. */
size_t mm_bearer_key(const char *value, size_t value_bytes, const char **key);

#ifdef __cplusplus
}
#endif
#endif
