/* Counts how requests ended, and how long each took. It knows nothing of connections. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The spans of the header Server-Timing, in its order. */
enum { MM_LOAD_SPAN_KERNEL = 4, MM_LOAD_SPANS = 8, MM_LOAD_TROUBLE_BYTES = 512 };
extern const char *const mm_load_span_names[MM_LOAD_SPANS];

/* How a request ended. The connection is closed after the last three. */
enum mm_load_fate {
    MM_LOAD_OK,        /* an expected status, and right */
    MM_LOAD_REFUSED,   /* 429 or 503, with Retry-After */
    MM_LOAD_OTHER,     /* another status */
    MM_LOAD_LOST,      /* the connection ended before the reply did */
    MM_LOAD_UNREACHED, /* no connection */
    MM_LOAD_BROKEN,    /* malformed, or not the product */
    MM_LOAD_FATES
};

/* Starts as {0}. The times live as long as the process. */
struct mm_load_times {
    double *ms;
    size_t count;
    size_t capacity;
};

/* What was measured. Starts as {0}. */
struct mm_load_tally {
    struct mm_load_times fates[MM_LOAD_FATES];
    struct mm_load_times outside;  /* of those that are OK, less the kernel's time, if spans are read */
    double span_ms[MM_LOAD_SPANS]; /* sums */
    size_t unsent;                 /* because all connections were busy */
    uint64_t begun_ns;             /* the first request after the warm ones; the last good reply's end */
    uint64_t ended_ns;
    char trouble[MM_LOAD_TROUBLE_BYTES]; /* the first request that was neither OK nor REFUSED; or "" */
};

uint64_t mm_load_clock(void); /* ns, monotonic */

/* A request that was begun or due at begun_ns is over. Of one that is OK `timing` is the reply's
 * Server-Timing, whose spans are read; NULL: they are not. */
void mm_load_tally_add(struct mm_load_tally *tally, enum mm_load_fate fate, uint64_t begun_ns,
                       const char *timing);

/* Adds what another thread measured. */
void mm_load_tally_merge(struct mm_load_tally *tally, const struct mm_load_tally *other);

/* Puts all times in order. */
void mm_load_tally_sort(struct mm_load_tally *tally);

double mm_load_tally_seconds(const struct mm_load_tally *tally);

/* Of times in order, by the nearest rank; 0 if there are none. */
double mm_load_percentile(const struct mm_load_times *times, size_t hundredths);
