/* A probe times memory accesses on a device, as a task of the queue (gpu/queue/task.h). It runs in steps,
 * and the device can do other work between steps. Accesses that no device can time are only predicted;
 * such a probe never becomes a task.
 *
 * The caller owns a probe, which has a fixed size, and one thread at a time may use it. It may be copied
 * while it is not in the queue. While its task is in the queue, the queue owns the probe. */
#pragma once

#include "gpu/device/backend.h"
#include "gpu/queue/task.h"

/* The most accesses of a probe: all patterns with words of 4 and 8 bytes, padded and not, in shared
 * memory, and all strides with both words in global memory. */
enum { MM_PROBE_ACCESSES_MAX = 2 * 2 * (MM_PATTERN_OFFSETS - 1 + MM_STRIDE_MAX) + 2 * MM_STRIDE_MAX };
_Static_assert(MM_PATTERN_OFFSETS == MM_PATTERN_COUNT - 1,
               "MM_PATTERN_OFFSETS is the last pattern, and replaces all others");

/* Accesses in one step, which takes about ten milliseconds. */
enum { MM_PROBE_STEP = 64 };

struct mm_probe {
    size_t count; /* number of accesses, at least 1; set by the caller */
    bool writes;  /* the accesses are writes, which no device can time; set by the caller */
    unsigned
        bank_bytes; /* width of the banks for predictions, 4 or 8; 0: the device's width; set by the caller */
    struct mm_access accesses[MM_PROBE_ACCESSES_MAX]; /* set by the caller */
    size_t done; /* the first `done` accesses were timed; the probe is complete if this equals `count` */
    struct mm_access_time times[MM_PROBE_ACCESSES_MAX];
    struct mm_memory_speed speed;   /* set by the first step */
    const struct mm_device *device; /* device of the steps, set by the first step; the caller sets it if the
                                       probe never becomes a task */
};

/* Makes the task of a probe, for devices of a backend that has `probe`. If a step fails, none of the
 * step's accesses counts as done. */
struct mm_task mm_probe_task(struct mm_probe *probe, const struct mm_backend *backend);

/* Whether the device can time all accesses of the probe: reads by all lanes, in banks of the device's
 * width. Any thread. */
bool mm_probe_can_time(const struct mm_probe *probe, const struct mm_device *device);

/* Returns the width of the banks for predictions, 4 or 8; for a device without banks 4. The probe's device
 * is set. */
unsigned mm_probe_bank_bytes(const struct mm_probe *probe);

/* Returns a copy, which the caller frees; NULL if memory runs out. */
struct mm_probe *mm_probe_copy(const struct mm_probe *probe);
