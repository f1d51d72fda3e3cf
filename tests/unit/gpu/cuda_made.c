/* Jobs of a CUDA device whose operands are made there, and whose C no one wants (gpu/cuda/run.c, batch.c), on
 * a made-up CUDA runtime: nothing is copied, and no memory of the host is touched. No GPU takes part. */
#include "cuda_job.h"

static struct test_job tests[2];
static struct mm_job *const jobs[2] = {&tests[0].job, &tests[1].job};

/* An 18×20 times 20×17 product. The data of what is made, and of C if it is not wanted, is NULL. */
static void make(unsigned index, bool makes_a, bool makes_b, bool wants_c) {
    struct test_job *test = &tests[index];
    struct mm_job *job = &test->job;
    const struct mm_source uniform = {MM_SOURCE_UNIFORM, 5 + index, 18},
                           identity = {MM_SOURCE_IDENTITY, 0, 20};
    job_init(test, &ours, 18, 20, 17);
    if (makes_a) {
        job->product.a.data = test->a;
        mm_source_make(&uniform, &job->product.a, 0, 18 * 20);
        job->product.a.data = NULL;
        job->a_source = uniform;
    }
    if (makes_b) {
        job->product.b.data = test->b;
        mm_source_make(&identity, &job->product.b, 0, 20 * 17);
        job->product.b.data = NULL;
        job->b_source = identity;
    }
    if (!wants_c)
        job->product.c.data = NULL;
    plan_job(test);
}

static void one_alone_copies_only_what_it_must(void **state) {
    for (unsigned bits = 0; bits < 8; bits++) {
        struct mm_job *job = jobs[0];
        const bool makes_a = bits & 1, makes_b = bits & 2, wants_c = bits & 4;
        make(0, makes_a, makes_b, wants_c);
        job->plan.batch_key = 0;
        fake_cuda.copies = fake_cuda.makes = 0;
        run(0, jobs, 1);
        assert_int_equal(job->error.status, MM_OK);
        assert_int_equal(fake_cuda.copies, !makes_a + !makes_b + wants_c);
        assert_int_equal(fake_cuda.makes, makes_a + makes_b);
        assert_int_equal(job->uploaded_bytes, (makes_a ? 0 : 18 * 20 * 4) + (makes_b ? 0 : 20 * 17 * 4));
        assert_int_equal(job->downloaded_bytes, wants_c ? 18 * 17 * 4 : 0);
        assert_int_equal(mm_job_copied_bytes(job), job->uploaded_bytes + job->downloaded_bytes);
        expect_spans_ms(job, 1, 2, 3);
        if (wants_c)
            expect_product(&tests[0]);
    }
}

/* The first makes both operands and returns nothing; the second makes B, and its A is gathered. */
static void they_share_launches(void **state) {
    make(0, true, true, false);
    make(1, false, true, true);
    assert_int_not_equal(jobs[0]->plan.batch_key, 0);
    assert_true(jobs[0]->plan.batch_key == jobs[1]->plan.batch_key);
    run(0, jobs, 2);
    assert_int_equal(jobs[0]->error.status, MM_OK);
    expect_product(&tests[1]);
    assert_int_equal(fake_cuda.batches, 1);
    assert_int_equal(fake_cuda.launches, 0);
    assert_int_equal(fake_cuda.copies, 0);
    assert_int_equal(fake_cuda.makes, 2); /* all of A's in one launch, all of B's in another */
    assert_int_equal(fake_cuda.gathers, 1);
    assert_int_equal(jobs[0]->uploaded_bytes, 0);
    assert_int_equal(jobs[1]->uploaded_bytes, 18 * 20 * 4);
    assert_int_equal(jobs[0]->batched, 2);
}

static void a_check_reads_what_was_made(void **state) {
    make(0, true, true, false);
    jobs[0]->verify = true;
    plan_job(&tests[0]);
    assert_int_equal(jobs[0]->plan.batch_key, 0);
    run(0, jobs, 1);
    assert_int_equal(jobs[0]->error.status, MM_OK);
    assert_int_equal(fake_cuda.copies, 0);
    assert_int_equal(mm_verification_verdict(&jobs[0]->verification), MM_VERDICT_PASSED);
}

RUN_TESTS_BETWEEN(reset, drop, one_alone_copies_only_what_it_must, they_share_launches,
                  a_check_reads_what_was_made)
