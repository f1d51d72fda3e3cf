/* The monotonic clock, and the spans that divide the time of a request. */
#pragma once

#include <stdint.h>

#include "gpu/names.h"

/* Nanoseconds of CLOCK_MONOTONIC. Any thread. */
uint64_t mm_clock_ns(void);

/* The spans of a request in time order, and then the total: constant, name. Clients read the names in the
 * header Server-Timing and in the JSON member timing.NAME_ms. gpu/ measures the spans from queue to download,
 * and server/ measures all other spans. */
#define MM_SPAN_TABLE(X)                                                                                     \
    X(MM_SPAN_RECEIVE, "receive")                                                                            \
    X(MM_SPAN_DECODE, "decode")                                                                              \
    X(MM_SPAN_QUEUE, "queue")                                                                                \
    X(MM_SPAN_UPLOAD, "upload")                                                                              \
    X(MM_SPAN_KERNEL, "kernel")                                                                              \
    X(MM_SPAN_DOWNLOAD, "download")                                                                          \
    X(MM_SPAN_ENCODE, "encode")                                                                              \
    X(MM_SPAN_TOTAL, "total")

enum mm_span { MM_SPAN_TABLE(MM_CONSTANT) MM_SPAN_COUNT };

const char *mm_span_name(enum mm_span span);
