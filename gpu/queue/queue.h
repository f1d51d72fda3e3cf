/* The bounded queue in front of the devices. Each device has its own worker.
 *
 * The queue owns work after mm_queue_submit returns MM_OK. The owner gets the work back when the queue calls
 * `done` once, or when mm_queue_cancel returns true. A full queue rejects work at once with MM_BUSY, and a
 * stopping queue with MM_STOPPING.
 *
 * A step is a slice of a task, a part of a product on the host, or a whole product on a GPU. Accepted work
 * ends in one of these ways, with this status in work->error when the queue calls `done`:
 *
 * - All steps have run, or a step has failed: MM_OK, or the error of the step.
 * - mm_queue_cancel was called. Before the first step, it returns true, and `done` is not called. Later, the
 *   work ends with MM_STOPPING after the current step, unless that step is the last. A long product on a GPU
 *   ends earlier.
 * - The deadline has passed: MM_TIMEOUT, before the first step or after the current step. A task that has
 *   finished keeps MM_OK.
 * - The device has failed. Work before its first step moves to another device, or ends with MM_NOT_READY.
 *   Work between two steps ends with MM_NOT_READY, and work in a step with the error of the step.
 * - The device hangs. Work in a step never ends, so `done` is not called. Other work ends as if the device
 *   had failed.
 * - mm_queue_abort was called. Work before its first step ends at once with the caller's status. Other work
 *   ends with MM_STOPPING after the current step, unless that step is the last.
 * - mm_queue_close was called. Products that wait still get their first step. Tasks that wait, and work
 *   between two steps, end with MM_STOPPING.
 *
 * The server calls mm_queue_cancel when a client disconnects or times out. Tasks never move to another
 * device. If a task is ended after its first slice, its `run` is called a last time to release what the task
 * has acquired. Between two steps, work goes to the end of the waiting list. */
#pragma once

#include "gpu/device/backend.h"

struct mm_queue;
struct mm_task;

struct mm_queue_limits {
    /* The most jobs that wait, over all devices. Products between two parts count, but begun tasks do not. */
    size_t jobs_max;

    /* A job is rejected if the jobs before it will take longer, by measured rates; 0 for no limit. */
    uint64_t wait_ns_max;
};

/* Starts the threads of each device's worker. The caller owns the devices, and closes them after the queue.
 * While the queue is open, only the workers use the devices, except by functions that backend.h allows on any
 * thread. MM_INTERNAL if memory or threads run out. *queue is untouched on failure. */
enum mm_status mm_queue_open(struct mm_device *const *devices, size_t device_count,
                             const struct mm_queue_limits *limits, struct mm_queue **queue,
                             struct mm_error *error);

/* Clears the result of an earlier run, and plans the work for the least loaded device of work->backend that
 * can do it. Copying stored operands to a device counts as load. Call this before each run or submit, with no
 * lock held, because planning takes long. On failure work->error says why: MM_UNSUPPORTED if no device can
 * run the variant or the shape, MM_NOT_READY if all such devices have failed. Any thread that owns the
 * work. */
void mm_queue_prepare(struct mm_queue *queue, struct mm_work *work);

/* Adds prepared work to the list of its device, and never blocks. MM_BUSY if too many jobs wait or the wait
 * would be too long. MM_STOPPING if the queue is stopping. If mm_queue_prepare failed, returns its error. If
 * m or n is 0, the product ends without a device. Any thread. */
enum mm_status mm_queue_submit(struct mm_queue *queue, struct mm_work *work, struct mm_error *error);

/* Runs a prepared product on the calling thread, if the host computes it faster than another thread wakes up.
 * Returns true if the job is over; then `done` is not called. Otherwise submit the job. Any thread. */
bool mm_queue_run(struct mm_queue *queue, struct mm_job *job);

/* Submits a task to this device. Returns false if the device is not idle, or the queue stops. Any thread. */
bool mm_queue_submit_idle(struct mm_queue *queue, const struct mm_device *device, struct mm_task *task);

/* Marks GPUs as failed that have made no progress for longer than most_ns (0 for no limit). The time counts
 * from the first call that saw the current step. The thread of such a GPU is lost. Returns a GPU that this
 * call has marked, or NULL. One thread at a time. */
struct mm_device *mm_queue_fail_hung(struct mm_queue *queue, uint64_t now_ns, uint64_t most_ns);

/* Cancels work, and never blocks. Returns true if the work had not begun; then `done` is not called. Returns
 * false if the work has begun or is over; then `done` is called, or was called before. A product that waits
 * for device memory, or moves to another device, counts as begun. Any thread. */
bool mm_queue_cancel(struct mm_queue *queue, struct mm_work *work);

/* Returns how long the work waited in the queue, once it has left the queue. Any thread. */
uint64_t mm_queue_waited_ns(struct mm_queue *queue, const struct mm_work *work);

struct mm_queue_state {
    size_t jobs; /* waiting or running; begun tasks count as running */
    size_t jobs_waiting;
    size_t bytes_waiting; /* operands and results of the waiting jobs */

    /* How long the jobs will keep the busiest device, by measured rates. Unknown times count as 0. */
    uint64_t wait_ns;

    bool is_full; /* jobs_waiting has reached jobs_max */
};

/* Returns the state of the queue at this moment. Any thread. */
struct mm_queue_state mm_queue_look(struct mm_queue *queue);

/* Rejects new work with MM_STOPPING from now on. Accepted work continues. Any thread. */
void mm_queue_stop(struct mm_queue *queue);

/* Ends all work early. Work that has not begun gets this error. Call mm_queue_stop first. Any thread. */
void mm_queue_abort(struct mm_queue *queue, enum mm_status status, const char *detail);

/* Stops the queue, waits until all work is over, joins the workers, and frees the queue. NULL is allowed. */
void mm_queue_close(struct mm_queue *queue);
