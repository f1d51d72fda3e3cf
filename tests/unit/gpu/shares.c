/* Tests products that several devices compute: every bit, and shares that fail, wait, or are cancelled. */
#include "scene.h"
#include "gpu/check/verify.h"
#include "gpu/queue/share.h"
#include "gpu/store/stored.h"

enum { EDGE_MAX = 300, ELEMENTS_MAX = EDGE_MAX * EDGE_MAX };

static float memory[MM_PRODUCT_MATRICES][ELEMENTS_MAX], results[FAKES_MAX + 1][ELEMENTS_MAX];
static char shares[4096 + FAKES_MAX * sizeof(struct mm_share)] __attribute__((aligned(64)));
static struct mm_stored stored[MM_OPERANDS_MAX];

/* Copies or generates an operand, as a GPU does. Returns the memory, which the caller frees. */
static void *upload(const struct mm_job *job, struct mm_product *product, unsigned index) {
    const struct mm_source *source = &job->sources[index];
    const struct mm_matrix *from = mm_product_operand(&job->product, index);
    struct mm_matrix to = *mm_product_operand(product, index);
    float *data = calloc(to.rows * to.cols + 1, sizeof *data);
    assert_non_null(data);
    to.data = data;
    if (mm_source_is_generated(source))
        (void)mm_source_generate(source, &to, 0, to.rows * to.cols, NULL);
    for (size_t row = 0; source->kind == MM_SOURCE_HOST && row < to.rows; row++)
        memcpy(data + row * to.cols, (const float *)from->data + row * from->ld, to.cols * sizeof *data);
    mm_job_place_operand(job, product, index, source->kind == MM_SOURCE_STORED ? source->stored->data : data);
    return data;
}

static void download(const struct mm_job *job, struct mm_matrix *c) {
    const struct mm_matrix *to = &job->product.c;
    if (to->data != NULL && job->part != NULL)
        mm_window_pack(job->part, c->dtype, c->data, to->data);
    for (size_t row = 0; to->data != NULL && job->part == NULL && row < c->rows; row++)
        memcpy((float *)to->data + row * to->ld, (float *)c->data + row * c->ld, c->cols * sizeof(float));
}

static void check(struct mm_job *job, const struct mm_product *product) {
    void *sums = malloc(mm_verify_bytes(product));
    assert_non_null(sums);
    mm_verify(product, MM_ROUNDED, mm_verify_seed(), sums, &job->outcome.verification);
    free(sums);
}

static size_t wrong_row = SIZE_MAX; /* row of C in which all devices compute a wrong element */

static void compute(struct mm_job *job) {
    struct mm_product product = mm_job_device_product(job);
    struct mm_reduction_progress done = {0};
    void *operands[MM_OPERANDS_MAX];
    if (job->sources[MM_OPERAND_A].kind == MM_SOURCE_HOST && job->product.a.data == NULL)
        return; /* a product of submit_product */
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        operands[index] = upload(job, &product, index);
    product.c.data = malloc(mm_matrix_bytes(&product.c));
    assert_non_null(product.c.data);
    (void)mm_cpu_backend.variants[0].launch[MM_FLOAT32](&product, NULL, NULL);
    if (wrong_row - job->product.whole.row < product.m)
        ((float *)product.c.data)[(wrong_row - job->product.whole.row) * product.n] += 1000.0f;
    job->outcome.downloaded_bytes = mm_matrix_bytes(&product.c);
    if (job->reduces)
        (void)mm_reduce_part(&job->outcome.reduction, &done, job->part, MM_FLOAT32, product.c.data, SIZE_MAX);
    if (job->verify)
        check(job, &product);
    download(job, &product.c);
    free(product.c.data);
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        free(operands[index]);
}

/* A product to divide. The operands' sources are bits: for operand i, bit i of `generated` and of `stored`.
 */
struct subject {
    size_t m, n, k;
    unsigned generated, stored;
    bool transpose_a, transpose_b, has_terms, verify, reduces;
    struct mm_window part; /* used if `rows` is not 0 */
};

static struct mm_matrix matrix(size_t rows, size_t cols, bool transposed, void *data) {
    return transposed ? mm_matrix_dense(MM_FLOAT32, cols, rows, data)
                      : mm_matrix_dense(MM_FLOAT32, rows, cols, data);
}

