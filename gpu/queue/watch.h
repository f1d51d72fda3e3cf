/* The watch marks hung devices as failed, and tests idle devices again to find faults before clients do. */
#pragma once

#include "gpu/queue/queue.h"

struct mm_watch;

struct mm_watch_limits {
    uint64_t hang_ns; /* how long a GPU may be at one step (queue.h); 0 for no limit */
    uint64_t rest_ns; /* least time between two self-tests of a device; 0 for none */
};

/* Self-tests of devices since the watch was opened. */
struct mm_watch_counts {
    uint64_t passed;
    uint64_t failed; /* a result was wrong, or the device failed */
    uint64_t undone; /* memory was short, or the queue ended */
};

/* Opens a watch over devices that have just passed their self-test. Open the watch before the queue, and
 * close it after the queue. The caller owns the watch. NULL if memory runs out. */
struct mm_watch *mm_watch_open(struct mm_device *const *devices, size_t device_count,
                               const struct mm_watch_limits *limits);
/* Frees the watch after the queue was closed. NULL is allowed. */
void mm_watch_close(struct mm_watch *watch);

/* Checks all devices, begins self-tests that are due on idle devices, and returns at once. One thread calls
 * this several times a second. MM_DEVICE_FAILED if a device was found to have failed; returned once for each
 * failure. MM_INTERNAL or MM_UNSUPPORTED if a self-test failed without a fault of the device. */
enum mm_status mm_watch_look(struct mm_watch *watch, struct mm_queue *queue, uint64_t now_ns,
                             struct mm_error *error);

/* Any thread. */
struct mm_watch_counts mm_watch_counts(const struct mm_watch *watch);
