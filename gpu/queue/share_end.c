/* Cancels and ends shares, and merges what the devices did. `done` of a share moves a share whose device
 * failed to another device, once. The thread that ends the last share merges the outcomes, and calls the
 * product's `done`. If a share fails for good, the other shares are cancelled. */
#include "gpu/check/verify.h"
#include "gpu/queue/share.h"
#include "gpu/queue/worker.h"
#include "gpu/store/stored.h"

unsigned mm_work_units(struct mm_work *work) {
    const struct mm_job *job = mm_work_job(work);
    return job != NULL && job->shares != NULL && job->shares->count > 0 ? job->shares->count : 1;
}

struct mm_work *mm_work_unit(struct mm_work *work, unsigned index) {
    return mm_work_units(work) > 1 ? &mm_work_job(work)->shares->of[index].job.work : work;
}

static void release_c(struct mm_job *share) {
    mm_device_copy_release(share->stored_c);
    share->stored_c = NULL;
}

void mm_work_release_parts(struct mm_work *work) {
    const unsigned count = mm_work_units(work);
    for (unsigned index = 0; index < count && count > 1; index++)
        release_c(mm_work_job(mm_work_unit(work, index)));
}

bool mm_work_cancel_units(struct mm_work *work) {
    const unsigned count = mm_work_units(work);
    unsigned removed = 0;
    for (unsigned index = 0; index < count; index++) {
        struct mm_work *unit = mm_work_unit(work, index);
        const bool waits = unit->state == MM_WORK_WAITING;
        removed += waits;
        __atomic_store_n(&unit->is_cancelled, !waits, __ATOMIC_RELAXED);
        if (waits)
            mm_worker_remove(unit->worker, unit);
        else if (unit->state == MM_WORK_PAUSED)
            mm_worker_prefer(unit->worker, unit); /* because cancelled work ends quickly and frees memory */
    }
    if (count == 1 || removed == 0)
        return removed > 0;
    struct mm_shares *shares = mm_work_job(work)->shares;
    if (shares->error.status == MM_OK)
        mm_fail(&shares->error, MM_STOPPING, "the job was cancelled before its end");
    return __atomic_sub_fetch(&shares->left, removed, __ATOMIC_ACQ_REL) == 0;
}

/* Runs a share that is over once more, on the least loaded device. Returns false, with the work's error
 * untouched, if no device can run it. */
static bool run_again(struct mm_share *share, struct mm_queue *queue) {
    struct mm_work *work = &share->job.work;
    const struct mm_error error = work->error;
    const size_t bytes = work->bytes;
    release_c(&share->job);
    mm_job_clear(&share->job);
    work->bytes = bytes;
    work->device = NULL;
    work->error = (struct mm_error){.status = MM_OK};
    if (mm_worker_pass_on(queue, work, NULL))
        return true;
    work->error = error;
    return false;
}

/* Moves a share whose device failed to another device. Returns false if the share must end. */
static bool moves(struct mm_share *share, struct mm_queue *queue) {
    const enum mm_status status = share->job.work.error.status;
    if ((status != MM_DEVICE_FAILED && status != MM_NOT_READY) || share->has_moved ||
        mm_work_is_cancelled(&share->job.work))
        return false;
    share->has_moved = true;
    return run_again(share, queue);
}

/* Records the first error and its device, and cancels the other shares. The queue does not have this share.
 */
static void fail(struct mm_shares *shares, const struct mm_work *share) {
    struct mm_work *whole = &shares->whole->work;
    pthread_mutex_lock(&shares->queue->mutex);
    if (shares->error.status == MM_OK) {
        shares->error = share->error;
        whole->device = share->device;
        (void)mm_work_cancel_units(whole);
    }
    pthread_mutex_unlock(&shares->queue->mutex);
}

static void merge_verification(struct mm_verification *into, const struct mm_job *share) {
    struct mm_verification rows = share->outcome.verification;
    rows.row += share->product.whole.row;
    if (mm_dtype_is_float(share->product.a.dtype))
        mm_verify_merge(into, &rows);
    else
        mm_verify_merge_words(into, &rows);
    into->took_ns = rows.took_ns > into->took_ns ? rows.took_ns : into->took_ns;
}

/* Merges the checks. Several shares check a row of C. The row counts as checked if all of them could. */
static struct mm_verification merge_verifications(const struct mm_shares *shares) {
    struct mm_verification all = {.is_done = true, .seed = shares->of[0].job.outcome.verification.seed};
    size_t unjudged = 0;
    for (unsigned index = 0; index < shares->count; index += shares->cols) {
        size_t most = 0;
        for (unsigned col = 0; col < shares->cols; col++) {
            const struct mm_job *share = &shares->of[index + col].job;
            merge_verification(&all, share);
            most = mm_size_max(most, share->outcome.verification.rows_unjudged);
        }
        unjudged += most;
    }
    all.rows_unjudged = unjudged;
    all.rows_checked = shares->whole->product.m - unjudged;
    return all;
}

