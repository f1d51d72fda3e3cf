/* Connections that each send one message, take the reply, and begin again at once: a closed loop, timed
 * reply by reply. It knows nothing of what is in the message. */
#ifndef MM_LOAD_PACE_H
#define MM_LOAD_PACE_H

#include "bench/load/message.h"

#include <netdb.h>
#include <stdint.h>

/* The spans of the header Server-Timing, in its order. */
enum { MM_LOAD_SPAN_KERNEL = 4, MM_LOAD_SPAN_TOTAL = 7, MM_LOAD_SPANS = 8, MM_LOAD_TROUBLE_BYTES = 512 };
extern const char *const mm_load_span_names[MM_LOAD_SPANS];

/* What to do; shared by the threads, and constant. */
struct mm_load_pace {
    const struct mm_load_message *message;
    const struct addrinfo *address;
    size_t connections;
    size_t threads;       /* connections are dealt out among them; at most as many */
    size_t warm;          /* requests of each connection before the clock starts */
    size_t requests;      /* of each connection; 0: until the time is up */
    double seconds;       /* after this no request is begun */
    bool reads_spans;     /* takes Server-Timing apart, which costs the client time */
    bool takes_refusals;  /* a status other than 200, and a connection closed on us, is counted and no end */
    bool checks_products; /* of each connection's first reply */
};

struct mm_load_sample {
    double seconds; /* from the first byte sent to the last received */
    double kernel_seconds;
};

/* What was measured; the caller frees `samples`. */
struct mm_load_tally {
    struct mm_load_sample *samples;
    size_t count;
    size_t capacity;
    size_t refused;
    uint64_t begun_ns; /* the first request after the warm ones; the last reply's end */
    uint64_t ended_ns;
    double span_ms[MM_LOAD_SPANS];       /* sums */
    char trouble[MM_LOAD_TROUBLE_BYTES]; /* what ended it early; "" otherwise */
};

/* Runs it all. False where there was trouble. */
bool mm_load_pace_run(const struct mm_load_pace *pace, struct mm_load_tally *tally);

#endif
