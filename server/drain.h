/* The end of the service, while it still answers. Only the main thread calls it. */
#pragma once

#include "server/server.h"

#include <stdbool.h>
#include <stdint.h>

/* Refuses new requests, and returns true once all accepted requests were answered. After accepted_ms it
 * answers the others with `status` and `detail`; then some may still run, and it returns false. In both cases
 * it waits at most last_ms more for the last replies. The queue takes no more jobs afterwards, and HTTP still
 * runs. Call it once. */
bool mm_drain(struct mm_server *server, uint64_t accepted_ms, uint64_t last_ms, enum mm_status status,
              const char *detail);
