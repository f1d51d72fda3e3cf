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
enum { MM_BATCH_MAX = 64 };

struct mm_job {
    struct mm_work work; /* first; its kind is MM_WORK_PRODUCT */

    /* What is to be computed. Set by the owner, who keeps the matrices alive while the queue has the job. */
    struct mm_product product; /* in host memory and conforming; m, n and k may be 0. On a GPU the data of C
                                  may be NULL: then C is not copied to the host */
    struct mm_source sources[MM_OPERANDS_MAX]; /* where the operands come from. Generated operands are dense:
                                                  the host generates them at the product's data, a GPU in its
                                                  own memory, and then their data may be NULL. The owner holds
                                                  stored operands */
    const struct mm_variant *variant;          /* a row of work.backend; may be `auto` */
    const struct mm_window *part; /* the wanted part of C, which is reduced. At the end it lies dense at the
                                     data of C. The host computes all of C there first. NULL: all of C */
    bool keeps_c;                 /* on the host: all of C is wanted too, so the part stays in its place */
    bool stores_c;                /* on a GPU: C stays in device memory too, as `stored_c` */
    bool reduces;                 /* the part, which is not NULL, is reduced on the device */
    bool verify;                  /* the product, a MM_MATMUL, is checked on the device */
    bool is_locked;               /* all matrices with data, except stored ones, lie in locked pages
                                     (gpu/memory/pages.h) */
    void *verify_memory;          /* mm_verify_bytes for the check on the host */

    /* What came of it, to be read from `done` on. C is undefined unless work.error is MM_OK. */
    struct mm_outcome outcome;
    struct mm_device_copy *stored_c; /* C in device memory if stores_c, even after an error. The owner
                                    releases it or gives it to the store. NULL: there is none */

    /* The queue's and the backend's. */
    struct mm_plan plan; /* how its device computes it; of an empty product only the variant is set */
    struct mm_progress progress;
    bool more; /* `end` has ended one part on the host, and another one follows, in any lane */
};

/* The job that begins with this work; NULL: it is a task. */
static inline struct mm_job *mm_work_job(struct mm_work *work) {
    return work->kind == MM_WORK_PRODUCT ? (struct mm_job *)work : NULL;
}

/* Whether a part of C is left to be computed, or a product to be checked. */
static inline bool mm_job_computes(const struct mm_job *job) {
    return job->progress.item < mm_product_count(&job->product);
}
static inline bool mm_job_checks(const struct mm_job *job) {
    return job->verify && job->progress.checked < mm_product_count(&job->product);
}

/* Clears what came of an earlier run, and sets work.bytes. Nothing is wrong in an empty product, which no
 * backend gets. */
void mm_job_clear(struct mm_job *job);

/* As mm_work_plan: also sets `plan`. An empty product gets no more than a variant. */
enum mm_status mm_job_plan(struct mm_job *job, struct mm_device *device, struct mm_error *error);

/* Notes that the device begins the planned job. */
void mm_job_begin(struct mm_job *job, const struct mm_device *device);

/* Bytes that are copied to a GPU's own memory and back: operands in host memory, and C if it is wanted.
 * Stored operands do not count, because most are there after the first job that uses them. */
size_t mm_job_copied_bytes(const struct mm_job *job);

/* Whether all operands lie in host memory before the job begins, and none is stored or generated. */
bool mm_job_is_inline(const struct mm_job *job);

/* Bytes of the elements of C that are wanted. */
size_t mm_job_returned_bytes(const struct mm_job *job);

/* Bytes of the operands that the backend generates. The host also fetches operands from device memory, and
 * they count. The operands' data may still be NULL. */
size_t mm_job_generated_bytes(const struct mm_job *job);

/* Bytes of stored operands that do not lie in this device's memory. Any thread that holds the values. */
size_t mm_job_absent_bytes(const struct mm_job *job, const struct mm_device *device);

/* The work of a job that a device began: 2·m·n·k operations, or of a transposition the bytes of A and of C.
 */
double mm_job_flops_or_bytes(const struct mm_job *job);
