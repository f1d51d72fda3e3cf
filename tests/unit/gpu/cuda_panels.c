/* Tests shares whose B is copied in panels from another device, on a fake CUDA device. */
#include "cuda_job.h"

#include "gpu/store/stored.h"

/* The share has the last ROWS rows of the product. Its last panel has at least TAIL units of columns. */
enum { ALL_ROWS = 64, ROWS = 32, K = 20, N = 200, UNIT = 16, TAIL = 8, PANELS = 3, FIRST_COLS = 16 };
enum { B_BYTES = K * N * 4, KEPT_BYTES = 1000, COL_BYTES = 40, SCRATCH_BYTES = 700 };

static const size_t cols[PANELS] = {FIRST_COLS, 5 * UNIT - FIRST_COLS, N - 5 * UNIT};
static float a[ALL_ROWS * K], b[K * N], c[2][ALL_ROWS * N], expected[ALL_ROWS * N], addend[ALL_ROWS * N];
static float parts[2][K * N];
static struct mm_job job[2];
static struct mm_job *const jobs[2] = {&job[0], &job[1]};
static struct mm_device other;
static struct mm_device_copy copies[2];
static struct mm_stored value;
static unsigned launched, fills;
static size_t col;       /* where the next panel begins */
static size_t first_col; /* of the share */
static bool is_tight;    /* the workspace is too small for the data derived from all panels but the first */
static bool keeps_for_later; /* data derived from all of B is kept with the copy of B */

static void fill(float *elements, size_t count, unsigned seed) {
    for (size_t index = 0; index < count; index++)
        elements[index] = (float)((index * 7 + index / 97 + seed) % 11) - 5.0F;
}

/* Derives data in the memory that stays for all panels of A, or for this panel of B. Returns false if there
 * is no such memory. */
static bool derive(struct mm_lane *lane, enum mm_operand_index slot, const void *from, size_t bytes) {
    bool is_filled = false;
    char *kept = mm_cuda_acquire_derived(lane, slot, from, 1, bytes, &is_filled);
    if (kept == NULL || !lane->bands.in_panels) {
        keeps_for_later = kept != NULL;
        return false;
    }
    assert_int_equal((uintptr_t)kept % 256, 0);
    assert_true(kept >= (char *)lane->scratch + SCRATCH_BYTES);
    assert_true(kept + bytes <= (char *)lane->scratch + lane->bands.job->plan.workspace_bytes);
    assert_int_equal(is_filled, slot == MM_OPERAND_A && launched > 0);
    for (size_t index = 0; index < bytes && is_filled; index++)
        assert_int_equal(kept[index], 7);
    memset(kept, slot == MM_OPERAND_A ? 7 : 9, bytes);
    fills += !is_filled;
    assert_int_equal(mm_cuda_note_derived(lane, slot), cudaSuccess);
    return true;
}

/* As fp32_tensor: derives data from both operands, and reports a path. */
static enum mm_status launch(const struct mm_plan *plan, const struct mm_product *product,
                             struct mm_lane *lane, struct mm_error *error) {
    const struct mm_path path = {
        .kind = launched == 0 ? MM_PATH_REPAIRED : MM_PATH_CERTIFIED, .repaired = product->n, .cost = 1.0};
    assert_true(product->whole.m == ALL_ROWS && product->whole.n == N && product->whole.row == ROWS);
    assert_int_equal(product->whole.col, col);
    assert_int_equal(product->n, lane->bands.in_panels && first_col == 0 ? cols[launched] : N - first_col);
    const bool keeps_a = derive(lane, MM_OPERAND_A, product->a.data, KEPT_BYTES);
    const bool keeps_b = derive(lane, MM_OPERAND_B, product->b.data, product->n * COL_BYTES);
    memset(lane->scratch, 0xa5, keeps_a && keeps_b ? SCRATCH_BYTES : plan->workspace_bytes);
    launched++;
    col = (col + product->n) % N;
    if (mm_cuda_merges_paths(&lane->bands))
        mm_path_merge(lane->path, &path);
    else
        *lane->path = path;
    return mm_cuda_launch(plan, product, lane, error);
}

