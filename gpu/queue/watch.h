/* The watch over the devices. It marks a device that hangs as failed. It also tests idle devices again, to
 * find a faulty one before a client does. */
#pragma once

#include "gpu/queue/queue.h"

struct mm_watch;

struct mm_watch_limits {
    uint64_t hang_ns; /* how long a GPU may take for one product, or one slice of a task; 0: no limit */
    uint64_t rest_ns; /* at least so long from one self-test of a device to the next; 0: no self-tests */
};

/* Self-tests of devices since the watch was opened. */
struct mm_watch_counts {
    uint64_t passed;
    uint64_t failed; /* a result was wrong, or the device failed */
    uint64_t undone; /* memory was short, or the queue ended */
};

/* Watches the queue's devices, which have just passed their self-test. Open the watch before the queue, and
 * close it after the queue. The caller owns the watch. NULL if memory runs out. */
struct mm_watch *mm_watch_open(struct mm_device *const *devices, size_t device_count,
                               const struct mm_watch_limits *limits);
/* Frees it, once the queue is closed. NULL is allowed. */
void mm_watch_close(struct mm_watch *watch);

/* Looks at all devices, begins the self-test of idle ones whose time has come, and returns at once. One
 * thread calls this some times a second. MM_DEVICE_FAILED, once for each failure that was found: the device
 * is marked as failed. MM_INTERNAL or MM_UNSUPPORTED if a self-test failed without a fault of the device. */
enum mm_status mm_watch_look(struct mm_watch *watch, struct mm_queue *queue, uint64_t now_ns,
                             struct mm_error *error);

/* Any thread. */
struct mm_watch_counts mm_watch_counts(const struct mm_watch *watch);
