/* The bounded queue in front of the devices. Each device has its own worker.
 *
 * After mm_queue_submit returns MM_OK, the queue owns the work. The owner gets the work back when the queue
 * calls `done`, or when mm_queue_cancel returns true. A full queue rejects work with MM_BUSY, a stopping
 * queue with MM_STOPPING.
 *
 * A step is a slice of a task, a part of a product on a host device, or a whole product on a GPU. Clients get
 * turns: while several clients have waiting work, each gets an equal share of the device's expected
 * time. Between two steps, work goes behind its client's other work. Accepted work ends in one of
 * these ways. The queue sets work->error to the status that is named here, and then calls `done`:
 *
 * - All steps have run, or a step has failed: MM_OK, or the error of the step.
 * - mm_queue_cancel was called. Before the first step, mm_queue_cancel returns true, and `done` is not
 *   called. After that, the work ends with MM_STOPPING when the current step ends, unless this is the last
 *   step. A long product on a GPU ends even during its step.
 * - The deadline has passed. The work ends with MM_TIMEOUT, before its first step or when the current step
 *   ends. But a task whose last slice has run ends with MM_OK.
 * - The device has failed. Work before its first step moves to another device, or ends with MM_NOT_READY.
 *   Work between two steps ends with MM_NOT_READY. Work in a step ends with the error of the step.
 * - The device hangs. Work in a step never ends, so `done` is not called. Other work ends as if the device
 *   had failed.
 * - mm_queue_abort was called. Work before its first step ends at once with the caller's status. Other work
 *   ends with MM_STOPPING when the current step ends, unless this is the last step.
 * - mm_queue_close was called. Products before their first step still run that step. Tasks before their first
 *   step, and work between two steps, end with MM_STOPPING.
 *
 * The server calls mm_queue_cancel when a client disconnects or times out. Tasks never move to another
 * device. If a task ends early after its first slice, the queue calls its `run` once more, to release what
 * the task has acquired. */
#pragma once

#include "gpu/device/backend.h"

struct mm_queue;
struct mm_task;

struct mm_queue_limits {
    /* The most jobs that wait. Products between two parts count, but tasks that have begun do not. */
    size_t jobs_max;

    size_t client_jobs_max; /* the most jobs of one client that wait; 0: no limit */

    /* A job is rejected if it would wait longer than this, by measured rates. 0 for no limit. */
    uint64_t wait_ns_max;
};

/* Opens the queue, and starts the threads of each device's worker. The caller owns the devices, and closes
 * them after the queue. While the queue is open, other threads may call only device functions with the
 * comment "Any thread". MM_INTERNAL if memory or threads run out. *queue is untouched on failure. */
enum mm_status mm_queue_open(struct mm_device *const *devices, size_t device_count,
                             const struct mm_queue_limits *limits, struct mm_queue **queue,
                             struct mm_error *error);

/* Clears the result of an earlier run, and plans the work for the least loaded device that can do it. Call
 * this before each mm_queue_run or mm_queue_submit, with no lock held, because planning takes long. If a job
 * has memory for shares, several devices may compute the product (gpu/queue/share.h). On failure sets
 * work->error: MM_UNSUPPORTED if no device can run the variant or the shape, MM_NOT_READY if all such devices
 * have failed. Any thread that owns the work. */
void mm_queue_prepare(struct mm_queue *queue, struct mm_work *work);

/* Adds work to the waiting list of its device, or its shares to those of their devices, and never blocks. The
 * caller has called mm_queue_prepare. If mm_queue_prepare failed, returns its error. MM_BUSY if too many jobs
 * wait or the wait would be too long. MM_STOPPING if the queue is stopping. Any thread. */
enum mm_status mm_queue_submit(struct mm_queue *queue, struct mm_work *work, struct mm_error *error);

/* If the job is a tiny product for a host device, runs the job on the calling thread, and returns true. Then
 * the job is over, and `done` is not called. Otherwise returns false, and the caller must submit the job. The
 * caller has called mm_queue_prepare. Any thread. */
bool mm_queue_run(struct mm_queue *queue, struct mm_job *job);

/* Submits a task to this device. Returns false if the device is busy or the queue is stopping. Any thread. */
bool mm_queue_submit_idle(struct mm_queue *queue, const struct mm_device *device, struct mm_task *task);

/* Marks all hung GPUs as failed. A GPU hangs if its current step takes longer than most_ns; 0 means no limit.
 * The thread of a hung GPU is lost. A step's time is measured from the first call of this function that saw
 * the step. Returns one of the GPUs that this call marked, or NULL. One thread at a time. */
struct mm_device *mm_queue_fail_hung(struct mm_queue *queue, uint64_t now_ns, uint64_t most_ns);

/* Cancels work, and never blocks. Returns true if the work had not begun, and then `done` is not called. If
 * the work has begun or is over, returns false, and `done` is called later or was called before. A product
 * that waits for device memory, or that moves to another device, counts as begun. Any thread. */
bool mm_queue_cancel(struct mm_queue *queue, struct mm_work *work);

/* Returns how long the work waited in the queue. The work has left the waiting list. Any thread. */
uint64_t mm_queue_waited_ns(struct mm_queue *queue, struct mm_work *work);

/* Returns MM_BUSY if so many jobs wait that the queue would reject a job of this client now. Any thread. */
enum mm_status mm_queue_check_depth(struct mm_queue *queue, unsigned client, struct mm_error *error);

struct mm_queue_state {
    size_t jobs;
    size_t jobs_waiting;
    size_t bytes_waiting; /* bytes of the waiting jobs' matrices */

    /* How long the busiest device will need for its jobs, by measured rates. Unknown times count as 0. */
    uint64_t wait_ns;
};

/* Returns the state of the queue at this moment. Any thread. */
struct mm_queue_state mm_queue_look(struct mm_queue *queue);

/* Rejects new work with MM_STOPPING from now on. Accepted work continues. Any thread. */
void mm_queue_stop(struct mm_queue *queue);

/* Ends all work early. Work that has not begun gets this error. First call mm_queue_stop. Any thread. */
void mm_queue_abort(struct mm_queue *queue, enum mm_status status, const char *detail);

/* Stops the queue, waits until all work is over, and frees the queue. NULL is allowed. */
void mm_queue_close(struct mm_queue *queue);
