/* The watch over the devices: it gives up one that hangs, and tests an idle one again, to find a faulty
 * one before a client does. */
#pragma once

#include "gpu/queue/queue.h"

struct mm_watch;

struct mm_watch_limits {
    uint64_t hang_ns; /* that a device, not one of the host's, may be at one product; 0: any time */
    uint64_t rest_ns; /* from one self-test of a device to the next, at least; 0: there is none */
};

/* Known products that were computed between those of callers. */
struct mm_watch_counts {
    uint64_t passed;
    uint64_t failed; /* wrong, or the device failed */
    uint64_t undone; /* for want of memory, or since the queue ended */
};

/* Watches the queue's devices, which have just passed their self-test. Open the watch before the queue, and
 * close it after the queue. The caller owns the watch. NULL if memory runs out. */
struct mm_watch *mm_watch_open(struct mm_device *const *devices, size_t device_count,
                               const struct mm_watch_limits *limits);
/* Frees it, once the queue is closed. NULL is allowed. */
void mm_watch_close(struct mm_watch *watch);

/* Looks at all devices, begins the self-test of one that is idle and has its time, and returns at once. To be
 * called some times a second, by one thread. MM_DEVICE_FAILED, once for each failure that was found: the
 * device has failed from then on. */
enum mm_status mm_watch_look(struct mm_watch *watch, struct mm_queue *queue, uint64_t now_ns,
                             struct mm_error *error);

/* Any thread. */
struct mm_watch_counts mm_watch_counts(const struct mm_watch *watch);
