/* A job: a product or transposition that waits in the queue, or that a device computes. */
#pragma once

#include "gpu/matrix/source.h"
#include "gpu/matrix/window.h"
#include "gpu/plan/plan.h"
#include "gpu/queue/outcome.h"
#include "gpu/queue/progress.h"
#include "gpu/queue/work.h"
#include "gpu/store/stored.h"

struct mm_device_copy;
struct mm_shares;

/* How many devices may compute a product, besides a number: all that there are, or as many as pay. */
enum { MM_DEVICES_AUTO = 0 };
#define MM_DEVICES_ALL UINT32_MAX

/* Products that one launch may compute together. */
enum { MM_BATCH_MAX = 64 };

struct mm_job {
    struct mm_work work; /* first member; its kind is MM_WORK_PRODUCT */

    /* The owner sets these, and keeps the matrices alive while the queue has the job. */

    /* The matrices, in host memory. m, n and k may be 0. If C has no data, C is not copied from the GPU to
     * the host. */
    struct mm_product product;

    /* Where the operands come from. The owner holds references to stored operands. Generated operands are
     * dense. The data of a generated operand may be NULL on a GPU, but not on a host device. */
    struct mm_source sources[MM_OPERANDS_MAX];

    const struct mm_variant *variant; /* a variant of work.backend; may be `auto` */

    /* The wanted part of C, or NULL for all of C. The result has no gaps between rows. */
    const struct mm_window *part;

    /* Memory for shares (gpu/queue/share.h), mm_shares_bytes(devices) long. NULL if `devices` is 1. */
    struct mm_shares *shares;
    unsigned devices; /* the most devices that may compute the product */

    bool weighs_devices;     /* several devices compute the product only if they are idle and it pays */
    bool keeps_c;            /* for a host device: C's data gets all of C, and not only the part */
    bool stores_c;           /* for a GPU: C also stays in device memory, as `stored_c` */
    bool reduces;            /* the device reduces the part; `part` must not be NULL */
    bool verify;             /* the device checks the product; only for MM_MATMUL */
    bool is_locked;          /* all matrices that have data and are not stored are in locked pages */
    size_t device_bytes_max; /* a GPU runs the job in tiles if the job needs more; 0: no limit; set by
                              * mm_engine_check */
    void *verify_memory;     /* for a check on a host device; mm_verify_bytes long */

    /* The owner may read this after `done` was called. If work.error is not MM_OK, C is undefined. */
    struct mm_outcome outcome;

    /* C in device memory if stores_c, in parts if several devices computed the product. The owner releases
     * this copy or passes it to the store. The copy can exist even after an error. NULL if there is none. */
    struct mm_device_copy *stored_c;

    /* The queue and the backend use these. */
    struct mm_plan plan; /* if C is empty, only plan.variant is set */
    struct mm_progress progress;
    bool more; /* for a host device: more parts of the product must run, in any lane */
};

/* Returns the job whose first member is this work, or NULL if the work is a task. */
static inline struct mm_job *mm_work_job(struct mm_work *work) {
    return work->kind == MM_WORK_PRODUCT ? (struct mm_job *)work : NULL;
}

/* Returns the job's product as a GPU computes it. The matrices have no data. They are dense, except parts of
 * stored matrices, because a device copy contains the whole matrix. */
struct mm_product mm_job_device_product(const struct mm_job *job);

/* Sets the address of an operand of mm_job_device_product. `data` is the operand's memory, or the device copy
 * of the whole stored matrix. */
void mm_job_place_operand(const struct mm_job *job, struct mm_product *product, enum mm_operand_index index,
                          void *data);

/* Whether the wanted part, if there is one, is a part of C as one m×n matrix. The part of a vector is not,
 * nor that of a stack which is computed as one product. */
static inline bool mm_job_part_is_of_c(const struct mm_job *job) {
    return job->part == NULL || (job->part->count == 1 && job->part->all_rows == job->product.m &&
                                 job->part->all_cols == job->product.n);
}

/* Whether parts of C must still be computed. */
static inline bool mm_job_computes(const struct mm_job *job) {
    return job->progress.item < mm_product_count(&job->product);
}

/* Whether products of the stack must still be checked. */
static inline bool mm_job_checks(const struct mm_job *job) {
    return job->verify && job->progress.checked < mm_product_count(&job->product);
}

/* Clears the result of an earlier run, and sets work.bytes. A product with an empty C counts as checked. */
void mm_job_clear(struct mm_job *job);

/* Plans the job for a device: sets `plan`, and the members that mm_work_plan sets. MM_UNSUPPORTED if the
 * device cannot run the job. Only the thread that owns the job calls this, with no lock held. */
enum mm_status mm_job_plan(struct mm_job *job, struct mm_device *device, struct mm_error *error);

/* Records in the job and its outcome that the device begins the job. The job has a plan. */
void mm_job_begin(struct mm_job *job, const struct mm_device *device);

/* Returns the bytes that a GPU copies from and to the host: operands of the request, and the wanted part of
 * C. Stored operands do not count, because most of them already have a device copy. */
size_t mm_job_copied_bytes(const struct mm_job *job);

/* Returns the bytes of the wanted part of C, or 0 if C has no data. */
size_t mm_job_returned_bytes(const struct mm_job *job);

/* Returns the bytes of operands that the backend generates. For a host device, stored operands that are only
 * in the memory of another device count too. The operands' data may be NULL. */
size_t mm_job_generated_bytes(const struct mm_job *job);

/* Returns what the job reads of a stored operand. A share that reads whole rows reads only these. */
struct mm_stored_range mm_job_reads(const struct mm_job *job, enum mm_operand_index index);

/* Returns how many bytes the job reads of this operand, if it is stored, that are not on this device. */
size_t mm_job_absent_bytes_of(const struct mm_job *job, enum mm_operand_index index,
                              const struct mm_device *device);

/* Returns how many bytes the job reads of stored operands that are not on this device. Any thread. */
size_t mm_job_absent_bytes(const struct mm_job *job, const struct mm_device *device);

/* Whether a GPU copies B in panels of columns, and computes a panel of C while it copies the next panel of B
 * (gpu/cuda/panels.h). The first panel has about 1/MM_FIRST_PANEL of the columns. Any thread. */
enum { MM_FIRST_PANEL = 8 };
bool mm_job_copies_in_panels(const struct mm_job *job, const struct mm_device *device);

/* Returns the 2·m·n·k operations of a product, or the bytes of A and C of a transposition. The caller has set
 * job->outcome.ran. */
double mm_job_flops_or_bytes(const struct mm_job *job);
