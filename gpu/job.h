/* A job: one product, or one task, on its way through a queue and a device. Its owner embeds it (in a
 * connection's state, say), so that queueing allocates nothing. */
#ifndef MM_GPU_JOB_H
#define MM_GPU_JOB_H

#include "gpu/clock.h"
#include "gpu/path.h"
#include "gpu/variant.h"
#include "gpu/verification.h"

#ifdef __cplusplus
extern "C" {
#endif

struct mm_backend;
struct mm_device;

/* What a slice of a task leaves: more to do in a later one, or nothing. */
enum mm_task_state { MM_TASK_AGAIN, MM_TASK_OVER };

/* Work of another kind than a product (gpu/benchmark.h). A task is long, and so is done in slices, between
 * which the products of others get their turn. Its owner embeds it in what it needs to know. */
struct mm_task {
    /* Does one slice, of about MM_TASK_SLICE_NS and of at least one step, with the device to itself: no
     * product is begun there meanwhile. Where `cancelled` is set it gives back what it holds of the device
     * and returns MM_TASK_OVER; it is not called again then, and *error, which says why, is left as it is.
     * Else a failure of the whole task goes into *error, with MM_TASK_OVER. On the thread of the device's
     * worker, with no lock held. */
    enum mm_task_state (*run)(struct mm_task *task, struct mm_device *device, bool cancelled,
                              struct mm_error *error);
};

#define MM_TASK_SLICE_NS UINT64_C(50000000)

/* Jobs that one launch may do together. */
enum { MM_BATCH_MAX = 64 };

/* Who owns it when: the caller until mm_queue_submit returns MM_OK; then the queue until it calls done with a
 * list that has the job, from a worker's thread or from mm_queue_abort, with no lock held; then the caller
 * again. Meanwhile the caller keeps the matrices of `product` alive and reads nothing of the job. */
struct mm_job {
    /* Set by the caller. */
    struct mm_product product;        /* host memory; conforming; m = 0, n = 0, k = 0 allowed */
    struct mm_task *task;             /* done in place of the product, which then tells the load alone, by its
                                         m, n and k; NULL: the product */
    const struct mm_backend *backend; /* whose table `variant` stands in */
    const struct mm_variant *variant; /* as chosen; may be the row `auto`; NULL, of a task alone: none */
    uint64_t deadline_ns;             /* mm_clock_ns() past which it is not started, nor a slice; 0: none */
    bool is_locked;                   /* all three matrices lie in pages that are locked (gpu/pages.h) */
    bool verify;                      /* the device is to check the product as well; of MM_MATMUL alone */
    void *verify_memory;              /* on a backend of the host, what it takes for that: mm_verify_bytes */
    void (*done)(struct mm_job *first); /* that it is over, and all others of the list by `next`, which have
                                           the same done: each may be gone once it was looked at */
    void *owner;                        /* the caller's own */

    /* Set by the queue and the backend; readable from done on. */
    struct mm_error error;           /* status MM_OK where the result is good; else C is undefined */
    const struct mm_variant *ran;    /* never `auto`; NULL where nothing was chosen */
    const struct mm_device *device;  /* NULL where no device took it up */
    uint64_t span_ns[MM_SPAN_COUNT]; /* queue, upload, kernel, download are written here */
    unsigned batched;                /* jobs in the launch that it was part of; 1: alone */
    double launch_work;              /* of all these, mm_job_work; set where there are several */
    size_t uploaded_bytes; /* copied to the device's own memory, and back; 0 where that is the host's */
    size_t downloaded_bytes;
    struct mm_verification verification; /* done where `verify` is set and the result is good */
    struct mm_path path; /* by which the result came about; MM_PATH_NONE, unless the backend tells it by its
                            end */

    /* The queue's own while it owns the job; `next` is still set at done. */
    struct mm_job *next;
    struct mm_job *previous;
    void *worker; /* in whose list it waits; NULL: in none */
    uint64_t queued_ns;
    uint64_t seen_ns; /* when it was first seen running; 0: not yet */
    size_t queued_bytes;
    double expected_ns; /* that it will keep its device busy */
    uint64_t batch_key; /* on that device, of the variant that it resolves to; 0: goes alone */
    bool alone;         /* nothing runs beside it on its device */
    bool begun;         /* a task of which a slice was done; it does not count as waiting any more */
    bool given_up;      /* a task that its caller cancelled after that */
};

/* Calls done for the jobs of a list by `next`: once for those that stand together and have the same. */
void mm_job_list_done(struct mm_job *first);

/* What the job has its device do, of a variant that was chosen (`ran`): 2·m·n·k floating-point operations; of
 * a transposition the bytes of A and of C, each read or written once. */
double mm_job_work(const struct mm_job *job);

/* That work per nanosecond of kernel time, which is GFLOP/s, or GB/s of a transposition; of a shared launch,
 * that of all its jobs. 0 where nothing ran. */
double mm_job_rate(const struct mm_job *job);

#ifdef __cplusplus
}
#endif
#endif