static void set_sources(struct mm_job *job, const struct subject *subject) {
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++) {
        const struct mm_matrix *operand = mm_product_operand(&job->product, index);
        stored[index].data = memory[index];
        stored[index].bytes = mm_matrix_bytes(operand);
        if ((subject->generated >> index & 1) != 0)
            job->sources[index] = index == MM_OPERAND_B
                                      ? (struct mm_source){.kind = MM_SOURCE_IDENTITY, .rows = operand->rows}
                                      : (struct mm_source){.kind = MM_SOURCE_UNIFORM, .seed = index};
        if ((subject->stored >> index & 1) != 0)
            job->sources[index] = (struct mm_source){.kind = MM_SOURCE_STORED, .stored = &stored[index]};
        if (job->sources[index].kind != MM_SOURCE_HOST)
            mm_product_place_operand(&job->product, index, NULL);
    }
}

/* Makes a job for at most `devices` devices. The result goes to results[devices]. */
static struct mm_job *divide(struct test_job *test, const struct subject *subject, unsigned devices) {
    struct mm_job *job = &test->job;
    job_init(test, "naive", subject->m);
    job->product = (struct mm_product){
        .m = subject->m,
        .n = subject->n,
        .k = subject->k,
        .transpose_a = subject->transpose_a,
        .transpose_b = subject->transpose_b,
        .a = matrix(subject->m, subject->k, subject->transpose_a, memory[MM_OPERAND_A]),
        .b = matrix(subject->k, subject->n, subject->transpose_b, memory[MM_OPERAND_B]),
        .c = mm_matrix_dense(MM_FLOAT32, subject->m, subject->n, results[devices]),
    };
    if (subject->has_terms) {
        job->product.transpose_addend = subject->transpose_a;
        job->product.addend = matrix(subject->m, subject->n, subject->transpose_a, memory[MM_OPERAND_ADDEND]);
        job->product.bias = mm_matrix_dense(MM_FLOAT32, 1, subject->n, memory[MM_OPERAND_BIAS]);
        job->product.epilogue = (struct mm_epilogue){
            .is_set = true, .alpha = mm_scale_of(MM_FLOAT32, 3), .beta = mm_scale_of(MM_FLOAT32, -2)};
    }
    set_sources(job, subject);
    job->verify = subject->verify;
    job->reduces = subject->reduces;
    job->part = subject->part.rows > 0 ? &subject->part : NULL;
    job->devices = devices;
    job->shares = devices > 1 ? (struct mm_shares *)(void *)shares : NULL;
    memset(results[devices], 0xa5, sizeof results[devices]);
    return job;
}

static void open_devices(struct setting setting) {
    setting.devices = FAKES_MAX;
    open_scene(setting);
    computes = compute;
    for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
        for (unsigned element = 0; element < ELEMENTS_MAX; element++)
            memory[index][element] = (float)((element * (index + 3) + element / 7) % 97) / 8.0f - 5.0f;
}

static void expect_outcome(const struct mm_outcome *outcome, const struct mm_outcome *alone,
                           const struct subject *subject) {
    assert_string_equal(outcome->ran->name, "naive");
    assert_true(outcome->flops_or_bytes == alone->flops_or_bytes);
    assert_int_equal(outcome->batched, 1);
    assert_int_equal(outcome->downloaded_bytes, subject->m * subject->n * sizeof(float));
    assert_int_equal(outcome->reduction.count, alone->reduction.count);
    assert_true(fabs(outcome->reduction.trace - alone->reduction.trace) <=
                1e-9 * fabs(alone->reduction.trace));
    assert_true(outcome->reduction.max == alone->reduction.max);
    assert_int_equal(outcome->verification.is_done, subject->verify);
    assert_int_equal(mm_verification_verdict(&outcome->verification), MM_VERDICT_PASSED);
    assert_int_equal(outcome->verification.rows_checked, subject->verify ? subject->m : 0);
}

