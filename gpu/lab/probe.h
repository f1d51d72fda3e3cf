/* A probe times memory accesses on a device, as a task of the queue (gpu/queue/task.h). The device can do
 * other work between the steps. If no device can time the accesses, the service only predicts the cost, and
 * the probe never becomes a task.
 *
 * The caller owns a probe, which has a fixed size, and one thread at a time may use it. While its task is in
 * the queue, the queue owns the probe. */
#pragma once

#include "gpu/device/backend.h"
#include "gpu/queue/task.h"

/* The most accesses of a probe. Shared memory has all patterns and strides, with words of 4 and 8 bytes, with
 * and without padding. Global memory has all strides with words of 4 and 8 bytes. */
enum { MM_PROBE_ACCESSES_MAX = 2 * 2 * (MM_PATTERN_OFFSETS - 1 + MM_STRIDE_MAX) + 2 * MM_STRIDE_MAX };
_Static_assert(MM_PATTERN_OFFSETS == MM_PATTERN_COUNT - 1,
               "MM_PATTERN_OFFSETS is the last pattern, and replaces all others");

/* Accesses in one step, which takes about ten milliseconds. */
enum { MM_PROBE_STEP = 64 };

struct mm_probe {
    size_t count; /* at least 1; set by the caller */
    bool writes;  /* the accesses are writes, which no device can time; set by the caller */
    /* Width of the banks for predictions, 4 or 8. 0 means the width of the device. Set by the caller. */
    unsigned bank_bytes;
    struct mm_access accesses[MM_PROBE_ACCESSES_MAX]; /* set by the caller */
    size_t done;                                      /* number of accesses that were timed */
    struct mm_access_time times[MM_PROBE_ACCESSES_MAX];
    struct mm_memory_speed speed; /* set by the first step */
    /* Set by the first step. The caller sets it if the probe never becomes a task. */
    const struct mm_device *device;
};

/* Makes the task of a probe. The backend has a function `probe`. If a step fails, none of the accesses of
 * this step counts as done. */
struct mm_task mm_probe_task(struct mm_probe *probe, const struct mm_backend *backend);

/* Whether the device can time all accesses: they are reads, all lanes are active, and the banks have the
 * device's width. Any thread. */
bool mm_probe_can_time(const struct mm_probe *probe, const struct mm_device *device);

/* Returns the width of the banks for predictions, 4 or 8. Call this only after probe->device was set. */
unsigned mm_probe_bank_bytes(const struct mm_probe *probe);

/* Returns a copy, which the caller frees, or NULL if memory runs out. Call this only while the probe is not
 * in the queue. */
struct mm_probe *mm_probe_copy(const struct mm_probe *probe);
