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
    struct mm_work work; /* first member; its kind is MM_WORK_PRODUCT */

    /* The owner sets these, and keeps the matrices alive while the queue has the job. */

    /* The matrices are in host memory. m, n and k may be 0. If C has no data, a GPU does not copy C to the
     * host. */
    struct mm_product product;

    /* Where the operands come from. The owner holds references to stored operands. Generated operands are
     * dense. The host writes them to the product's data. A GPU needs no data for them. */
    struct mm_source sources[MM_OPERANDS_MAX];

    const struct mm_variant *variant; /* a variant of work.backend; may be `auto` */

    /* The wanted part of C, or NULL for all of C. The result is dense at C's data. */
    const struct mm_window *part;

    bool keeps_c;        /* on the host: all of C is wanted, so the part stays in its place */
    bool stores_c;       /* on a GPU: C also stays in device memory, as `stored_c` */
    bool reduces;        /* the device reduces the part, which must not be NULL */
    bool verify;         /* the device checks the product; only for MM_MATMUL */
    bool is_locked;      /* all matrices with data, except stored ones, are in locked pages */
    void *verify_memory; /* memory of mm_verify_bytes for a check on the host */

    /* The owner may read the result once `done` is called. C is undefined unless work.error is MM_OK. */
    struct mm_outcome outcome;

    /* C in device memory if stores_c, even after an error. The owner releases it or passes it to the
     * store. NULL if none was acquired. */
    struct mm_device_copy *stored_c;

    /* The queue and the backend use these. */
    struct mm_plan plan; /* if C is empty, only the variant is set */
    struct mm_progress progress;
    bool more; /* on the host: another part follows, in any lane */
};

/* Returns the job whose first member is this work, or NULL if the work is a task. */
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

/* Clears the result of an earlier run, and sets work.bytes. The check of an empty product counts as done,
 * because no backend gets the product. */
void mm_job_clear(struct mm_job *job);

/* Plans the job for a device: sets `plan`, and what mm_work_plan sets. If C is empty, sets only the plan's
 * variant. MM_UNSUPPORTED if the device cannot run the job. Any thread that owns the job, with no lock
 * held. */
enum mm_status mm_job_plan(struct mm_job *job, struct mm_device *device, struct mm_error *error);

/* Notes that the device begins the planned job. */
void mm_job_begin(struct mm_job *job, const struct mm_device *device);

/* Returns the bytes that are copied between the host and a GPU: operands in host memory, and C if it is
 * wanted. Stored operands do not count, because most already have a device copy. */
size_t mm_job_copied_bytes(const struct mm_job *job);

/* Whether all operands come with the request, so none is stored or generated. */
bool mm_job_is_inline(const struct mm_job *job);

/* Returns the bytes of C that are wanted; 0 if C has no data. */
size_t mm_job_returned_bytes(const struct mm_job *job);

/* Returns the bytes of operands that the backend generates. On the host, stored operands count too if they
 * must be fetched from a device. The operands' data may be NULL. */
size_t mm_job_generated_bytes(const struct mm_job *job);

/* Returns the bytes of stored operands that have no copy on this device. Any thread. */
size_t mm_job_absent_bytes(const struct mm_job *job, const struct mm_device *device);

/* Returns the 2·m·n·k operations of a product, or the bytes of A and C of a transposition. Call this after
 * mm_job_begin. */
double mm_job_flops_or_bytes(const struct mm_job *job);
