/* Tests jobs on a fake CUDA runtime whose operands are generated, or whose C is not returned. */
#include "cuda_job.h"

static struct test_job tests[2];
static struct mm_job *const jobs[2] = {&tests[0].job, &tests[1].job};

/* Makes a product of 18×20 by 20×17. Matrices that are generated or not returned have no host memory. */
static void make(unsigned index, bool makes_a, bool makes_b, bool wants_c) {
    struct test_job *test = &tests[index];
    struct mm_job *job = &test->job;
    const struct mm_source uniform = {MM_SOURCE_UNIFORM, 5 + index, 18, NULL},
                           identity = {MM_SOURCE_IDENTITY, 0, 20, NULL};
    job_init(test, &ours, 18, 20, 17);
    if (makes_a) {
        job->product.a.data = test->a;
        (void)mm_source_generate(&uniform, &job->product.a, 0, 18 * 20, NULL);
        job->product.a.data = NULL;
        job->sources[MM_OPERAND_A] = uniform;
    }
    if (makes_b) {
        job->product.b.data = test->b;
        (void)mm_source_generate(&identity, &job->product.b, 0, 20 * 17, NULL);
        job->product.b.data = NULL;
        job->sources[MM_OPERAND_B] = identity;
    }
    if (!wants_c)
        job->product.c.data = NULL;
    plan_job(test);
}

static void single_job_copies_only_what_it_must(void **state) {
    for (unsigned bits = 0; bits < 8; bits++) {
        struct mm_job *job = jobs[0];
        const bool makes_a = bits & 1, makes_b = bits & 2, wants_c = bits & 4;
        make(0, makes_a, makes_b, wants_c);
        job->work.batch_key = 0;
        fake_cuda.copies = fake_cuda.makes = 0;
        run(0, jobs, 1);
        assert_int_equal(job->work.error.status, MM_OK);
        assert_int_equal(fake_cuda.copies, !makes_a + !makes_b + wants_c);
        assert_int_equal(fake_cuda.makes, makes_a + makes_b);
        assert_int_equal(job->outcome.uploaded_bytes,
                         (makes_a ? 0 : 18 * 20 * 4) + (makes_b ? 0 : 20 * 17 * 4));
        assert_int_equal(job->outcome.downloaded_bytes, wants_c ? 18 * 17 * 4 : 0);
        assert_int_equal(mm_job_copied_bytes(job),
                         job->outcome.uploaded_bytes + job->outcome.downloaded_bytes);
        expect_spans_ms(job, 1, 2, 3);
        if (wants_c)
            expect_product(&tests[0]);
    }
}

/* The first job generates A and B and returns nothing. The second generates B and reads A. */
static void generated_operands_share_launches(void **state) {
    make(0, true, true, false);
    make(1, false, true, true);
    assert_int_not_equal(jobs[0]->work.batch_key, 0);
    assert_true(jobs[0]->work.batch_key == jobs[1]->work.batch_key);
    run(0, jobs, 2);
    assert_int_equal(jobs[0]->work.error.status, MM_OK);
    expect_product(&tests[1]);
    assert_int_equal(fake_cuda.batches, 1);
    assert_int_equal(fake_cuda.launches, 0);
    assert_int_equal(fake_cuda.copies, 0);
    assert_int_equal(fake_cuda.makes, 2); /* one launch generates all A, another all B */
    assert_int_equal(fake_cuda.gathers, 1);
    assert_int_equal(jobs[0]->outcome.uploaded_bytes, 0);
    assert_int_equal(jobs[1]->outcome.uploaded_bytes, 18 * 20 * 4);
    assert_int_equal(jobs[0]->outcome.batched, 2);
}

static void check_reads_generated_operands(void **state) {
    make(0, true, true, false);
    jobs[0]->verify = true;
    plan_job(&tests[0]);
    assert_int_equal(jobs[0]->work.batch_key, 0);
    run(0, jobs, 1);
    assert_int_equal(jobs[0]->work.error.status, MM_OK);
    assert_int_equal(fake_cuda.copies, 0);
    assert_int_equal(mm_verification_verdict(&jobs[0]->outcome.verification), MM_VERDICT_PASSED);
}

/* The job returns rows 3 to 11 and columns 2 to 7, reduces them, or both. It runs alone. */
static void only_the_requested_part_is_copied(void **state) {
    static const struct mm_window part = {1, 18, 17, 3, 9, 2, 6};
    for (unsigned bits = 0; bits < 4; bits++) {
        static struct test_job whole;
        struct mm_job *job = jobs[0], *of_whole = &whole.job;
        const bool reduces = bits & 1, wants_c = bits & 2;
        make(0, true, false, wants_c);
        job->part = &part;
        job->reduces = reduces;
        plan_job(&tests[0]);
        assert_int_equal(job->work.batch_key, 0);
        fake_cuda.copies = fake_cuda.reductions = 0;
        run(0, jobs, 1);
        assert_int_equal(job->work.error.status, MM_OK);
        assert_int_equal(fake_cuda.copies, 1 + wants_c);
        assert_int_equal(fake_cuda.reductions, reduces);
        assert_int_equal(job->outcome.downloaded_bytes, wants_c ? 9 * 6 * 4 : 0);
        job_init(&whole, &ours, 18, 20, 17);
        memcpy(whole.a, tests[0].a, sizeof whole.a);
        run(1, &of_whole, 1);
        struct mm_reduction seen = mm_reduction_none();
        struct mm_reduction_progress done = {0};
        (void)mm_reduce_part(&seen, &done, &part, MM_FLOAT32, whole.c, SIZE_MAX);
        if (reduces)
            assert_memory_equal(&seen, &job->outcome.reduction, sizeof seen);
        for (size_t index = 0; index < 9 * 6 && wants_c; index++)
            assert_true(tests[0].c[index] == whole.c[(index / 6 + 3) * 17 + index % 6 + 2]);
    }
}

/* A part of a stack is copied in one call, or in one call for each matrix if its rows are too long. */
static void parts_of_a_stack_are_copied_together(void **state) {
    static const struct mm_window part = {3, 4, 5, 1, 2, 2, 3};
    float from[3 * 4 * 5], to[3 * 2 * 3 + 1];
    for (size_t index = 0; index < COUNT(from); index++)
        from[index] = (float)index;
    for (int is_long = 0; is_long < 2; is_long++) {
        device.pitch_bytes_max = is_long ? 5 * 4 - 1 : 5 * 4;
        fake_cuda.copies = 0;
        memset(to, 0xff, sizeof to);
        assert_int_equal(mm_cuda_copy_part(to, from, MM_FLOAT32, &part, &device.lanes[0]), cudaSuccess);
        assert_int_equal(fake_cuda.copies, is_long ? 3 * 2 : 1);
        for (size_t index = 0; index < 18; index++)
            assert_true(to[index] == (float)((index / 6 * 4 + index / 3 % 2 + 1) * 5 + index % 3 + 2));
        assert_true(to[18] != to[18]);
    }
}

RUN_TESTS_BETWEEN(reset, drop, single_job_copies_only_what_it_must, only_the_requested_part_is_copied,
                  parts_of_a_stack_are_copied_together, generated_operands_share_launches,
                  check_reads_generated_operands)
