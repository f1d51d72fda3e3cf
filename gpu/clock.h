/* The one clock, in monotonic nanoseconds, and the spans of a request's time. */
#pragma once

#include <stdint.h>

#include "gpu/names.h"

/* Nanoseconds of CLOCK_MONOTONIC. Any thread. */
uint64_t mm_clock_ns(void);

/* One row a span, in the order of a request's life; the names are the contract's
 * (Server-Timing, timing.NAME_ms). The domain measures queue to download, the server the rest. */
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
