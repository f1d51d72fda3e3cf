/* A job: a product on its way through the queue and a device. */
#pragma once

#include "gpu/matrix/source.h"
#include "gpu/matrix/window.h"
#include "gpu/plan/plan.h"
#include "gpu/queue/outcome.h"
#include "gpu/queue/progress.h"
#include "gpu/queue/work.h"

struct mm_device_copy;

/* Products that one launch may compute together. */
enum { MM_BATCH_MAX = 46 };

struct mm_job {
    struct mm_work work; /* first; its kind is MM_WORK_PRODUCT */

    /* What to compute. The owner sets it, and keeps the matrices alive while the queue has the job. */
    struct mm_product product; /* conforming, in host memory; m, n and k may be 0. On a GPU the data of C may
                                  be NULL: then C is not copied to the host */
    struct mm_source sources[MM_OPERANDS_MAX]; /* where the operands come from. Generated operands are dense.
                                                  The host writes them to the product's data, a GPU to its own
                                                  memory, and then their data may be NULL. The owner holds
                                                  references to stored operands */
    const struct mm_variant *variant;          /* a row of work.backend; may be `auto` */
    const struct mm_window *part; /* the wanted part of C. At the end it lies dense at the data of C; the
                                     host computes all of C there first. NULL: all of C */
    bool keeps_c;                 /* on the host: all of C is wanted too, so the part stays in its place */
    bool stores_c;                /* on a GPU: C stays in device memory too, as `stored_c` */
    bool reduces;                 /* the device reduces the part, which is not NULL then */
    bool verify;                  /* the device checks the product, which is a MM_MATMUL then */
    bool is_locked;               /* all matrices with data, except stored ones, lie in locked pages
                                     (gpu/memory/pages.h) */
    void *verify_memory;          /* mm_verify_bytes for the check on the host */

    /* The result, which the owner reads from `done` on. C is undefined unless work.error is MM_OK. */
    struct mm_outcome outcome;
    struct mm_device_copy *stored_c; /* C in device memory if stores_c, even after an error. The owner
                                        releases it or passes it to the store. NULL: none was acquired */

    /* The queue and the backend use these. */
    struct mm_plan plan; /* for the job's device; for an empty product only the variant is set */
    struct mm_progress progress;
    bool more; /* on the host: `end` has ended one part, and another part follows, in any lane */
};

/* The job that begins with this work; NULL if the work is a task. */
static inline struct mm_job *mm_work_job(struct mm_work *work) {
    return work->kind == MM_WORK_PRODUCT ? (struct mm_job *)work : NULL;
}

/* Whether a part of C is left to compute. */
static inline bool mm_job_computes(const struct mm_job *job) {
    return job->progress.item < mm_product_count(&job->product);
}

/* Whether a product is left to check. */
static inline bool mm_job_checks(const struct mm_job *job) {
    return job->verify && job->progress.checked < mm_product_count(&job->product);
}

/* Clears the result of an earlier run, and sets work.bytes. If the product is empty, no backend gets it, so
 * its check counts as done. */
void mm_job_clear(struct mm_job *job);

/* Plans the job for a device: sets `plan`, and what mm_work_plan sets. For an empty product `plan` has only
 * the variant. MM_UNSUPPORTED if the device cannot do the job. Any thread that has the job, with no lock
 * held. */
enum mm_status mm_job_plan(struct mm_job *job, struct mm_device *device, struct mm_error *error);

/* Notes that the device begins the planned job. */
void mm_job_begin(struct mm_job *job, const struct mm_device *device);

/* Bytes that are copied to a GPU's memory and back: operands in host memory, and C if it is wanted. Stored
 * operands do not count, because most have a device copy after the first job that uses them. */
size_t mm_job_copied_bytes(const struct mm_job *job);

/* Whether all operands lie in host memory before the job begins, and none is stored or generated. */
bool mm_job_is_inline(const struct mm_job *job);

/* Bytes of the elements of C that are wanted. */
size_t mm_job_returned_bytes(const struct mm_job *job);

/* Bytes of the operands that the backend generates; on the host also those of operands in device memory,
 * which it fetches. The operands' data may still be NULL. */
size_t mm_job_generated_bytes(const struct mm_job *job);

/* Bytes of stored operands that have no copy on this device. Any thread that holds the values. */
size_t mm_job_absent_bytes(const struct mm_job *job, const struct mm_device *device);

/* What a device does for a job that it began: the 2·m·n·k operations of a product, or the bytes of A and C of
 * a transposition. */
double mm_job_flops_or_bytes(const struct mm_job *job);
