/* A probe: memory accesses that a device times, as a task of the queue (gpu/queue/task.h). It is done in
 * steps, and the device can do other work between two of them. Accesses that no device can time are only
 * predicted: such a probe never becomes a task.
 *
 * The caller owns a probe, of fixed size, and any one thread at a time may use it. It is plain data that may
 * be copied while no task has it. While its task is in the queue, it belongs to the queue. */
#pragma once

#include "gpu/device/backend.h"
#include "gpu/queue/task.h"

/* All patterns, with words of 4 and of 8 bytes, padded and not, in shared memory, and all strides with both
 * words in global memory. */
enum { MM_PROBE_ACCESSES_MAX = 2 * 2 * (MM_PATTERN_OFFSETS - 1 + MM_STRIDE_MAX) + 2 * MM_STRIDE_MAX };
_Static_assert(MM_PATTERN_OFFSETS == MM_PATTERN_COUNT - 1, "it stands alone, and in place of all others");

/* Accesses in one step, which takes some ten milliseconds. */
enum { MM_PROBE_STEP = 64 };

struct mm_probe {
    size_t count;        /* of accesses, at least 1; the caller sets this and the next three */
    bool writes;         /* the accesses are writes, which no device times; else reads */
    unsigned bank_bytes; /* of the banks that predictions are for, 4 or 8; 0: as wide as the device's */
    struct mm_access accesses[MM_PROBE_ACCESSES_MAX];
    size_t done; /* accesses that are timed, from the first on; the probe is over when this is `count` */
    struct mm_access_time times[MM_PROBE_ACCESSES_MAX];
    struct mm_memory_speed speed;   /* from the first step on */
    const struct mm_device *device; /* that does the steps, from the first on; the caller sets it if
                                       the probe never becomes a task */
};

/* Makes the task of a probe, for devices of a backend that has `probe`. If a step fails, none of the step's
 * accesses counts as done. */
struct mm_task mm_probe_task(struct mm_probe *probe, const struct mm_backend *backend);

/* Whether the device can time all accesses of the probe: reads by all lanes, in banks like its own. Any
 * thread. */
bool mm_probe_can_time(const struct mm_probe *probe, const struct mm_device *device);

/* The width of the banks that predictions are for, 4 or 8: of a device without banks 4. The device is set. */
unsigned mm_probe_bank_bytes(const struct mm_probe *probe);

/* A copy, which the caller frees; NULL if memory runs out. */
struct mm_probe *mm_probe_copy(const struct mm_probe *probe);
