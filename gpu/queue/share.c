/* Divides a product among devices: decides where C is cut and which devices compute it, and makes the jobs of
 * the shares. */
#include "gpu/queue/share.h"

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
    size_t first_rows[MM_DEVICES_MAX + 1]; /* the units at which the shares begin; then row_units */
};

static struct mm_cuts cuts_of(const struct mm_job *job) {
    enum { UNIT_MIN = 32 };
    const struct mm_variant *variant = job->plan.variant;
    const size_t unit = variant->tile > UNIT_MIN ? variant->tile : UNIT_MIN;
    if (job->product.stack != NULL || variant->op != MM_MATMUL || variant->needs_whole ||
        !mm_job_part_is_of_c(job))
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

/* Chooses the grid of `count` shares that needs the fewest rows of A and columns of B on a device. If C stays
 * on the devices, cuts only rows, so each part of C is contiguous. Returns false if C cannot be cut like
 * that. */
static bool choose_grid(const struct mm_job *job, size_t count, struct grid *grid) {
    const struct mm_product *product = &job->product;
    double least = INFINITY;
    struct grid tried = *grid;
    for (tried.rows = count; tried.rows > (job->stores_c ? count - 1 : 0); tried.rows--) {
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

/* Finds the least loaded workers, beginning with the job's own worker. If the job weighs devices, all others
 * must be idle. Returns how many there are. */
static unsigned find_workers(struct mm_queue *queue, const struct mm_job *job,
                             struct mm_worker *found[MM_DEVICES_MAX]) {
    const struct mm_device *device = job->plan.device;
    unsigned count = 1;
    found[0] = job->work.worker;
    for (size_t index = 0; index < queue->worker_count; index++) {
        struct mm_worker *worker = &queue->workers[index];
        const double load = mm_worker_load(worker);
        if (worker == found[0] || !plans_alike(worker->device, device) ||
            mm_device_has_failed(worker->device) || (job->weighs_devices && load > 0.0))
            continue;
        unsigned at = count++;
        for (; at > 1 && mm_worker_load(found[at - 1]) > load; at--)
            found[at] = found[at - 1];
        found[at] = worker;
    }
    return count < job->devices ? count : job->devices;
}

/* --- the shares ---------------------------------------------------------------------------------- */

static void place_source(struct mm_job *share, const struct mm_job *whole, unsigned index) {
    const struct mm_whole *at = &share->product.whole;
    struct mm_source *source = &share->sources[index];
    *source = whole->sources[index];
    source->first = mm_product_part_first(&whole->product, index, at->row, at->col);
    source->gap =
        mm_product_operand(&whole->product, index)->cols - mm_product_operand(&share->product, index)->cols;
}

/* Restricts the wanted part of C to the share's block. */
static void place_part(struct mm_share *share, const struct mm_job *whole) {
    const struct mm_window *wanted = whole->part;
    struct mm_product *product = &share->job.product;
    size_t first;
    share->part =
        mm_window_of_block(wanted, product->whole.row, product->m, product->whole.col, product->n, &first);
    share->job.part = &share->part;
    product->c.ld = wanted->cols;
    if (mm_window_elements(&share->part) > 0 && whole->product.c.data != NULL)
        product->c.data = (char *)whole->product.c.data + first * mm_dtype_bytes(product->c.dtype);
}

static enum mm_status make_share(struct mm_shares *shares, const struct grid *grid, unsigned index,
                                 struct mm_worker *worker) {
    const struct mm_job *whole = shares->whole;
    struct mm_product product = whole->product;
    struct mm_share *share = &shares->of[index];
    struct mm_job *job = &share->job;
    const size_t down = index / grid->cols, along = index % grid->cols;
    const size_t row = grid->first_rows[down] * grid->cuts.rows;
    const size_t col = first_unit(grid->col_units, grid->cols, along) * grid->cuts.cols;
    const size_t bottom = grid->first_rows[down + 1] * grid->cuts.rows;
    const size_t right = first_unit(grid->col_units, grid->cols, along + 1) * grid->cuts.cols;
    *share = (struct mm_share){.job = {.work = {.kind = MM_WORK_PRODUCT,
                                                .backend = whole->work.backend,
                                                .done = mm_share_done,
                                                .owner = shares,
                                                .worker = worker,
                                                .is_extra = index > 0},
                                       .variant = whole->plan.variant,
                                       .stores_c = whole->stores_c,
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
    return mm_forecast_ns(device, job, job->plan.variant) + mm_forecast_fetch_ns(device, job);
}

/* Whether the shares are expected to take less than 0.8 of the time of one device. */
static bool pays(const struct mm_shares *shares) {
    double longest_ns = 0.0;
    for (unsigned index = 0; index < shares->count; index++)
        longest_ns = fmax(longest_ns, expected_ns(&shares->of[index].job));
    return longest_ns < 0.8 * expected_ns(shares->whole);
}

static bool make_all(struct mm_shares *shares, const struct grid *grid, unsigned count,
                     struct mm_worker *const *workers) {
    for (shares->count = 0; shares->count < count; shares->count++)
        if (make_share(shares, grid, shares->count, workers[shares->count]) != MM_OK)
            return false;
    return true;
}

/* Gives fewer rows to devices that must first copy operands, so that all devices end at the same time.
 * Returns whether that changes the shares. Shares with several columns stay as they are, and so do shares of
 * a C that stays on the devices, because a larger part may not fit. */
static bool weigh_rows(const struct mm_shares *shares, struct grid *grid) {
    const struct mm_job *whole = shares->whole;
    const double kernel_ns = mm_forecast_kernel_ns(whole->plan.device, whole->plan.variant, &whole->product);
    double fetch_ns[MM_DEVICES_MAX], all_ns = kernel_ns, first = 0.0;
    bool is_even = true;
    for (unsigned index = 0; index < shares->count; index++) {
        const struct mm_job *share = &shares->of[index].job;
        fetch_ns[index] = mm_forecast_fetch_ns(share->plan.device, share);
        all_ns += fetch_ns[index];
        is_even = is_even && fetch_ns[index] == fetch_ns[0];
    }
    if (grid->cols > 1 || is_even || kernel_ns == 0.0 || whole->stores_c)
        return false;
    for (unsigned index = 1; index < shares->count; index++) {
        const size_t least = grid->first_rows[index - 1] + 1;
        const size_t most = grid->row_units - (grid->cuts.tail_rows > 0 ? grid->cuts.tail_rows : 1) -
                            (shares->count - 1 - index);
        first += (all_ns / shares->count - fetch_ns[index - 1]) / kernel_ns * (double)grid->row_units;
        grid->first_rows[index] = (size_t)fmin(fmax(round(first), (double)least), (double)most);
    }
    return true;
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
    while (count > 1 && !choose_grid(job, count, &grid))
        count--;
    if (count < 2)
        return;
    for (size_t down = 0; down <= grid.rows; down++)
        grid.first_rows[down] = first_unit(grid.row_units, grid.rows, down);
    shares->cols = (unsigned)grid.cols;
    if (make_all(shares, &grid, count, workers) && weigh_rows(shares, &grid))
        (void)make_all(shares, &grid, count, workers);
    if (shares->count < count || (job->weighs_devices && !pays(shares)))
        shares->count = 0;
    shares->left = shares->count;
}
