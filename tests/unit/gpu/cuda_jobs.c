/* Tests whole jobs and their checks on a CUDA device. A fake CUDA runtime replaces the GPU. */
#include "cuda_job.h"

#include "gpu/product/shape.h"

static struct test_job test, other;
static struct mm_job *job = &test.job;

/* Rows of A and C get padding. */
static void pad_rows(void) {
    job->product.a.ld = 23;
    job->product.c.ld = 40;
}

static void single_job_is_copied_to_the_device_and_back(void **state) {
    job_init(&test, &ours, 9, 20, 31);
    job->is_locked = false;
    pad_rows();
    plan_job(&test);
    assert_int_equal(job->work.batch_key, 0);
    run(1, &job, 1);
    expect_product(&test);
    assert_int_equal(job->outcome.batched, 1);
    assert_int_equal(job->outcome.uploaded_bytes, (9 * 20 + 20 * 31) * 4);
    assert_int_equal(job->outcome.downloaded_bytes, 9 * 31 * 4);
    expect_spans_ms(job, 1, 2, 3);
    assert_true(mm_outcome_rate(&job->outcome) == 2.0 * 9 * 20 * 31 / 2e6);
    assert_int_equal(fake_cuda.launches, 1);
    assert_int_equal(fake_cuda.copies, 3);
}

/* The workspace does not overlap the matrices. The results of an earlier job do not appear in a later one. */
static void workspace_does_not_overlap_the_matrices(void **state) {
    job_init(&test, &scratching, 9, 20, 31);
    run(1, &job, 1);
    expect_product(&test);
    assert_int_equal(job->outcome.path.kind, MM_PATH_REPAIRED);
    assert_int_equal(job->outcome.path.repaired, 3);
    assert_true(fake_cuda.memory_used >= (9 * 20 + 20 * 31 + 9 * 31) * 4 + WORKSPACE_BYTES);
    job_init(&test, &ours, 9, 20, 31);
    run(1, &job, 1);
    expect_product(&test);
    assert_int_equal(job->outcome.path.kind, MM_PATH_NONE);
}

/* When a job that needs much memory has ended or failed, all its memory is freed. */
static void largest_jobs_free_all_memory(void **state) {
    device.head.memory_bytes = 8 * 3 * 40 * 40 * 4;
    run_square(0, 41, MM_OK);
    assert_int_equal(fake_cuda.memory_used, 0);
    fake_cuda.launch_fails = cudaErrorInvalidValue;
    run_square(0, 41, MM_INTERNAL);
    assert_int_equal(fake_cuda.memory_used, 0);
    fake_cuda.launch_fails = cudaSuccess;
    run_square(0, 20, MM_OK);
    assert_int_not_equal(fake_cuda.memory_used, 0);
}

/* A lane reserves 1.5 times what a job needs, so a slightly larger job needs no new allocation. */
static void a_lane_keeps_its_workspace(void **state) {
    static const struct {
        unsigned lane, edge, allocations;
    } cases[] = {{0, 20, 1}, {0, 20, 1}, {0, 3, 1}, {0, 22, 1}, {0, 40, 2}, {1, 3, 3}};
    for (size_t index = 0; index < COUNT(cases); index++) {
        run_square(cases[index].lane, cases[index].edge, MM_OK);
        assert_int_equal(fake_cuda.allocations, cases[index].allocations);
    }
}

/* The memory suffices for one large job but not for two. */
static void idle_lanes_give_up_their_workspaces(void **state) {
    const size_t bytes = 3 * ((44 * 44 * 4 + 255) / 256 * 256);
    fake_cuda.memory_max = bytes + 100;
    run_square(0, 44, MM_OK);
    run_square(1, 44, MM_OK);
    assert_int_equal(fake_cuda.memory_used, bytes);
    assert_int_equal(mm_cuda_memory_free(&device.head), bytes + 100);
    job_init(&test, &ours, 40, 40, 40);
    mm_cuda_begin(&device.head, 1, &job, 1);
    assert_int_equal(job->work.error.status, MM_OK);
    assert_false(mm_cuda_memory_free(&device.head) > 100);
    run_square(0, 44, MM_NO_DEVICE_MEMORY);
    mm_cuda_end(&device.head, 1, &job, 1);
    expect_product(&test);
    run_square(0, 44, MM_OK);
}

