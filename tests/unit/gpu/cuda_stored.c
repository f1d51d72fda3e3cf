/* Jobs of a CUDA device whose B is a stored value (gpu/cuda/replica.c, run.c, batch.c), on a made-up CUDA
 * runtime: the value is copied to the device once, and jobs after the first may share a launch. No GPU takes
 * part. */
#include "cuda_job.h"
#include "gpu/store/store.h"

enum { A_BYTES = 18 * 20 * 4, B_BYTES = 20 * 17 * 4 };

static struct test_job tests[2];
static struct mm_job *const jobs[2] = {&tests[0].job, &tests[1].job};
static struct mm_stored value;

/* 18×20 times 20×17 products by the same B, which only the value has. */
static void make(unsigned index) {
    struct test_job *test = &tests[index];
    job_init(test, &ours, 18, 20, 17);
    if (value.data == NULL)
        value = (struct mm_stored){.data = test->b, .bytes = B_BYTES};
    test->job.b_source = (struct mm_source){.kind = MM_SOURCE_STORED, .stored = &value};
    memcpy(test->b, value.data, B_BYTES); /* for expect_product */
    test->job.product.b.data = value.data;
    plan_job(test);
}

/* uploaded_bytes: all of the jobs. */
static void run_and_expect(unsigned count, unsigned copies, size_t uploaded_bytes) {
    size_t uploaded = 0;
    fake_cuda.copies = fake_cuda.gathers = 0;
    run(0, jobs, count);
    for (unsigned index = 0; index < count; index++) {
        assert_int_equal(jobs[index]->error.status, MM_OK);
        expect_product(&tests[index]);
        uploaded += jobs[index]->uploaded_bytes;
    }
    assert_int_equal(uploaded, uploaded_bytes);
    assert_int_equal(fake_cuda.copies, copies);
}

/* The value ends. */
static void release(void) {
    struct mm_replica *replica;
    while ((replica = value.replicas) != NULL) {
        value.replicas = replica->next;
        replica->release(replica);
    }
    assert_int_equal(device.replica_bytes, 0);
    assert_int_equal(fake_cuda.events, 0);
    value = (struct mm_stored){.data = NULL};
}

static void it_is_copied_once(void **state) {
    make(0);
    assert_int_equal(jobs[0]->plan.batch_key, 0); /* nobody has copied it yet */
    run_and_expect(1, 3, A_BYTES + B_BYTES);
    make(0);
    make(1);
    assert_int_not_equal(jobs[0]->plan.batch_key, 0);
    run_and_expect(2, 0, 2 * A_BYTES); /* A is gathered */
    assert_int_equal(fake_cuda.batches, 1);
    make(0);
    jobs[0]->plan.batch_key = 0;
    fake_cuda.is_late = true; /* another lane copies it still */
    run_and_expect(1, 2, A_BYTES);
    fake_cuda.is_late = false;
    assert_int_equal(device.replica_bytes, B_BYTES);
    release();
}

/* Dropped between the plan and the launch, it is copied again. */
static void it_gives_way_to_jobs(void **state) {
    make(0);
    run_and_expect(1, 3, A_BYTES + B_BYTES);
    make(0);
    make(1);
    mm_cuda_trim(&device);
    assert_int_equal(fake_cuda.memory_used, 0);
    run_and_expect(2, 1, 2 * A_BYTES);
    release();
}

static void too_large_ones_are_uploaded(void **state) {
    device.head.memory_bytes = 4 * (B_BYTES - 1);
    for (unsigned turn = 0; turn < 2; turn++) {
        make(0);
        assert_int_equal(jobs[0]->plan.batch_key, 0);
        run_and_expect(1, 3, A_BYTES + B_BYTES);
    }
    assert_int_equal(device.replica_bytes, 0);
    release();
}

static void it_outlives_the_device(void **state) {
    make(0);
    run_and_expect(1, 3, A_BYTES + B_BYTES);
    mm_cuda_drop_replicas(&device, true);
    release();
}

RUN_TESTS_BETWEEN(reset, drop, it_is_copied_once, it_gives_way_to_jobs, too_large_ones_are_uploaded,
                  it_outlives_the_device)