static void bits_do_not_depend_on_the_devices(void **state) {
    static const struct subject subjects[] = {
        {128, 128, 33, .verify = true},
        {300, 70, 5, .has_terms = true, .verify = true},
        {70, 300, 5, .transpose_a = true, .transpose_b = true, .has_terms = true},
        {150, 201, 20, .transpose_b = true, .generated = 1 << MM_OPERAND_A | 1 << MM_OPERAND_B},
        {150, 201, 150, .transpose_a = true, .generated = 15, .has_terms = true},
        {201, 150, 30, .stored = 15, .has_terms = true, .verify = true},
        {201, 150, 30, .transpose_a = true, .transpose_b = true, .stored = 15, .has_terms = true},
        {201, 150, 9, .reduces = true, .part = {1, 201, 150, 0, 201, 0, 150}},
        {130, 130, 9, .reduces = true, .part = {1, 130, 130, 31, 66, 29, 66}},
        {130, 130, 9, .part = {1, 130, 130, 129, 1, 0, 2}},
    };
    open_devices((struct setting){0});
    for (unsigned index = 0; index < COUNT(subjects); index++) {
        struct mm_outcome alone = {.ran = NULL};
        for (unsigned devices = 1; devices <= FAKES_MAX; devices++) {
            struct mm_job *job = divide(&jobs[0], &subjects[index], devices);
            submit(&jobs[0]);
            job_wait(&jobs[0], MM_OK);
            if (devices == 1)
                alone = job->outcome;
            expect_outcome(&job->outcome, &alone, &subjects[index]);
            assert_int_equal(job->outcome.devices, devices);
            assert_memory_equal(results[devices], results[1], sizeof results[1]);
        }
    }
}

static const struct subject square = {128, 128, 4};

static void expect_square(unsigned devices) {
    struct test_job *alone = &jobs[JOBS_MAX - 1];
    (void)divide(alone, &square, 1);
    compute(&alone->job);
    assert_memory_equal(results[devices], results[1], sizeof results[1]);
}

static void begin_all(unsigned devices) {
    for (unsigned index = 0; index < devices; index++)
        wait_begun(&fakes[index], 1);
}

static void set_failed(unsigned index) {
    pthread_mutex_lock(&fakes[index].mutex);
    fakes[index].fail_end = true;
    pthread_mutex_unlock(&fakes[index].mutex);
    __atomic_store_n(&fakes[index].device.failed, 1, __ATOMIC_RELAXED);
}

static void share_of_a_failed_device_moves(void **state) {
    for (unsigned devices = 2; devices <= 3; devices++) {
        open_devices((struct setting){.closed = true});
        const struct mm_job *job = divide(&jobs[0], &square, devices);
        submit(&jobs[0]);
        begin_all(devices);
        set_failed(devices - 1);
        open_gate(&fakes[devices - 1]);
        wait_begun(&fakes[devices], 1); /* all other devices are busy */
        for (unsigned index = 0; index < FAKES_MAX; index++)
            open_gate(&fakes[index]);
        job_wait(&jobs[0], MM_OK);
        expect_square(devices);
        assert_int_equal(job->outcome.devices, devices);
        close_queue();
    }
}

static void share_moves_once(void **state) {
    open_devices((struct setting){.closed = true});
    (void)divide(&jobs[0], &square, 2);
    submit(&jobs[0]);
    begin_all(2);
    set_failed(1);
    open_gate(&fakes[1]);
    wait_begun(&fakes[2], 1);
    set_failed(2);
    open_gate(&fakes[2]);
    let_pass(&fakes[0], 1);
    job_wait(&jobs[0], MM_DEVICE_FAILED);
    assert_ptr_equal(jobs[0].work->device, &fakes[2].device);
    assert_int_equal(begun_by(&fakes[3]), 0);
}

static void failure_cancels_waiting_shares(void **state) {
    open_devices((struct setting){.closed = true});
    submit_product(&jobs[1], 2); /* occupies device 0, so a share waits */
    wait_begun(&fakes[0], 1);
    (void)divide(&jobs[0], &square, 4);
    submit(&jobs[0]);
    for (unsigned index = 1; index < FAKES_MAX; index++) {
        wait_begun(&fakes[index], 1);
        set_failed(index);
    }
    __atomic_store_n(&fakes[0].device.failed, 1, __ATOMIC_RELAXED);
    for (unsigned index = 1; index < FAKES_MAX; index++)
        open_gate(&fakes[index]);
    job_wait(&jobs[0], MM_DEVICE_FAILED);
    open_gate(&fakes[0]);
    job_wait(&jobs[1], MM_OK);
    assert_int_equal(begun_by(&fakes[0]), 1);
}

