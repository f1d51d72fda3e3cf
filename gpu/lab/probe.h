/* A probe: accesses that a device shall time, and what came of it. Done in steps, between which the device
 * can do other things. */
#ifndef MM_GPU_LAB_PROBE_H
#define MM_GPU_LAB_PROBE_H

#include "gpu/backend.h"

/* All patterns, with words of 4 and of 8 bytes, padded and not, in shared memory, and all strides with both
 * words in global memory. */
enum { MM_PROBE_ACCESSES_MAX = 2 * 2 * (MM_PATTERN_COUNT - 1 + MM_STRIDE_MAX) + 2 * MM_STRIDE_MAX };

/* Accesses in one step: of the order of ten milliseconds. */
enum { MM_PROBE_STEP = 64 };

/* Owned by the caller, of fixed size. Starts as zeros but for the first two members. */
struct mm_probe {
    size_t count; /* at least 1 */
    struct mm_access accesses[MM_PROBE_ACCESSES_MAX];
    size_t done; /* of them, in their order */
    struct mm_access_time times[MM_PROBE_ACCESSES_MAX];
    struct mm_memory_speed speed; /* from the first step on */
};

/* Times the next accesses, and in the first step the memories as wholes; it is over once `done` is
 * `count`. MM_UNSUPPORTED if the device has no such memory. Nothing counts as done on failure. On the
 * thread that uses the device. */
enum mm_status mm_probe_step(struct mm_probe *probe, struct mm_device *device, struct mm_error *error);

/* A probe as a task of the queue. */
struct mm_probe_task {
    struct mm_task task;
    struct mm_probe probe;
    const struct mm_device *device; /* that took it up */
};

/* Makes the task ready; its probe is the caller's to set, as above. */
void mm_probe_task_init(struct mm_probe_task *task);

#endif