/* If the launch of a batch fails, all its jobs fail. The lane remains usable. */
static void failed_launch_fails_its_batch(void **state) {
    struct mm_job *const jobs[2] = {&test.job, &other.job};
    for (int is_late = 0; is_late < 2; is_late++) {
        job_init(&test, &ours, 17, 17, 17);
        job_init(&other, &ours, 17, 17, 17);
        plan_job(&test);
        plan_job(&other);
        fake_cuda.launch_fails = is_late ? cudaSuccess : cudaErrorInvalidValue;
        mm_cuda_begin(&device.head, 0, jobs, 2);
        if (is_late) {
            fake_cuda.is_late = true;
            assert_false(mm_cuda_is_over(&device.head, 0));
            fake_cuda.is_late = false;
            assert_true(mm_cuda_is_over(&device.head, 0));
            fake_cuda.event_fails = cudaErrorIllegalAddress;
            assert_true(mm_cuda_is_over(&device.head, 0));
            mm_cuda_end(&device.head, 0, jobs, 2);
        }
        assert_int_equal(jobs[0]->work.error.status, MM_INTERNAL);
        assert_int_equal(jobs[1]->work.error.status, MM_INTERNAL);
        assert_false(device.lanes[0].is_busy);
        fake_cuda.launch_fails = fake_cuda.event_fails = cudaSuccess;
        run_square(0, 17, MM_OK);
    }
}

/* Makes the forecast expect that the product takes `ms` milliseconds, whatever the variant. */
static void foretell_ms(const struct mm_product *product, double ms) {
    double(*rates)[MM_DTYPE_COUNT] = device.head.forecast.kernel_ns;
    for (unsigned row = 0; row < MM_FORECAST_VARIANTS_MAX; row++)
        rates[row][MM_FLOAT32] = 1.0;
    const double ns = mm_forecast_kernel_ns(&device.head, &ours, product);
    for (unsigned row = 0; row < MM_FORECAST_VARIANTS_MAX; row++)
        rates[row][MM_FLOAT32] = ms * 1e6 / ns;
}

/* Begins a product of 60 rows, which are four rows of blocks that take about 100 ms each. */
static void begin_long(bool turned) {
    job_init(&test, &ours, 60, 20, 31);
    job->is_locked = false;
    if (turned)
        transpose_job(&test);
    plan_job(&test);
    foretell_ms(&job->product, 399.0);
    fake_cuda.launches = fake_cuda.copies = 0;
    mm_cuda_begin(&device.head, 0, &job, 1);
    assert_int_equal(job->work.error.status, MM_OK);
}

/* Each band is launched when the previous one has ended, and has its own time limit. C is copied last. */
static void a_long_product_is_launched_in_bands(void **state) {
    for (int turned = 0; turned < 2; turned++) {
        begin_long(turned != 0);
        for (unsigned band = 1; band <= 4; band++) {
            assert_int_equal(fake_cuda.launches, band);
            assert_int_equal(fake_cuda.copies, band < 4 ? 2 : 3);
            fake_cuda.is_late = true;
            assert_false(mm_cuda_is_over(&device.head, 0));
            assert_int_equal(fake_cuda.launches, band);
            fake_cuda.is_late = false;
            job->work.seen_ns = 1;
            assert_true(mm_cuda_is_over(&device.head, 0) == (band == 4));
            assert_int_equal(job->work.seen_ns, band == 4 ? 1 : 0);
        }
        mm_cuda_end(&device.head, 0, &job, 1);
        expect_product(&test);
        assert_int_equal(job->outcome.span_ns[MM_SPAN_KERNEL], 2000000);
        begin_long(turned != 0);
        mm_cuda_end(&device.head, 0, &job, 1); /* also works without calls of mm_cuda_is_over */
        expect_product(&test);
        assert_int_equal(fake_cuda.launches, 4);
    }
}

/* The stack has 130 products of 3×3 and no kernel for stacks. The products are launched one by one, in bands
 * of about 100 ms, and checked in steps. */