static void cancelled_before_all_shares_began(void **state) {
    open_devices((struct setting){.closed = true});
    for (unsigned index = 1; index <= FAKES_MAX; index++) {
        submit_product(&jobs[index], 2);
        wait_begun(&fakes[index - 1], 1);
    }
    (void)divide(&jobs[0], &square, 4);
    submit(&jobs[0]);
    assert_int_equal(mm_queue_look(queue).jobs_waiting, 1); /* four shares count as one job */
    assert_int_equal(mm_queue_look(queue).bytes_waiting, mm_product_bytes(&jobs[0].job.product));
    assert_true(mm_queue_cancel(queue, jobs[0].work));
    assert_int_equal(mm_queue_look(queue).jobs_waiting, 0);
    for (unsigned index = 0; index < FAKES_MAX; index++)
        open_gate(&fakes[index]);
    wait_all(&jobs[1], FAKES_MAX);
    assert_int_equal(jobs[0].done_count, 0);
}

static void cancelled_while_some_shares_run(void **state) {
    open_devices((struct setting){.closed = true});
    submit_product(&jobs[1], 2);
    wait_begun(&fakes[0], 1);
    (void)divide(&jobs[0], &square, 4);
    submit(&jobs[0]);
    for (unsigned index = 1; index < FAKES_MAX; index++)
        wait_begun(&fakes[index], 1);
    assert_false(mm_queue_cancel(queue, jobs[0].work));
    assert_false(mm_queue_cancel(queue, jobs[0].work));
    for (unsigned index = 0; index < FAKES_MAX; index++)
        open_gate(&fakes[index]);
    job_wait(&jobs[0], MM_STOPPING);
    job_wait(&jobs[1], MM_OK);
    assert_int_equal(begun_by(&fakes[0]), 1);
    assert_int_equal(jobs[0].done_count, 1);
}

static void late_share_ends_the_product(void **state) {
    open_devices((struct setting){.closed = true});
    (void)divide(&jobs[0], &square, 3);
    jobs[0].work->deadline_ns = mm_clock_ns() + UINT64_C(1000000000);
    submit(&jobs[0]);
    begin_all(3);
    let_pass(&fakes[0], 1);
    let_pass(&fakes[1], 1);
    while (mm_clock_ns() <= jobs[0].work->deadline_ns)
        continue;
    open_gate(&fakes[2]);
    job_wait(&jobs[0], MM_TIMEOUT);
}

static void slowest_share_gives_the_times(void **state) {
    open_devices((struct setting){.closed = true});
    fakes[1].kernel_ns = 5000;
    const struct mm_job *job = divide(&jobs[0], &square, 3);
    submit(&jobs[0]);
    begin_all(3);
    let_pass(&fakes[0], 1);
    let_pass(&fakes[2], 1);
    for (int tries = 0; tries < 1000 && mm_queue_look(queue).jobs > 1; tries++)
        sched_yield();
    assert_int_equal(jobs[0].done_count, 0);
    let_pass(&fakes[1], 1);
    job_wait(&jobs[0], MM_OK);
    assert_int_equal(job->outcome.span_ns[MM_SPAN_KERNEL], 5000);
    expect_square(3);
}

static void wrong_rows_have_the_numbers_of_the_whole(void **state) {
    const struct subject checked = {128, 128, 4, .verify = true};
    open_devices((struct setting){0});
    wrong_row = 101;
    const struct mm_job *job = divide(&jobs[0], &checked, 4);
    submit(&jobs[0]);
    job_wait(&jobs[0], MM_OK);
    wrong_row = SIZE_MAX;
    assert_int_equal(mm_verification_verdict(&job->outcome.verification), MM_VERDICT_FAILED);
    assert_int_equal(job->outcome.verification.row, 101);
}

