/* A job: one product, or one task, on its way through a queue and a device. Its owner embeds it (in a
 * connection's state, say), so that queueing allocates nothing. */
#pragma once

#include "gpu/clock.h"
#include "gpu/product/path.h"
#include "gpu/queue/pieces.h"
#include "gpu/matrix/window.h"
#include "gpu/plan/plan.h"
#include "gpu/matrix/source.h"
#include "gpu/check/reduce.h"
#include "gpu/check/verification.h"

struct mm_backend;
struct mm_device;
struct mm_replica;

/* What a slice of a task leaves: more to do in a later one, or nothing. */
enum mm_task_state { MM_TASK_AGAIN, MM_TASK_OVER };

/* Work of another kind than a product (gpu/lab/benchmark.h). A task is long, so it is done in slices,
 * between which products run. Its owner embeds it in its own state. */
struct mm_task {
    /* Its slices may run beside products, and beside other tasks that share; else it has the device alone. */
    bool shares;

    /* Does one slice, of about MM_TASK_SLICE_NS and at least one step. If `cancelled`, it releases what it
     * holds of the device and returns MM_TASK_OVER; *error, which says why, stays as it is. Else a failure
     * of the whole task goes into *error, with MM_TASK_OVER. On the thread of the device's worker, with no
     * lock held. If that thread hangs, another one cancels with a device of NULL: what the task holds of it
     * is lost. */
    enum mm_task_state (*run)(struct mm_task *task, struct mm_device *device, bool cancelled,
                              struct mm_error *error);
};

#define MM_TASK_SLICE_NS UINT64_C(50000000)

/* Jobs that one launch may do together. */
enum { MM_BATCH_MAX = 64 };

/* Ownership: the caller's until mm_queue_submit returns MM_OK; then the queue's until it calls done with a
 * list that has the job, from a worker's thread, mm_queue_abort or mm_queue_find_hung, with no lock held;
 * then the caller's again. Meanwhile the caller keeps the matrices of `product` alive and reads nothing of
 * the job. */
struct mm_job {
    /* Set by the caller. */
    struct mm_product product; /* host memory; conforming; m = 0, n = 0, k = 0 allowed. Not on the host:
                                  the data of C is NULL if no one wants it, and it is not copied */
    struct mm_source a_source; /* what the operands are made from, which are dense then: on the host in
                                  their memory, else in the device's own, and their data may be NULL. Or the
                                  stored values that they are, which the caller holds */
    struct mm_source b_source;
    const struct mm_window
        *part;            /* the part of C that is wanted, and reduced: in the end it lies dense at the data
                           of C, where on the host all of C is computed first; NULL: all of C */
    bool keeps_c;         /* on the host: all of C is wanted as well: the part stays where it lies in it */
    bool stores_c;        /* not on the host: C stays in the device's memory as well, as `stored_c` */
    bool reduces;         /* the device is to reduce the part, which is not NULL, as well */
    struct mm_task *task; /* done in place of the product, which then tells the load alone, by its
                             m, n and k; NULL: the product */
    const struct mm_backend *backend; /* whose table `variant` stands in */
    const struct mm_variant *variant; /* as chosen; may be the row `auto`; NULL, of a task alone: none */
    uint64_t deadline_ns; /* mm_clock_ns() past which it is not started, nor a slice or a piece; 0: none */
    bool is_locked;       /* all matrices with data, except stored ones, lie in pages that are locked
                             (gpu/memory/pages.h) */
    bool verify;          /* the device is to check the product as well; of MM_MATMUL alone */
    void *verify_memory;  /* on a backend of the host, what it takes for that: mm_verify_bytes */
    void (*done)(struct mm_job *first); /* that it is over, and all others of the list by `next`, which have
                                           the same done: each may be gone once it was looked at */
    void *owner;                        /* the caller's own */

    /* Set by the queue and the backend; readable from done on. */
    struct mm_error error; /* status MM_OK where the result is good; else C is undefined */
    struct mm_plan plan;   /* how its device computes it; of an empty product the variant alone is set, of a
                              task nothing */
    const struct mm_variant *ran;    /* the plan's variant, once a device began; NULL before */
    const struct mm_device *device;  /* NULL where no device took it up */
    uint64_t span_ns[MM_SPAN_COUNT]; /* queue, upload, kernel, download are written here */
    unsigned batched;                /* jobs in the launch that it was part of; 1: alone */
    double launch_work;              /* of all these, mm_job_work; set where there are several */
    size_t uploaded_bytes; /* copied to the device's own memory, and back; 0 where that is the host's */
    size_t downloaded_bytes;
    struct mm_verification verification; /* done where `verify` is set and the result is good */
    struct mm_replica *stored_c;         /* C, where `stores_c` is set, a device computed it and it is not
                                            empty; else NULL. The caller's, whatever the error: it releases
                                            it, or gives it to the store */
    struct mm_reduction reduction;       /* of the part, where `reduces` is set and the result is good */
    struct mm_pieces pieces;             /* those of a product that is cut */
    bool more;           /* its begin and end did one piece alone: they are to be called again, in any lane */
    struct mm_path path; /* by which the result came about; MM_PATH_NONE, unless the backend tells it by its
                            end */

    /* The queue's own while it owns the job; `next` is still set at done. */
    struct mm_job *next;
    struct mm_job *previous;
    void *worker;       /* chosen for it; NULL: none can run it */
    bool waits;         /* in that worker's list */
    uint64_t queued_ns; /* when it was prepared; later by the time that its pieces took */
    uint64_t seen_ns; /* when it was first seen running; 0: not yet, or not since the device last showed that
                         it goes on with it; __atomic access while it runs */
    size_t queued_bytes;
    double expected_ns; /* that it will keep its device busy */
    bool alone;         /* nothing runs beside it on its device: a task that does not share, or a plan that
                           fills the device */
    bool begun;         /* a slice of the task, or a piece of the product, was done; a task does not count as
                           waiting any more */
    bool is_cancelled;  /* its caller cancelled it when it could not be taken back; __atomic access */
};

/* Plans the job for a device: sets `plan` and `alone`. A task and an empty product get no plan.
 * MM_UNSUPPORTED if the variant does not do this shape. Any thread that owns the job, with no lock held. */
enum mm_status mm_job_plan(struct mm_job *job, struct mm_device *device, struct mm_error *error);

/* Calls done for the jobs of a list by `next`: once for those that stand together and have the same. */
void mm_job_list_done(struct mm_job *first);

/* Bytes that are copied to the device's own memory and back: of the operands in host memory, and of C if it
 * is wanted. Stored operands do not count: most are there after the first job that uses them. */
size_t mm_job_copied_bytes(const struct mm_job *job);

/* Bytes of the elements of C that are wanted. */
size_t mm_job_returned_bytes(const struct mm_job *job);

/* Bytes of the operands that the backend makes, which may be NULL still; of a host's also those that it
 * fetches from another device's memory. */
size_t mm_job_made_bytes(const struct mm_job *job);

/* Bytes of stored operands that do not lie in this device's memory. Any thread that holds the values. */
size_t mm_job_absent_bytes(const struct mm_job *job, const struct mm_device *device);

/* The work of a job whose variant was chosen (`ran`): 2·m·n·k operations; of a transposition the bytes of
 * A and of C. */
double mm_job_work(const struct mm_job *job);

/* That work per nanosecond of kernel time: GFLOP/s, or GB/s of a transposition; of a shared launch, that
 * of all its jobs. 0 if nothing ran. */
double mm_job_rate(const struct mm_job *job);
