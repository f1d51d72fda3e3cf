/* Divides a product among devices, and merges what the devices did. `done` of a share moves a share whose
 * device failed to another device, once. The thread that ends the last share merges the outcomes, and calls
 * the product's `done`. If a share fails for good, the other shares are cancelled. */
#include "gpu/queue/share.h"

#include "gpu/check/verify.h"
#include "gpu/queue/worker.h"

#include <math.h>

/* --- where C is cut ------------------------------------------------------------------------------ */

/* A row and a column of C belong to the unit with the number (row / cuts.rows, col / cuts.cols). */
struct grid {
    struct mm_cuts cuts;
    size_t row_units;
    size_t col_units;
    size_t rows; /* shares along the rows of C */
    size_t cols;
};

static struct mm_cuts cuts_of(const struct mm_job *job) {
    enum { UNIT_MIN = 32 };
    const struct mm_variant *variant = job->plan.variant;
    const size_t unit = variant->tile > UNIT_MIN ? variant->tile : UNIT_MIN;
    if (job->product.stack != NULL || variant->op != MM_MATMUL || variant->needs_whole)
        return (struct mm_cuts){.rows = 0};
    return variant->is_row_by_row ? (struct mm_cuts){.rows = unit, .cols = unit} : job->plan.cuts;
}

/* Returns the first unit of a share along one edge of C. */
static size_t first_unit(size_t units, size_t shares, size_t index) {
    return units * index / shares;
}

static bool fits(const struct grid *grid) {
    const size_t last_rows = grid->row_units - first_unit(grid->row_units, grid->rows, grid->rows - 1);
    const size_t last_cols = grid->col_units - first_unit(grid->col_units, grid->cols, grid->cols - 1);
    return grid->rows <= grid->row_units && grid->cols <= grid->col_units &&
           last_rows >= grid->cuts.tail_rows && last_cols >= grid->cuts.tail_cols;
}

/* Chooses the grid of `count` shares that needs the fewest rows of A and columns of B on a device. Returns
 * false if C cannot be cut like that. */
static bool choose_grid(const struct mm_product *product, size_t count, struct grid *grid) {
    double least = INFINITY;
    struct grid tried = *grid;
    for (tried.rows = count; tried.rows > 0; tried.rows--) {
        tried.cols = count / tried.rows;
        const double lines =
            (double)product->m / (double)tried.rows + (double)product->n / (double)tried.cols;
        if (count % tried.rows == 0 && lines < least && fits(&tried)) {
            *grid = tried;
            least = lines;
        }
    }
    return least < INFINITY;
}

/* --- which devices ------------------------------------------------------------------------------- */

/* Whether a device plans every product as `like` does. */
static bool plans_alike(const struct mm_device *device, const struct mm_device *like) {
    return device->backend == like->backend && device->compute_capability == like->compute_capability &&
           device->multiprocessors == like->multiprocessors &&
           device->shared_bytes_per_block_max == like->shared_bytes_per_block_max;
}

bool mm_share_can_move(const struct mm_job *job, const struct mm_device *device) {
    return job->product.whole.m == 0 || plans_alike(device, job->plan.device);
}

static double load_of(const struct mm_worker *worker) {
    double load;
    __atomic_load(&worker->load, &load, __ATOMIC_RELAXED);
    return load;
}

/* Finds the least loaded workers, beginning with the job's own worker. If the job weighs devices, all others
 * must be idle. Returns how many there are. */
static unsigned find_workers(struct mm_queue *queue, const struct mm_job *job,
                             struct mm_worker *found[MM_DEVICES_MAX]) {
    const struct mm_device *device = job->plan.device;
    unsigned count = 1;
    found[0] = job->work.worker;
    for (size_t index = 0; index < queue->worker_count; index++) {
        struct mm_worker *worker = &queue->workers[index];
        const double load = load_of(worker);
        if (worker == found[0] || !plans_alike(worker->device, device) ||
            mm_device_has_failed(worker->device) || (job->weighs_devices && load > 0.0))
            continue;
        unsigned at = count++;
        for (; at > 1 && load_of(found[at - 1]) > load; at--)
            found[at] = found[at - 1];
        found[at] = worker;
    }
    return count < job->devices ? count : job->devices;
}

/* --- the shares ---------------------------------------------------------------------------------- */