static void full_queue_refuses_shares(void **state) {
    open_devices((struct setting){.closed = true, .jobs_max = 1});
    for (unsigned index = 1; index <= FAKES_MAX + 1; index++) {
        submit_product(&jobs[index], 2);
        if (index <= FAKES_MAX)
            wait_begun(&fakes[index - 1], 1);
    }
    (void)divide(&jobs[0], &square, 4);
    assert_int_equal(try_submit(&jobs[0], NULL), MM_BUSY);
    for (unsigned index = 0; index < FAKES_MAX; index++)
        open_gate(&fakes[index]);
    wait_all(&jobs[1], FAKES_MAX + 1);
    submit(&jobs[0]);
    job_wait(&jobs[0], MM_OK);
    expect_square(4);
}

static void aborted_queue_ends_waiting_shares(void **state) {
    open_devices((struct setting){.closed = true});
    submit_product(&jobs[1], 2);
    wait_begun(&fakes[0], 1);
    (void)divide(&jobs[0], &square, 4);
    submit(&jobs[0]);
    mm_queue_stop(queue);
    mm_queue_abort(queue, MM_NO_SUCH_MATRIX, "aborted");
    for (unsigned index = 0; index < FAKES_MAX; index++)
        open_gate(&fakes[index]);
    job_wait(&jobs[0], MM_NO_SUCH_MATRIX);
    job_wait(&jobs[1], MM_OK);
}

static void expect_devices(const char *variant, const struct subject *subject, unsigned wanted,
                           unsigned expected) {
    struct mm_job *job = divide(&jobs[0], subject, wanted);
    job->variant = mm_backend_variant(fake->device.backend, MM_MATMUL, variant);
    submit(&jobs[0]);
    job_wait(&jobs[0], MM_OK);
    assert_int_equal(job->outcome.devices, expected);
}

static void fewer_devices_compute_what_cannot_be_cut(void **state) {
    static const struct subject small = {40, 20, 4}, row = {1, 128, 4}, empty = {0, 128, 4};
    open_devices((struct setting){0});
    expect_devices("naive", &small, 4, 2);
    expect_devices("naive", &row, 4, 4); /* columns are cut too */
    expect_devices("naive", &empty, 4, 1);
    expect_devices("uncut", &square, 4, 1);
    expect_devices("cut", &square, 4, 1); /* the plan has no cuts */
    fakes[3].device.multiprocessors = 7;  /* plans differently */
    expect_devices("naive", &square, 4, 3);
    __atomic_store_n(&fakes[1].device.failed, 1, __ATOMIC_RELAXED);
    expect_devices("naive", &square, 4, 2);
}

static void cuts_and_tail_of_the_plan_hold(void **state) {
    static const struct {
        struct mm_cuts cuts;
        unsigned expected;
    } plans_made[] = {
        {{64, 64, 0, 0}, 4}, {{64, 128, 0, 0}, 2}, {{64, 64, 0, 2}, 2},
        {{32, 32, 2, 3}, 3}, {{32, 16, 1, 8}, 4},
    };
    open_devices((struct setting){.backend = &fake_planning});
    for (unsigned index = 0; index < COUNT(plans_made); index++) {
        cuts = plans_made[index].cuts;
        expect_devices("cut", &square, 4, plans_made[index].expected);
        assert_memory_equal(jobs[0].job.product.c.data, results[4], 1);
        const struct mm_shares *made = jobs[0].job.shares;
        for (unsigned share = 0; share < made->count; share++) {
            const struct mm_product *product = &made->of[share].job.product;
            assert_int_equal(product->whole.row % cuts.rows, 0);
            assert_int_equal(product->whole.col % cuts.cols, 0);
        }
        const struct mm_product *last = &made->of[made->count - 1].job.product;
        assert_true(last->m >= cuts.tail_rows * cuts.rows && last->n >= cuts.tail_cols * cuts.cols);
        assert_int_equal(last->whole.row + last->m, 128);
        assert_int_equal(last->whole.col + last->n, 128);
    }
}

static struct mm_path paths[FAKES_MAX];
static unsigned slow_shares; /* atomic */

static void compute_by_path(struct mm_job *job) {
    compute(job);
    if (strcmp(job->outcome.ran->name, "simt") == 0)
        __atomic_add_fetch(&slow_shares, 1, __ATOMIC_SEQ_CST);
    else
        job->outcome.path = paths[job->product.whole.row / 32];
}

