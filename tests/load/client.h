/* One client: a connection, and a thread that keeps it busy until the time is up. */
#ifndef MM_LOAD_CLIENT_H
#define MM_LOAD_CLIENT_H

#include "tests/load/counts.h"
#include "tests/load/request.h"

/* Owned by who starts the thread; counts may be read once it has ended. */
struct mm_load_client {
    const struct mm_load_plan *plan;
    const struct addrinfo *address;
    unsigned number;
    uint64_t seed;
    uint64_t leave_percent; /* of the requests: leaves at any point instead of taking the reply */
    uint64_t until_ns;      /* of CLOCK_MONOTONIC: after this no request is begun, but for a few first ones */
    struct mm_load_counts counts;
};

uint64_t mm_load_clock_ns(void);

/* A thread's function; `client` is a struct mm_load_client. Says on stderr what goes wrong. */
void *mm_load_client_run(void *client);

#endif