static void place_source(struct mm_job *share, const struct mm_job *whole, unsigned index) {
    const bool transposed[MM_OPERANDS_MAX] = {whole->product.transpose_a, whole->product.transpose_b,
                                              whole->product.transpose_addend, false};
    const struct mm_matrix *all = mm_product_operand(&whole->product, index);
    const struct mm_matrix *part = mm_product_operand(&share->product, index);
    const struct mm_whole *at = &share->product.whole;
    const size_t row = index == MM_OPERAND_A || index == MM_OPERAND_ADDEND ? at->row : 0;
    const size_t col = index == MM_OPERAND_A ? 0 : at->col;
    struct mm_source *source = &share->sources[index];
    *source = whole->sources[index];
    source->first = transposed[index] ? col * all->ld + row : row * all->ld + col;
    source->gap = all->cols - part->cols;
}

/* Restricts the wanted part of C to the share's block, which begins at (row, col) of C. */
static void place_part(struct mm_share *share, const struct mm_job *whole) {
    const struct mm_window *wanted = whole->part;
    struct mm_product *product = &share->job.product;
    const size_t row = product->whole.row, col = product->whole.col;
    const size_t top = row > wanted->row ? row : wanted->row;
    const size_t left = col > wanted->col ? col : wanted->col;
    const size_t bottom = mm_size_min(row + product->m, wanted->row + wanted->rows);
    const size_t right = mm_size_min(col + product->n, wanted->col + wanted->cols);
    const bool is_empty = bottom <= top || right <= left;
    const size_t down = top - wanted->row, along = left - wanted->col;
    share->part = (struct mm_window){.count = 1,
                                     .all_rows = product->m,
                                     .all_cols = product->n,
                                     .row = is_empty ? 0 : top - row,
                                     .rows = is_empty ? 0 : bottom - top,
                                     .col = is_empty ? 0 : left - col,
                                     .cols = is_empty ? 0 : right - left,
                                     .to_ld = wanted->cols,
                                     .diagonal = down - along};
    share->job.part = &share->part;
    product->c.ld = wanted->cols;
    if (!is_empty && whole->product.c.data != NULL)
        product->c.data =
            (char *)whole->product.c.data + (down * wanted->cols + along) * mm_dtype_bytes(product->c.dtype);
}

static void share_done(struct mm_work *first);

static enum mm_status make_share(struct mm_shares *shares, const struct grid *grid, unsigned index,
                                 struct mm_worker *worker) {
    const struct mm_job *whole = shares->whole;
    struct mm_product product = whole->product;
    struct mm_share *share = &shares->of[index];
    struct mm_job *job = &share->job;
    const size_t down = index / grid->cols, along = index % grid->cols;
    const size_t row = first_unit(grid->row_units, grid->rows, down) * grid->cuts.rows;
    const size_t col = first_unit(grid->col_units, grid->cols, along) * grid->cuts.cols;
    const size_t bottom = first_unit(grid->row_units, grid->rows, down + 1) * grid->cuts.rows;
    const size_t right = first_unit(grid->col_units, grid->cols, along + 1) * grid->cuts.cols;
    *share = (struct mm_share){.job = {.work = {.kind = MM_WORK_PRODUCT,
                                                .backend = whole->work.backend,
                                                .done = share_done,
                                                .owner = shares,
                                                .worker = worker,
                                                .is_extra = index > 0},
                                       .variant = whole->plan.variant,
                                       .reduces = whole->reduces,
                                       .verify = whole->verify,
                                       .is_locked = whole->is_locked,
                                       .device_bytes_max = whole->device_bytes_max}};
    if (whole->part != NULL)
        product.c.data = NULL; /* place_part sets it */
    job->product = mm_product_part(&product, MM_MATMUL, row, mm_size_min(bottom, product.m) - row, col,
                                   mm_size_min(right, product.n) - col);
    job->product.whole = (struct mm_whole){product.m, product.n, row, col};
    for (unsigned operand = 0; operand < MM_OPERANDS_MAX; operand++)
        place_source(job, whole, operand);
    if (whole->part != NULL)
        place_part(share, whole);
    mm_job_clear(job);
    job->work.bytes = index == 0 ? whole->work.bytes : 0;
    return mm_work_plan(&job->work, worker->device, NULL);
}

static double expected_ns(const struct mm_job *job) {
    const struct mm_device *device = job->plan.device;
    return mm_forecast_ns(device, job, job->plan.variant) +
           mm_forecast_copy_ns(device, mm_job_absent_bytes(job, device));
}

/* Whether the shares are expected to take less than 0.8 of the time of one device. */
static bool pays(const struct mm_shares *shares) {
    double longest_ns = 0.0;
    for (unsigned index = 0; index < shares->count; index++)
        longest_ns = fmax(longest_ns, expected_ns(&shares->of[index].job));
    return longest_ns < 0.8 * expected_ns(shares->whole);
}

