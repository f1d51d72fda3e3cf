/* One request again and again at a constant rate, whatever becomes of those before: an open loop. It knows
 * nothing of what the request is. */
#ifndef MM_LOAD_OPEN_LOOP_H
#define MM_LOAD_OPEN_LOOP_H

#include "bench/load/message.h"

#include <netdb.h>
#include <stdint.h>

enum { MM_LOAD_LINES_MAX = 20000, MM_LOAD_EXPECTED_MAX = 8 };

/* What to do; constant meanwhile. */
struct mm_load_open_loop {
    const struct mm_load_message *message;
    const struct addrinfo *address;
    double rate; /* requests a second */
    double seconds;
    size_t connections;                    /* at most; a request for which none is free is not sent */
    bool checks_products;                  /* of replies with 200 */
    size_t expected[MM_LOAD_EXPECTED_MAX]; /* statuses */
    size_t expected_count;                 /* 0: 200 alone */
    size_t pid;                            /* of a process to be sent a signal; 0: none */
    size_t signal;
    double after; /* seconds; what is begun later is not judged */
    size_t burst; /* requests at once just before: half of them have a moment to arrive, and half have not */
};

/* Milliseconds from when a request was due; the owner frees `ms`. */
struct mm_load_times {
    double *ms;
    size_t count;
    size_t capacity;
};

/* What became of the requests. The first that is bad and the first that is lost are said on stderr. */
struct mm_load_fates {
    struct mm_load_times ok;      /* of an expected status, and right */
    struct mm_load_times refused; /* 429 or 503 with Retry-After */
    size_t requests;
    size_t bad;    /* answered otherwise */
    size_t lost;   /* whose connection ended before the reply did */
    size_t unsent; /* because all connections were busy */
    double seconds;
};

/* False where the system denies what it takes to begin. */
bool mm_load_open_loop_run(const struct mm_load_open_loop *loop, struct mm_load_fates *fates);

#endif
