/* The bounded queue in front of the devices, and the worker that each device has.
 *
 * A job is the caller's until submit returns MM_OK and again from done() on; in between it is the
 * queue's. A full queue refuses at once with MM_BUSY, a closed one with MM_STOPPING, and every job that
 * was accepted gets exactly one done(), whatever happens, but for those that run on a device that hangs, or
 * were begun there. Products that wait for a device when it fails go to another one that can run them, and
 * end with MM_NOT_READY where there is none.
 *
 * A task waits its turn like a product, then runs alone on its device for one slice, and goes to the end of
 * that device's list: whoever came meanwhile is served before its next slice. Between two slices it is ended
 * where it was cancelled (at once then), its deadline has passed, its device has failed or the queue ends; it
 * is called a last time so that it gives back what it holds. */
#ifndef MM_GPU_QUEUE_H
#define MM_GPU_QUEUE_H

#include "gpu/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

struct mm_queue;

struct mm_queue_limits {
    size_t jobs_max;      /* jobs waiting, over all devices; those being run, and begun tasks, do not count */
    size_t bytes_max;     /* bytes of operands and results of the jobs waiting */
    uint64_t wait_ns_max; /* that the jobs before one may take by the device's measured rates; 0: any */
};

/* Starts the threads of each device's worker. The devices stay the caller's, outlive the queue, and are used
 * by their workers alone meanwhile (but for what backend.h allows from any thread). */
enum mm_status mm_queue_open(struct mm_device *const *devices, size_t device_count,
                             const struct mm_queue_limits *limits, struct mm_queue **queue,
                             struct mm_error *error);

/* Puts the job in front of the least loaded device (by the FLOPs waiting and running) of
 * job->backend on which job->variant can run. Never blocks. MM_BUSY, MM_STOPPING, MM_UNSUPPORTED (no
 * device for the variant), MM_NOT_READY (those there are have failed). Any thread. A job with m = 0
 * or n = 0 is done without a device's work, k = 0 runs like any other. */
enum mm_status mm_queue_submit(struct mm_queue *queue, struct mm_job *job, struct mm_error *error);

/* Runs a product at once, on the calling thread, where the host computes it in less time than it takes to
 * wait for another thread: true, the job is over then, as at its done(), which is not called. False where it
 * is to be submitted. Any thread. */
bool mm_queue_run(struct mm_queue *queue, struct mm_job *job);

/* Puts a task in front of this device, which is one of the queue's, where it has nothing else to do: true.
 * False where it has, has failed, or the queue is stopping. Any thread. */
bool mm_queue_submit_idle(struct mm_queue *queue, const struct mm_device *device, struct mm_job *job);

/* Finds a device, not one of the host's, that is at one product, or one slice of a task, for more than so
 * long (0: none is), from the first time on that this was asked while it ran. It has failed from then on, and
 * its thread never comes back: those who wait for it go to another device, or end with MM_NOT_READY. NULL
 * where there is none, or none that was not found before. One thread at a time. */
struct mm_device *mm_queue_find_hung(struct mm_queue *queue, uint64_t now_ns, uint64_t most_ns);

/* Takes a job that still waits out of the queue: true, and it is the caller's again, without a done().
 * False where it is running or over: its done() comes, or has come. A task that has begun is ended after the
 * slice at hand, with MM_STOPPING unless that was its last. Never blocks. Any thread. */
bool mm_queue_cancel(struct mm_queue *queue, struct mm_job *job);

/* Whether a submit would find room at this moment, for refusing before a body is read. Any thread. */
bool mm_queue_full(struct mm_queue *queue);

/* Jobs that are waiting or running, begun tasks among the latter. Any thread. */
size_t mm_queue_jobs(struct mm_queue *queue);

/* Jobs that are waiting, and the bytes of their operands and results. Any thread. */
void mm_queue_waiting(struct mm_queue *queue, size_t *jobs, size_t *bytes);

/* How long the jobs that wait and run now will keep the busiest device, by the best rates that were measured
 * of their variants and of copies; those of which nothing is known yet, and tasks, count as 0. Any thread. */
uint64_t mm_queue_wait_ns(struct mm_queue *queue);

/* Refuses new jobs from now on with MM_STOPPING; accepted ones go on. Any thread. */
void mm_queue_stop(struct mm_queue *queue);

/* Ends every waiting job with this status and sentence, and every begun task with MM_STOPPING after the slice
 * at hand (after mm_queue_stop, when its time is up). Any thread. */
void mm_queue_abort(struct mm_queue *queue, enum mm_status status, const char *detail);

/* Stops, runs all accepted products to their end, ends tasks with MM_STOPPING, joins the workers, frees. NULL
 * is allowed. */
void mm_queue_close(struct mm_queue *queue);

#ifdef __cplusplus
}
#endif
#endif