static enum mm_status plan_cut(const struct mm_product *product, struct mm_plan *plan,
                               struct mm_error *error) {
    plan->layout = (struct mm_layout){
        .kernel = &fake_kernels.lonely, .block_rows = FAKE_BLOCK, .block_cols = FAKE_BLOCK};
    plan->launch = launch;
    plan->cuts = (struct mm_cuts){.rows = UNIT, .cols = UNIT, .tail_rows = 1, .tail_cols = TAIL};
    plan->kept.bytes[0] = KEPT_BYTES;
    plan->kept.bytes[1] = product->n * COL_BYTES;
    plan->kept.workspace_bytes = SCRATCH_BYTES;
    plan->workspace_bytes = SCRATCH_BYTES + KEPT_BYTES + (is_tight ? 3 * FIRST_COLS : product->n) * COL_BYTES;
    return MM_OK;
}

static const struct mm_variant cut = {.name = "cut", .plan[MM_FLOAT32] = plan_cut};

/* Stores B on the other device, or in two parts of which this device has the first. A part ends inside of a
 * row. */
static void store_b(bool in_parts) {
    const size_t first = in_parts ? K * N / 2 - 3 : 0;
    memcpy(parts[0], b, first * sizeof *b);
    memcpy(parts[1], b + first, (K * N - first) * sizeof *b);
    other = (struct mm_device){.backend = device.head.backend, .index = 1};
    copies[0] = (struct mm_device_copy){.device = &device.head, .data = parts[0], .next_part = &copies[1]};
    copies[1] = (struct mm_device_copy){.device = &other, .data = parts[1], .first = first * sizeof *b};
    value = (struct mm_stored){.bytes = B_BYTES, .only_copy = &copies[!in_parts]};
    launched = fills = 0;
    col = first_col;
}

static void init(unsigned index, bool transpose_b) {
    struct mm_job *share = jobs[index];
    struct mm_product all = {.transpose_b = transpose_b,
                             .a = mm_matrix_dense(MM_FLOAT32, ALL_ROWS, K, a),
                             .b = mm_matrix_dense(MM_FLOAT32, transpose_b ? N : K, transpose_b ? K : N, NULL),
                             .c = mm_matrix_dense(MM_FLOAT32, ALL_ROWS, N, c[index])};
    fill(a, ALL_ROWS * K, 1);
    fill(b, K * N, 2);
    fill(c[index], ALL_ROWS * N, 3);
    memset(share, 0, sizeof *share);
    assert_int_equal(mm_product_conform(MM_MATMUL, &all, NULL), MM_OK);
    share->product = mm_product_part(&all, MM_MATMUL, ROWS, ALL_ROWS - ROWS, first_col, N - first_col);
    share->product.whole = (struct mm_whole){ALL_ROWS, N, ROWS, first_col};
    share->sources[MM_OPERAND_B] = (struct mm_source){.kind = MM_SOURCE_STORED, .stored = &value};
    share->variant = &cut;
}

static void plan(unsigned index) {
    assert_int_equal(mm_job_plan(jobs[index], &device.head, NULL), MM_OK);
    mm_job_begin(jobs[index], &device.head);
}

/* Computes the share over the old contents of C. */
static void expect_c(unsigned index) {
    struct mm_product product = jobs[index]->product;
    assert_int_equal(jobs[index]->work.error.status, MM_OK);
    fill(expected, ALL_ROWS * N, 3);
    product.b.data = b;
    product.c.data = expected + ROWS * N;
    fake_compute(&product, false);
    fake_expect_written(c[index], sizeof c[index]);
    assert_memory_equal(c[index], expected, sizeof expected);
    assert_int_equal(fake_cuda.races, 0);
}

static void expect_three_panels(bool in_parts, bool keeps) {
    assert_int_equal(launched, PANELS);
    assert_int_equal(fills, keeps ? 1 + PANELS : 0);
    assert_int_equal(job[0].outcome.uploaded_bytes, ROWS * K * 4);
    assert_int_equal(device.head.peer_bytes, in_parts ? B_BYTES / 2 + 12 : B_BYTES);
    if (!in_parts)
        assert_int_equal(job[0].outcome.peer_bytes, K * FIRST_COLS * 4);
    assert_int_equal(job[0].outcome.path.kind, MM_PATH_REPAIRED);
    assert_int_equal(job[0].outcome.path.repaired, N);
    assert_true(job[0].outcome.path.cost == 3.0);
    expect_spans_ms(&job[0], 1, 2, 3);
}

/* B is natural or transposed, whole or in parts, and in pitches that CUDA allows or not. Data is derived from
 * A only once, except if a pass applies the epilogue. */