/* Whether an earlier share ran on the device of this share. */
static bool has_seen_device(const struct mm_shares *shares, unsigned index) {
    bool has_seen = false;
    for (unsigned earlier = 0; earlier < index; earlier++)
        has_seen = has_seen || shares->of[earlier].job.work.device == shares->of[index].job.work.device;
    return has_seen;
}

/* Makes one copy of the parts of C. The shares are in the order of the rows. */
static void join_parts(struct mm_shares *shares) {
    struct mm_device_copy **end = &shares->whole->stored_c;
    for (unsigned index = 0; index < shares->count; index++) {
        struct mm_job *share = &shares->of[index].job;
        share->stored_c->first =
            share->product.whole.row * share->product.n * mm_dtype_bytes(share->product.c.dtype);
        *end = share->stored_c;
        end = &share->stored_c->next_part;
        share->stored_c = NULL;
    }
}

/* Merges what the shares did. Spans are those of the slowest share. */
static void merge(struct mm_shares *shares) {
    struct mm_job *whole = shares->whole;
    struct mm_outcome *outcome = &whole->outcome;
    mm_job_begin(whole, shares->of[0].job.work.device);
    if (whole->verify)
        outcome->verification = merge_verifications(shares);
    if (whole->stores_c)
        join_parts(shares);
    outcome->devices = 0;
    for (unsigned index = 0; index < shares->count; index++) {
        const struct mm_outcome *one = &shares->of[index].job.outcome;
        for (unsigned span = 0; span < MM_SPAN_COUNT; span++)
            if (one->span_ns[span] > outcome->span_ns[span])
                outcome->span_ns[span] = one->span_ns[span];
        outcome->devices += !has_seen_device(shares, index);
        outcome->tiles += one->tiles;
        outcome->uploaded_bytes += one->uploaded_bytes;
        outcome->downloaded_bytes += one->downloaded_bytes;
        mm_path_merge(&outcome->path, &one->path);
        mm_reduce_merge(&outcome->reduction, &one->reduction);
    }
}

static void end_share(struct mm_work *work);

/* If a variant would have left the whole product to its slow path, computes all shares on the slow path. So
 * the bits of C do not depend on the shares. Each tile decides about the slow path by itself, so a share in
 * tiles decides nothing for others. Returns whether shares run again. */
static bool falls_back(struct mm_shares *shares) {
    const struct mm_variant *slow =
        mm_backend_variant(shares->whole->work.backend, MM_MATMUL, mm_path_name(MM_PATH_SIMT));
    struct mm_path all = {.kind = MM_PATH_NONE};
    struct mm_work *again = NULL, *next;
    unsigned count = 0;
    bool may_fall_back = slow != NULL;
    for (unsigned index = 0; index < shares->count; index++) {
        mm_path_merge(&all, &shares->of[index].job.outcome.path);
        may_fall_back = may_fall_back && shares->of[index].job.outcome.tiles == 0;
    }
    /* A share with a slow panel runs again, too, because its other panels may be fast ones. */
    for (unsigned index = 0; index < shares->count && may_fall_back && mm_path_falls_back(&all); index++) {
        struct mm_job *job = &shares->of[index].job;
        if (job->variant == slow)
            continue;
        job->variant = slow;
        job->work.next = again;
        again = &job->work;
        count++;
    }
    if (count > 0)
        shares->whole->outcome.path.kind = MM_PATH_SIMT;
    __atomic_store_n(&shares->left, count, __ATOMIC_RELEASE);
    for (struct mm_work *work = again; work != NULL; work = next) {
        next = work->next;
        if (!run_again((struct mm_share *)(void *)work, shares->queue)) {
            mm_fail(&work->error, MM_NOT_READY, "no device could compute the product again by %s",
                    slow->name);
            end_share(work);
        }
    }
    return count > 0;
}

/* Ends the product after its last share. */
static void finish(struct mm_shares *shares) {
    struct mm_work *work = &shares->whole->work;
    if (shares->error.status == MM_OK && falls_back(shares))
        return;
    if (shares->error.status == MM_OK)
        merge(shares);
    else
        mm_work_release_parts(work);
    work->error = shares->error;
    work->waited_ns = shares->of[0].job.work.waited_ns;
    work->next = NULL;
    work->done(work);
}

static void end_share(struct mm_work *work) {
    struct mm_shares *shares = work->owner;
    if (moves((struct mm_share *)(void *)work, shares->queue))
        return;
    if (work->error.status != MM_OK)
        fail(shares, work);
    if (__atomic_sub_fetch(&shares->left, 1, __ATOMIC_ACQ_REL) == 0)
        finish(shares);
}

void mm_share_done(struct mm_work *first) {
    struct mm_work *next;
    for (struct mm_work *work = first; work != NULL; work = next) {
        next = work->next;
        end_share(work);
    }
}