static void a_stack_is_launched_and_checked_in_parts(void **state) {
    enum { COUNT_OF_STACK = 130, EDGE = 3 };
    static const struct {
        double ms;
        unsigned bands, launches; /* launches of the first band */
    } cases[] = {{50.0, 1, 130}, {250.0, 3, 55}, {13000.0, 130, 1}};
    const struct mm_shape shape = {3, {COUNT_OF_STACK, EDGE, EDGE}};
    const struct mm_shape *const shapes[MM_OPERANDS_MAX] = {&shape, &shape};
    struct mm_stack stack;
    for (size_t index = 0; index < COUNT(cases); index++) {
        job_init(&test, &alone, EDGE, EDGE, EDGE);
        job->product.a = mm_shape_view(&shape, false, MM_FLOAT32);
        job->product.b = job->product.a;
        job->product.a.data = test.a;
        job->product.b.data = test.b;
        assert_int_equal(mm_shape_conform(MM_MATMUL, shapes, &job->product, &stack, NULL), MM_OK);
        job->product.c.data = test.c;
        job->verify = true;
        plan_job(&test);
        foretell_ms(&job->product, cases[index].ms);
        mm_cuda_begin(&device.head, 0, &job, 1);
        assert_int_equal(fake_cuda.launches, cases[index].launches);
        unsigned steps = 1;
        while (!mm_cuda_is_over(&device.head, 0))
            steps++;
        /* The check begins in the step of the last band. */
        assert_int_equal(steps, cases[index].bands + 2);
        mm_cuda_end(&device.head, 0, &job, 1);
        assert_int_equal(job->work.error.status, MM_OK);
        assert_int_equal(fake_cuda.launches, COUNT_OF_STACK);
        assert_int_equal(fake_cuda.checks, 3);
        for (size_t product = 0; product < COUNT_OF_STACK; product++)
            for (size_t row = 0; row < EDGE; row++)
                for (size_t col = 0; col < EDGE; col++) {
                    const float *a = test.a + (product * EDGE + row) * EDGE;
                    const float *b = test.b + product * EDGE * EDGE + col;
                    assert_float_equal(test.c[(product * EDGE + row) * EDGE + col],
                                       a[0] * b[0] + a[1] * b[EDGE] + a[2] * b[2 * EDGE], 0.0f);
                }
        drop(NULL);
        reset(NULL);
    }
}

/* The second band fails, or the job is cancelled during it. */
static void no_band_follows_a_failed_or_cancelled_one(void **state) {
    for (int fails = 0; fails < 2; fails++) {
        begin_long(false);
        if (fails) {
            fake_cuda.launch_fails = cudaErrorInvalidValue;
        } else {
            assert_false(mm_cuda_is_over(&device.head, 0));
            __atomic_store_n(&job->work.is_cancelled, true, __ATOMIC_RELAXED);
        }
        assert_true(mm_cuda_is_over(&device.head, 0));
        mm_cuda_end(&device.head, 0, &job, 1);
        assert_int_equal(job->work.error.status, fails ? MM_INTERNAL : MM_STOPPING);
        assert_int_equal(fake_cuda.launches, fails ? 1 : 2);
        assert_int_equal(fake_cuda.copies, 2);
        assert_false(device.lanes[0].is_busy);
        fake_cuda.launch_fails = cudaSuccess;
        run_square(0, 17, MM_OK);
    }
}

/* With fewer rows this variant divides k differently. Bands would then change the bits of C. */
static enum mm_status plan_by_splits(const struct mm_product *product, struct mm_plan *plan,
                                     struct mm_error *error) {
    plan->layout = (struct mm_layout){.kernel = &fake_kernels.plain,
                                      .block_rows = FAKE_BLOCK,
                                      .block_cols = FAKE_BLOCK,
                                      .split_depth = product->m < 30 ? 10 : 20};
    return MM_OK;
}

/* Like fp32_tensor, this variant does not compute C in blocks of whole rows. */
static enum mm_status plan_without_rows(const struct mm_product *product, struct mm_plan *plan,
                                        struct mm_error *error) {
    plan->layout = (struct mm_layout){.kernel = &fake_kernels.plain};
    return MM_OK;
}