static void share_is_right_and_without_races(void **state) {
    for (unsigned index = 0; index < 16; index++) {
        const bool transpose_b = index & 1, in_parts = index & 2, has_addend = index & 4;
        device.head.peer_bytes = 0;
        fake_cuda.pitch_max = device.pitch_bytes_max = index & 8 ? 512 : 1 << 20;
        init(0, transpose_b);
        store_b(in_parts);
        if (has_addend) {
            fill(addend, ALL_ROWS * N, 4);
            job[0].product.addend = mm_matrix_dense(MM_FLOAT32, ROWS, N, addend);
            job[0].product.epilogue.is_set = true;
            job[0].product.epilogue.alpha.of_float = 2.0F;
            job[0].product.epilogue.beta.of_float = 3.0F;
        }
        job[0].verify = !in_parts;
        plan(0);
        run(0, jobs, 1);
        assert_int_equal(job[0].work.error.status, MM_OK);
        job[0].outcome.uploaded_bytes -= has_addend ? ROWS * N * 4 : 0;
        expect_three_panels(in_parts, !has_addend);
        expect_c(0);
        release_copies(&value);
    }
}

/* Data that was derived from A is not used after a launch that needed its memory. */
static void derived_data_needs_memory(void **state) {
    is_tight = true;
    init(0, false);
    store_b(false);
    plan(0);
    run(0, jobs, 1);
    expect_c(0);
    assert_int_equal(launched, PANELS);
    assert_int_equal(fills, 2);
    release_copies(&value);
    is_tight = false;
}

