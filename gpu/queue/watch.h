/* The watch marks hung devices as failed. It tests idle devices again, to find faults before clients do. */
#pragma once

#include "gpu/queue/queue.h"

struct mm_watch;

struct mm_watch_limits {
    uint64_t hang_ns; /* a GPU hangs if a step (queue.h) takes longer; 0 for no limit */
    uint64_t rest_ns; /* least time between two self-tests of a device; 0 for no self-tests */
};

/* Self-tests of devices since the watch was opened. */
struct mm_watch_counts {
    uint64_t passed;
    uint64_t failed; /* because a result was wrong, or the device failed */
    uint64_t undone; /* because of other errors, for example short memory */
};

/* Opens a watch over devices that have just passed their self-test. The caller opens the watch before the
 * queue, and owns the watch. Returns NULL if memory runs out. */
struct mm_watch *mm_watch_open(struct mm_device *const *devices, size_t device_count,
                               const struct mm_watch_limits *limits);
/* Frees the watch. The caller must first close the queue. NULL is allowed. */
void mm_watch_close(struct mm_watch *watch);

/* Marks hung devices, begins self-tests that are due on idle devices, and returns at once. One thread calls
 * this several times a second. Returns MM_DEVICE_FAILED once for each failure of a device that the watch
 * found. Returns MM_INTERNAL or MM_UNSUPPORTED if a self-test failed without a fault of the device. */
enum mm_status mm_watch_look(struct mm_watch *watch, struct mm_queue *queue, uint64_t now_ns,
                             struct mm_error *error);

/* Any thread. */
struct mm_watch_counts mm_watch_counts(const struct mm_watch *watch);
