/* Stops the service while HTTP still answers. Only the main thread calls it. */
#pragma once

#include "server/server.h"

#include <stdbool.h>
#include <stdint.h>

/* Refuses new requests and waits up to accepted_ms until all accepted requests are answered; then it returns
 * true. If the time runs out, it answers the remaining requests with `status` and `detail` and returns false,
 * although some may still run. In both cases it waits up to last_ms more for the last replies. Afterwards the
 * queue takes no more jobs, but HTTP still runs. Call it once. */
bool mm_drain(struct mm_server *server, uint64_t accepted_ms, uint64_t last_ms, enum mm_status status,
              const char *detail);
