/* The sweep: a thread that looks at all requests ten times a second, for what no event tells. A caller
 * who has left is not noticed while its connection is suspended, and a deadline has to be kept by the
 * clock, not when a worker gets round to it. */
#ifndef MM_SERVER_SWEEP_H
#define MM_SERVER_SWEEP_H

#include "server/server.h"

#ifdef __cplusplus
extern "C" {
#endif

struct mm_sweep;

/* Starts the thread. NULL where that fails. `server` outlives it. */
struct mm_sweep *mm_sweep_start(struct mm_server *server);

/* Ends and joins it. NULL is allowed. */
void mm_sweep_stop(struct mm_sweep *sweep);

#ifdef __cplusplus
}
#endif
#endif