/* The whole product decides about the slow path, and not the shares. */
static void all_shares_take_the_slow_path_or_none(void **state) {
    static const struct {
        struct mm_path paths[FAKES_MAX];
        enum mm_path_kind kind;
        uint64_t repaired;
        unsigned slow;
    } cases[] = {
        {{{MM_PATH_CERTIFIED}, {MM_PATH_CERTIFIED}}, MM_PATH_CERTIFIED, 0, 0},
        {{{MM_PATH_REPAIRED, 3, 8, -1.0}, {MM_PATH_REPAIRED, 5, 8, 0.5}}, MM_PATH_REPAIRED, 8, 0},
        {{{MM_PATH_REPAIRED, 3, 8}, {MM_PATH_REPAIRED, 6, 8}}, MM_PATH_SIMT, 0, 4},
        {{{MM_PATH_CERTIFIED, 0, 8, -1.0}, {MM_PATH_CERTIFIED, 0, 8, 1.5}}, MM_PATH_SIMT, 0, 4},
        {{{MM_PATH_CERTIFIED}, {MM_PATH_SIMT}}, MM_PATH_SIMT, 0, 4},
    };
    open_devices((struct setting){.backend = &fake_planning});
    computes = compute_by_path;
    cuts = (struct mm_cuts){.rows = 32, .cols = 128};
    for (unsigned index = 0; index < COUNT(cases); index++) {
        memcpy(paths, cases[index].paths, sizeof paths);
        slow_shares = 0;
        divide(&jobs[0], &square, 4)->variant = mm_backend_variant(&fake_planning, MM_MATMUL, "cut");
        submit(&jobs[0]);
        job_wait(&jobs[0], MM_OK);
        assert_int_equal(jobs[0].job.outcome.path.kind, cases[index].kind);
        assert_int_equal(jobs[0].job.outcome.path.repaired, cases[index].repaired);
        assert_int_equal(slow_shares, cases[index].slow);
        assert_string_equal(jobs[0].job.outcome.ran->name, "cut");
    }
    expect_square(4);
}

static void expect_weighed(unsigned expected) {
    struct mm_job *job = divide(&jobs[0], &square, 4);
    job->weighs_devices = true;
    submit(&jobs[0]);
    job_wait(&jobs[0], MM_OK);
    assert_int_equal(job->outcome.devices, expected);
}

static void set_rates(double kernel_ns, double copy_ns) {
    for (unsigned index = 0; index < FAKES_MAX; index++) {
        for (unsigned row = 0; row < MM_FORECAST_VARIANTS_MAX; row++)
            fakes[index].device.forecast.kernel_ns[row][MM_FLOAT32] = kernel_ns;
        fakes[index].device.forecast.copy_ns = copy_ns;
    }
}

static void devices_are_weighed(void **state) {
    open_devices((struct setting){0});
    expect_weighed(1); /* no rate is known */
    set_rates(1e3, 0.0);
    expect_weighed(4);
    set_rates(1e3, 1e6); /* each device would copy half of all bytes */
    expect_weighed(4);
    set_rates(0.0, 0.0);
    close_gate(&fakes[0]);
    submit_product(&jobs[1], 2); /* makes device 0 busy */
    wait_begun(&fakes[0], 1);
    set_rates(1e3, 0.0);
    expect_weighed(3);
    for (unsigned index = 1; index < FAKES_MAX; index++)
        __atomic_store_n(&fakes[index].device.failed, index > 1, __ATOMIC_RELAXED);
    expect_weighed(1);
    open_gate(&fakes[0]);
    job_wait(&jobs[1], MM_OK);
}

static void copies_can_outweigh(void **state) {
    static const struct subject thin = {32, 256, 256, .stored = 1 << MM_OPERAND_B};
    open_devices((struct setting){0});
    set_rates(1.0, 1e3);
    struct mm_job *job = divide(&jobs[0], &thin, 4);
    job->weighs_devices = true;
    submit(&jobs[0]);
    job_wait(&jobs[0], MM_OK);
    assert_int_equal(job->outcome.devices, 1); /* each device would copy all of B */
}

/* Expects the first rows of the last product's shares. */
static void expect_first_rows(const size_t *rows, unsigned count) {
    const struct mm_share *of = ((struct mm_shares *)(void *)shares)->of;
    assert_int_equal(jobs[0].job.outcome.devices, count);
    for (unsigned index = 0; index < count; index++)
        assert_int_equal(of[index].job.product.whole.row, rows[index]);
}