/* The span of the kernels begins when the first panel is copied. */
static void kernels_begin_after_the_first_panel(void **state) {
    float element;
    const cudaStream_t stream = (cudaStream_t)3;
    init(0, false);
    store_b(false);
    plan(0);
    mm_cuda_begin(&device.head, 0, jobs, 1);
    cudaStreamWaitEvent(stream, device.lanes[0].marks[MM_CUDA_UPLOADED], 0);
    cudaMemcpyAsync(&element, value.copies->data, sizeof element, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    mm_cuda_end(&device.head, 0, jobs, 1);
    expect_c(0);
    release_copies(&value);
}

/* C stays on the device, too. */
static void c_can_stay(void **state) {
    init(0, false);
    store_b(true);
    job[0].stores_c = true;
    plan(0);
    run(0, jobs, 1);
    expect_c(0);
    assert_memory_equal(job[0].stored_c->data, expected + ROWS * N, ROWS * N * sizeof(float));
    job[0].stored_c->release(job[0].stored_c);
    release_copies(&value);
}

/* A job in another lane waits for all panels, and copies nothing. It is the second job that could use data
 * derived from B, so the data would be kept. */
static void other_lane_waits_for_all_panels(void **state) {
    device.lanes[1].stream = (cudaStream_t)3;
    for (unsigned mark = 0; mark < MM_CUDA_MARKS; mark++)
        device.lanes[1].marks[mark] = (cudaEvent_t)((uintptr_t)device.lanes[0].marks[mark] + 30);
    init(0, false);
    store_b(false);
    plan(0);
    mm_cuda_begin(&device.head, 0, jobs, 1);
    init(1, false);
    plan(1);
    fake_cuda.is_late = true; /* the panels are not copied yet */
    mm_cuda_begin(&device.head, 1, &jobs[1], 1);
    fake_cuda.is_late = false;
    assert_int_equal(launched, PANELS + 1);
    assert_int_equal(device.head.peer_bytes, B_BYTES);
    assert_true(keeps_for_later);
    mm_cuda_end(&device.head, 0, jobs, 1);
    mm_cuda_end(&device.head, 1, &jobs[1], 1);
    assert_int_equal(job[1].outcome.path.repaired, N);
    expect_c(0);
    expect_c(1);
    release_copies(&value);
}

/* After a failure in a later panel the copy of B counts as empty. The job can run again,
 * in panels or not. */
static void failed_job_runs_again(void **state) {
    for (unsigned time = 0; time < 2 * PANELS; time++) {
        const bool in_panels = time % 2;
        device.head.memory_bytes = (size_t)1 << 20;
        init(0, false);
        store_b(false);
        plan(0);
        fake_cuda.launch_fails = cudaErrorInvalidValue;
        fake_cuda.launches_left = time / 2;
        mm_cuda_begin(&device.head, 0, jobs, 1);
        fake_cuda.launch_fails = cudaSuccess;
        assert_int_equal(job[0].work.error.status, MM_INTERNAL);
        assert_int_equal(mm_stored_absent_bytes(&value, (struct mm_stored_range){0, B_BYTES}, &device.head),
                         B_BYTES);
        fake_expect_written(value.copies->data, B_BYTES);
        launched = fills = 0;
        col = 0;
        device.head.peer_bytes = 0;
        device.head.memory_bytes = in_panels ? (size_t)1 << 20 : (size_t)B_BYTES * 1024;
        init(0, false);
        plan(0);
        run(0, jobs, 1);
        if (in_panels)
            expect_three_panels(false, true);
        assert_int_equal(launched, in_panels ? PANELS : 1);
        expect_c(0);
        release_copies(&value);
    }
}

/* The share reads only some rows of a transposed B. The next job copies the other rows at once. */
static void share_may_read_a_part(void **state) {
    enum { FIRST = 6 * UNIT };
    first_col = FIRST;
    init(0, true);
    store_b(false);
    job[0].sources[MM_OPERAND_B].first = FIRST * K;
    plan(0);
    run(0, jobs, 1);
    assert_int_equal(job[0].work.error.status, MM_OK);
    assert_int_equal(device.head.peer_bytes, (N - FIRST) * K * sizeof(float));
    assert_int_equal(job[0].outcome.peer_bytes, (N - FIRST) * K * sizeof(float));
    first_col = col = launched = 0;
    init(0, true);
    plan(0);
    run(0, jobs, 1);
    assert_int_equal(launched, 1);
    assert_int_equal(device.head.peer_bytes, B_BYTES);
    expect_c(0);
    release_copies(&value);
}

/* If there is no memory for a copy of B that stays, there are no panels. */
static void job_without_memory_has_no_panels(void **state) {
    init(0, false);
    store_b(false);
    fake_cuda.memory_max = B_BYTES + 1000;
    plan(0);
    mm_cuda_begin(&device.head, 0, jobs, 1);
    assert_int_equal(job[0].work.error.status, MM_NO_DEVICE_MEMORY);
    fake_cuda.memory_max = 1 << 20;
    device.head.memory_bytes = 4 * (B_BYTES - 1);
    init(0, false);
    plan(0);
    run(0, jobs, 1);
    assert_int_equal(launched, 1);
    expect_c(0);
    release_copies(&value);
}

/* A small B and a job that is no share are copied at once. */
static void other_jobs_have_no_panels(void **state) {
    init(0, false);
    store_b(false);
    plan(0);
    assert_true(mm_job_copies_in_panels(&job[0], &device.head));
    assert_false(mm_job_copies_in_panels(&job[0], &other));
    device.head.forecast.peer_ns = 2.0; /* for a byte */
    assert_true(mm_forecast_fetch_ns(&device.head, &job[0]) == 2.0 * B_BYTES);
    mm_forecast_assume(&device.head, job[0].plan.variant, &job[0].product, 1e12);
    assert_true(mm_forecast_fetch_ns(&device.head, &job[0]) == 2.0 * B_BYTES / MM_FIRST_PANEL);
    device.head.memory_bytes = (size_t)B_BYTES * 1024;
    assert_false(mm_job_copies_in_panels(&job[0], &device.head));
    device.head.memory_bytes = (size_t)1 << 20;
    job[0].sources[MM_OPERAND_B].gap = 1;
    assert_false(mm_job_copies_in_panels(&job[0], &device.head));
    job[0].sources[MM_OPERAND_B].gap = 0;
    job[0].product.n = K - 1;
    assert_false(mm_job_copies_in_panels(&job[0], &device.head));
    job[0].product.n = N;
    job[0].sources[MM_OPERAND_ADDEND] = job[0].sources[MM_OPERAND_B];
    assert_false(mm_job_copies_in_panels(&job[0], &device.head));
    job[0].sources[MM_OPERAND_ADDEND].stored = NULL;
    assert_true(mm_job_copies_in_panels(&job[0], &device.head));
    job[0].product.whole.m = 0;
    assert_false(mm_job_copies_in_panels(&job[0], &device.head));
}

RUN_TESTS_BETWEEN(reset, drop, share_is_right_and_without_races, derived_data_needs_memory,
                  kernels_begin_after_the_first_panel, c_can_stay, other_lane_waits_for_all_panels,
                  failed_job_runs_again, share_may_read_a_part, job_without_memory_has_no_panels,
                  other_jobs_have_no_panels)
