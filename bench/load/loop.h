/* Connections that send one message again and again, and how long each reply takes. In a closed loop each
 * connection asks again once it is answered. In an open loop requests are due at a constant rate, whatever
 * becomes of those before, and are timed from when they were due. It knows nothing of what is in the message.
 */
#pragma once

#include "bench/load/message.h"
#include "bench/load/tally.h"

#include <netdb.h>

enum { MM_LOAD_EXPECTED_MAX = 8 };

/* What to do; shared by the threads, and constant. */
struct mm_load_loop {
    const struct mm_load_message *message;
    const struct addrinfo *address;
    double rate;        /* requests a second, of an open loop; 0: a closed loop */
    size_t connections; /* of an open loop at most: a request for which none is free is not sent */
    double seconds;     /* after this no request is begun */
    bool checks;        /* the products: of an open loop all, of a closed one each connection's first */

    size_t expected[MM_LOAD_EXPECTED_MAX]; /* statuses */
    size_t expected_count;                 /* 0: 200 alone */

    /* Closed loops */
    size_t threads;      /* connections are dealt out among them; at most as many. An open loop has 1 */
    size_t warm;         /* requests of each connection before the clock starts */
    size_t requests;     /* of each connection; 0: until the time is up */
    bool reads_spans;    /* takes Server-Timing apart, which costs the client time */
    bool takes_refusals; /* a reply that was not expected, or none, does not end the run */

    /* Open loops */
    size_t pid;   /* of a process that gets SIGTERM; 0: none */
    double after; /* seconds; requests begun later are not counted */
    size_t burst; /* requests at once just before: half of them have a moment to arrive, and half have not */
};

/* Runs it all, and sorts the times. False if a fatal request ended it. */
bool mm_load_loop_run(const struct mm_load_loop *loop, struct mm_load_tally *tally);