/* Multiplies by a B that the first `owners` of these devices have. Copying B to another one takes copy_ms,
 * and the kernel 2.1 ms. */
static void multiply_by_owned(size_t n, unsigned devices, unsigned owners, double copy_ms,
                              const char *variant) {
    const struct subject tall = {256, n, 16, .stored = 1 << MM_OPERAND_B};
    struct mm_device_copy copies[FAKES_MAX] = {{NULL}};
    set_rates(1.0, 0.0);
    struct mm_job *job = divide(&jobs[0], &tall, devices);
    if (variant != NULL)
        job->variant = mm_backend_variant(&fake_planning, MM_MATMUL, variant);
    for (unsigned index = 0; index < devices; index++) {
        copies[index].device = &fakes[index].device;
        copies[index].data = memory[MM_OPERAND_B];
        copies[index].filled.end = stored[MM_OPERAND_B].bytes;
        copies[index].next = index + 1 < owners ? &copies[index + 1] : NULL;
        fakes[index].device.forecast.peer_ns = copy_ms * 1e6 / (double)stored[MM_OPERAND_B].bytes;
    }
    stored[MM_OPERAND_B].copies = stored[MM_OPERAND_B].only_copy = &copies[0];
    submit(&jobs[0]);
    job_wait(&jobs[0], MM_OK);
    stored[MM_OPERAND_B].copies = stored[MM_OPERAND_B].only_copy = NULL;
}

static void devices_that_copy_get_fewer_rows(void **state) {
    open_devices((struct setting){0});
    multiply_by_owned(64, 3, 1, 1.0, NULL);
    expect_first_rows((const size_t[]){0, 160, 224}, 3);
    multiply_by_owned(64, 2, 1, 0.5, NULL); /* cuts at the nearest unit to 158 rows */
    expect_first_rows((const size_t[]){0, 160}, 2);
    multiply_by_owned(64, 3, 3, 1.0, NULL);
    expect_first_rows((const size_t[]){0, 64, 160}, 3);
    multiply_by_owned(64, 3, 1, 1000.0, NULL);
    expect_first_rows((const size_t[]){0, 192, 224}, 3);
    multiply_by_owned(256, 4, 1, 0.1, NULL); /* two rows and two columns of shares stay as they are */
    expect_first_rows((const size_t[]){0, 0, 128, 128}, 4);
}

static void last_share_keeps_the_tail(void **state) {
    open_devices((struct setting){.backend = &fake_planning});
    cuts = (struct mm_cuts){.rows = 32, .cols = 64, .tail_rows = 3, .tail_cols = 1};
    multiply_by_owned(64, 2, 1, 1000.0, "cut");
    expect_first_rows((const size_t[]){0, 160}, 2);
}

static void make_square(unsigned index) {
    static char room[JOBS_MAX][sizeof shares] __attribute__((aligned(64)));
    struct mm_job *job = divide(&jobs[index], &square, FAKES_MAX);
    job->product.c.data = NULL;
    job->shares = (struct mm_shares *)(void *)room[index];
}

static void do_nothing(unsigned index) {
}

static void many_products_end_once(void **state) {
    const struct mm_backend *const backends[] = {&fake_backend, &fake_async};
    for (size_t index = 0; index < COUNT(backends); index++) {
        open_devices((struct setting){.lanes = 2, .jobs_max = 64, .backend = backends[index]});
        end_many(make_square, do_nothing);
        close_queue();
    }
}

RUN_TESTS_BETWEEN(NULL, close_scene, bits_do_not_depend_on_the_devices, share_of_a_failed_device_moves,
                  share_moves_once, failure_cancels_waiting_shares, cancelled_before_all_shares_began,
                  cancelled_while_some_shares_run, late_share_ends_the_product,
                  wrong_rows_have_the_numbers_of_the_whole, slowest_share_gives_the_times,
                  full_queue_refuses_shares, aborted_queue_ends_waiting_shares,
                  fewer_devices_compute_what_cannot_be_cut, cuts_and_tail_of_the_plan_hold,
                  all_shares_take_the_slow_path_or_none, devices_are_weighed, copies_can_outweigh,
                  devices_that_copy_get_fewer_rows, last_share_keeps_the_tail, many_products_end_once)
