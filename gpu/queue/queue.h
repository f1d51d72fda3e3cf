/* The bounded queue in front of the devices, and the worker that each device has.
 *
 * Work belongs to the queue from mm_queue_submit's MM_OK until the queue calls `done` once, or until
 * mm_queue_cancel returns true; before and afterwards it belongs to its owner. A full queue rejects work at
 * once with MM_BUSY, and a stopping queue with MM_STOPPING.
 *
 * A step is a slice of a task, a part of a product on the host, or a whole product on a GPU. Work that is
 * accepted ends in one of these ways; the status is work->error when the queue calls `done`:
 *
 * - All steps have run, or one has failed: MM_OK, or the error of the step.
 * - mm_queue_cancel: before the first step it returns true, and `done` is not called. Later the work ends
 *   with MM_STOPPING after the current step, unless that is the last.
 * - The deadline passes: MM_TIMEOUT, instead of the first step or after the current one. A task that has
 *   finished keeps MM_OK.
 * - The device fails: work without a first step moves to another device, or ends with MM_NOT_READY. Work
 *   between two steps ends with MM_NOT_READY, and work in a step with the error of the step.
 * - The device hangs: as if it had failed, but work in a step never ends, and `done` is not called.
 * - mm_queue_abort: before the first step the caller's status, at once. Later as by mm_queue_cancel.
 * - mm_queue_close: products run to their end. Tasks end with MM_STOPPING, after the current step if one
 *   runs that is not the last.
 *
 * A client that disconnects, or that the server times out, is a mm_queue_cancel. Tasks never move to another
 * device. Once a task has begun, its `run` is called a last time to release what the task has acquired.
 * Between two steps, work waits until the work that arrived meanwhile has had its turn. */
#pragma once

#include "gpu/device/backend.h"

struct mm_queue;
struct mm_task;

struct mm_queue_limits {
    size_t jobs_max; /* products and tasks that wait, over all devices. A long product waits between its parts
                        too; a task waits only before its first slice */
    uint64_t wait_ns_max; /* a job is rejected if those before it will take longer, by the device's measured
                             rates; 0: no limit */
};

/* Starts the threads of each device's worker. The caller owns the devices and closes them after the queue.
 * While the queue is open, only the workers use the devices, except by functions that backend.h allows from
 * any thread. MM_INTERNAL if memory or threads run out; *queue is untouched then. */
enum mm_status mm_queue_open(struct mm_device *const *devices, size_t device_count,
                             const struct mm_queue_limits *limits, struct mm_queue **queue,
                             struct mm_error *error);

/* Clears the result of an earlier run, and plans the work for the least loaded device of work->backend that
 * can do it. For a product, stored operands without a copy on a device count as load there. Call this before
 * each run or submit, with no lock held, because planning takes long. On failure work->error says why:
 * MM_UNSUPPORTED (no device for the variant, or not this shape), MM_NOT_READY (all such devices have failed).
 * Any thread that has the work. */
void mm_queue_prepare(struct mm_queue *queue, struct mm_work *work);

/* Adds prepared work to the list of its device. Never blocks. MM_BUSY, MM_STOPPING, or work->error. Any
 * thread. A product with m = 0 or n = 0 ends without a device; one with k = 0 runs like any other. */
enum mm_status mm_queue_submit(struct mm_queue *queue, struct mm_work *work, struct mm_error *error);

/* Runs a prepared product at once on the calling thread, if the host computes it faster than another thread
 * would wake up. True: the job is over, and `done` is not called. False: submit the job. Any thread. */
bool mm_queue_run(struct mm_queue *queue, struct mm_job *job);

/* Submits a task to this device of the queue, if the device is idle. False if the device is busy or has
 * failed, or the queue is stopping. Any thread. */
bool mm_queue_submit_idle(struct mm_queue *queue, const struct mm_device *device, struct mm_task *task);

/* Marks each GPU as failed that has been at one product, or one slice of a task, for longer than most_ns (0:
 * no limit). The time counts from the first call that saw the step. The thread of such a GPU is lost.
 * Returns a GPU that this call has marked, or NULL. One thread at a time. */
struct mm_device *mm_queue_fail_hung(struct mm_queue *queue, uint64_t now_ns, uint64_t most_ns);

/* Cancels work. True if the work had not begun: `done` is not called. False if the work has begun or is over:
 * `done` is called, or was called. A product that found no memory yet, or that moves to another device,
 * counts as begun. Never blocks. Any thread. */
bool mm_queue_cancel(struct mm_queue *queue, struct mm_work *work);

/* Returns how long the work waited in the queue. Call it only after the work has left the queue. Any
 * thread. */
uint64_t mm_queue_waited_ns(struct mm_queue *queue, const struct mm_work *work);

struct mm_queue_state {
    size_t jobs; /* waiting or running; begun tasks count as running */
    size_t jobs_waiting;
    size_t bytes_waiting; /* of their operands and results */
    uint64_t wait_ns; /* how long the jobs will keep the busiest device, by the best rates measured of their
                         variants and of copies; jobs without a rate, and tasks, count as 0 */
    bool is_full;     /* a submit would be rejected now */
};

/* The queue at this moment. Any thread. */
struct mm_queue_state mm_queue_look(struct mm_queue *queue);

/* Rejects new jobs from now on with MM_STOPPING. Accepted jobs go on. Any thread. */
void mm_queue_stop(struct mm_queue *queue);

/* Ends all work early: work that has not begun gets this status and sentence. Call mm_queue_stop first. Any
 * thread. */
void mm_queue_abort(struct mm_queue *queue, enum mm_status status, const char *detail);

/* Stops the queue, waits until all work is over, joins the workers, and frees the queue. NULL is allowed. */
void mm_queue_close(struct mm_queue *queue);
