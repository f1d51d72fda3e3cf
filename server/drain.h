/* The end of the service, while it still answers. Only the main thread calls it. */
#pragma once

#include "server/server.h"

#include <stdbool.h>
#include <stdint.h>

/* Refuses new requests, and returns once the accepted ones were answered. After accepted_ms those that are
 * not done get `status` and `detail`, some may still run, and it returns false. In either case it waits at
 * most last_ms more, for the last replies. The queue takes no more jobs. Once, from main; HTTP still runs
 * when it returns. */
bool mm_drain(struct mm_server *server, uint64_t accepted_ms, uint64_t last_ms, enum mm_status status,
              const char *detail);