static void bands_keep_the_same_bits(void **state) {
    static const struct mm_variant parted = {.name = "parted", .plan[MM_FLOAT32] = plan_by_splits};
    static const struct mm_variant no_rows = {.name = "no_rows", .plan[MM_FLOAT32] = plan_without_rows};
    static const struct {
        const struct mm_variant *variant;
        size_t m;
        double ms;
        size_t rows;
    } cases[] = {{&ours, 60, 99.0, 60},
                 {&ours, 60, 101.0, 32},
                 {&parted, 64, 399.0, 32}, /* a band of 16 rows would divide k differently */
                 {&parted, 60, 399.0, 60}, /* after a band of 32, only 28 rows would remain */
                 {&no_rows, 60, 399.0, 60}};
    for (size_t index = 0; index < COUNT(cases); index++) {
        job_init(&test, cases[index].variant, cases[index].m, 20, 31);
        foretell_ms(&job->product, cases[index].ms);
        assert_int_equal(mm_cuda_band_rows(&job->plan, &job->product), cases[index].rows);
    }
}

static bool fills_device(const struct mm_variant *variant, bool verify) {
    job->variant = variant;
    job->verify = verify;
    plan_job(&test);
    return job->work.is_exclusive;
}

/* A job with much memory runs alone. The workspace and the check count as its memory too. */
static void largest_jobs_run_alone(void **state) {
    const size_t matrices = 8 * 3 * 40 * 40 * 4;
    job_init(&test, &ours, 40, 40, 40);
    const size_t check = 8 * mm_cuda_aligned(mm_cuda_verify_bytes(&job->product));
    device.head.memory_bytes = matrices;
    assert_false(fills_device(&ours, false));
    assert_true(fills_device(&ours, true));
    device.head.memory_bytes = matrices - 8;
    assert_true(fills_device(&ours, false));
    device.head.memory_bytes = matrices - 8 + 8 * WORKSPACE_BYTES;
    assert_false(fills_device(&ours, false));
    assert_true(fills_device(&scratching, false));
    device.head.memory_bytes = matrices + check;
    assert_false(fills_device(&ours, true));
    device.head.memory_bytes -= 8;
    assert_true(fills_device(&ours, true));
}

/* The job's rows have padding, so the check must read the device's matrices. */
static void check_counts_in_no_span(void **state) {
    job_init(&test, &ours, 9, 20, 31);
    job->verify = true;
    pad_rows();
    run(1, &job, 1);
    expect_product(&test);
    assert_int_equal(fake_cuda.checks, 1);
    assert_true(job->outcome.verification.is_done);
    assert_int_equal(mm_verification_verdict(&job->outcome.verification), MM_VERDICT_PASSED);
    assert_int_equal(job->outcome.verification.rows_checked, 9);
    assert_int_equal(job->outcome.verification.took_ns, 4000000);
    expect_spans_ms(job, 1, 2, 3);
    assert_int_equal(job->outcome.downloaded_bytes, 9 * 31 * 4);
    assert_int_equal(device.lanes[1].last, MM_CUDA_VERIFIED);
    job_init(&test, &alone, 9, 20, 31); /* the next job in the lane has no check */
    run(1, &job, 1);
    assert_false(job->outcome.verification.is_done);
    assert_int_equal(fake_cuda.checks, 1);
    assert_int_equal(device.lanes[1].last, MM_CUDA_DOWNLOADED);
}

static void a_check_that_cannot_be_done_fails_the_job(void **state) {
    job_init(&test, &ours, 9, 20, 31);
    job->verify = true;
    fake_cuda.check_fails = cudaErrorInvalidValue;
    mm_cuda_begin(&device.head, 0, &job, 1);
    assert_int_equal(job->work.error.status, MM_INTERNAL);
    assert_false(device.lanes[0].is_busy);
    fake_cuda.check_fails = cudaSuccess;
    job->work.error.status = MM_OK;
    run(0, &job, 1); /* begins with the first part again */
    expect_product(&test);
    assert_int_equal(fake_cuda.launches, 2);
    run_square(0, 17, MM_OK);
}

RUN_TESTS_BETWEEN(reset, drop, single_job_is_copied_to_the_device_and_back,
                  workspace_does_not_overlap_the_matrices, largest_jobs_free_all_memory,
                  a_lane_keeps_its_workspace, idle_lanes_give_up_their_workspaces,
                  failed_launch_fails_its_batch, largest_jobs_run_alone, a_long_product_is_launched_in_bands,
                  a_stack_is_launched_and_checked_in_parts, no_band_follows_a_failed_or_cancelled_one,
                  bands_keep_the_same_bits, check_counts_in_no_span,
                  a_check_that_cannot_be_done_fails_the_job)