void mm_shares_make(struct mm_queue *queue, struct mm_job *job) {
    struct mm_worker *workers[MM_DEVICES_MAX];
    struct mm_shares *shares = job->shares;
    struct grid grid = {.cuts = cuts_of(job)};
    *shares = (struct mm_shares){.whole = job, .queue = queue};
    if (job->product.m == 0 || job->product.n == 0 || grid.cuts.rows == 0)
        return;
    grid.row_units = mm_size_divide_up(job->product.m, grid.cuts.rows);
    grid.col_units = mm_size_divide_up(job->product.n, grid.cuts.cols);
    unsigned count = find_workers(queue, job, workers);
    while (count > 1 && !choose_grid(&job->product, count, &grid))
        count--;
    if (count < 2)
        return;
    shares->cols = (unsigned)grid.cols;
    for (shares->count = 0; shares->count < count; shares->count++)
        if (make_share(shares, &grid, shares->count, workers[shares->count]) != MM_OK)
            break;
    if (shares->count < count || (job->weighs_devices && !pays(shares)))
        shares->count = 0;
    shares->left = shares->count;
}

unsigned mm_work_units(struct mm_work *work) {
    const struct mm_job *job = mm_work_job(work);
    return job != NULL && job->shares != NULL && job->shares->count > 0 ? job->shares->count : 1;
}

struct mm_work *mm_work_unit(struct mm_work *work, unsigned index) {
    return mm_work_units(work) > 1 ? &mm_work_job(work)->shares->of[index].job.work : work;
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
    return __atomic_sub_fetch(&mm_work_job(work)->shares->left, removed, __ATOMIC_ACQ_REL) == 0;
}

/* --- the end of a share -------------------------------------------------------------------------- */

/* Runs a share that is over once more, on the least loaded device. Returns false, with the work's error
 * untouched, if no device can run it. */
static bool run_again(struct mm_share *share, struct mm_queue *queue) {
    struct mm_work *work = &share->job.work;
    const struct mm_error error = work->error;
    const size_t bytes = work->bytes;
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
            const size_t rows = share->outcome.verification.rows_unjudged;
            merge_verification(&all, share);
            most = rows > most ? rows : most;
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

/* Merges what the shares did. Spans are those of the slowest share. */
static void merge(const struct mm_shares *shares) {
    struct mm_job *whole = shares->whole;
    struct mm_outcome *outcome = &whole->outcome;
    mm_job_begin(whole, shares->of[0].job.work.device);
    if (whole->verify)
        outcome->verification = merge_verifications(shares);
    outcome->devices = 0;
    for (unsigned index = 0; index < shares->count; index++) {
        const struct mm_outcome *one = &shares->of[index].job.outcome;
        for (unsigned span = 0; span < MM_SPAN_COUNT; span++)
            if (one->span_ns[span] > outcome->span_ns[span])
                outcome->span_ns[span] = one->span_ns[span];
        outcome->devices += !has_seen_device(shares, index);
        outcome->uploaded_bytes += one->uploaded_bytes;
        outcome->downloaded_bytes += one->downloaded_bytes;
        mm_path_merge(&outcome->path, &one->path);
        mm_reduce_merge(&outcome->reduction, &one->reduction);
    }
}

static void end_share(struct mm_work *work);

/* If a variant would have left the whole product to its slow path, computes all shares on the slow path. So
 * the bits of C do not depend on the shares. Returns whether shares run again. */
static bool falls_back(struct mm_shares *shares) {
    const struct mm_variant *slow =
        mm_backend_variant(shares->whole->work.backend, MM_MATMUL, mm_path_name(MM_PATH_SIMT));
    struct mm_path all = {.kind = MM_PATH_NONE};
    struct mm_work *again = NULL, *next;
    unsigned count = 0;
    for (unsigned index = 0; index < shares->count; index++)
        mm_path_merge(&all, &shares->of[index].job.outcome.path);
    for (unsigned index = 0; index < shares->count && slow != NULL && mm_path_falls_back(&all); index++) {
        struct mm_job *job = &shares->of[index].job;
        if (job->outcome.path.kind == MM_PATH_SIMT || job->variant == slow)
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

static void share_done(struct mm_work *first) {
    struct mm_work *next;
    for (struct mm_work *work = first; work != NULL; work = next) {
        next = work->next;
        end_share(work);
    }
}
