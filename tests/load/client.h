/* One client: a connection, and a thread that keeps it busy until the time is up. */
#ifndef MM_LOAD_CLIENT_H
#define MM_LOAD_CLIENT_H

#include "tests/load/request.h"

/* Of one client, or of all: numbers alone, which add up one by one. */
struct mm_load_counts {
    uint64_t requests;                       /* that were answered, in whatever way */
    uint64_t exact;                          /* products of whole numbers, all of whose elements were right */
    uint64_t bounded;                        /* products within the error bound */
    uint64_t chunked;                        /* requests sent so, of all */
    uint64_t pipelined;                      /* sent before the one before was answered */
    uint64_t left;                           /* whose reply was not waited for; not in `requests` */
    uint64_t mismatches;                     /* replies that are wrong */
    uint64_t broken;                         /* connections reset or closed, replies malformed or missing */
    uint64_t codes[MM_LOAD_CODE_COUNT];      /* of all replies that were no mismatch */
    uint64_t variants[MM_LOAD_VARIANTS_MAX]; /* right products, by the variant asked for */
};

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
