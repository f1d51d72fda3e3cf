/* Tests jobs with a stored B or C. A stored value is copied to the fake device only once. */
#include "cuda_job.h"
#include "gpu/store/store.h"

enum { A_BYTES = 18 * 20 * 4, B_BYTES = 20 * 17 * 4 };

static struct test_job tests[2];
static struct mm_job *const jobs[2] = {&tests[0].job, &tests[1].job};
static struct mm_stored value;

/* Makes a product of 18×20 by 20×17 whose B is stored. */
static void make(unsigned index) {
    struct test_job *test = &tests[index];
    job_init(test, &ours, 18, 20, 17);
    if (value.data == NULL)
        value = (struct mm_stored){.data = test->b, .bytes = B_BYTES};
    test->job.sources[MM_OPERAND_B] = (struct mm_source){.kind = MM_SOURCE_STORED, .stored = &value};
    memcpy(test->b, value.data, B_BYTES); /* expect_product reads it */
    test->job.product.b.data = value.data;
    plan_job(test);
}

/* Runs `count` jobs. Expects this number of copies and this sum of uploaded bytes. */
static void run_and_expect(unsigned count, unsigned copies, size_t uploaded_bytes) {
    size_t uploaded = 0;
    fake_cuda.copies = fake_cuda.gathers = 0;
    run(0, jobs, count);
    for (unsigned index = 0; index < count; index++) {
        assert_int_equal(jobs[index]->work.error.status, MM_OK);
        expect_product(&tests[index]);
        uploaded += jobs[index]->outcome.uploaded_bytes;
    }
    assert_int_equal(uploaded, uploaded_bytes);
    assert_int_equal(fake_cuda.copies, copies);
}

static void release(void) {
    release_copies(&value);
    value = (struct mm_stored){.data = NULL};
}

/* Computes C by four shares. Each reads its columns of B in the copy of the whole B, and A is generated. */
static void shares_read_their_parts(void **state) {
    const struct mm_source uniform = {.kind = MM_SOURCE_UNIFORM, .seed = 9};
    make(0);
    (void)mm_source_generate(&uniform, &jobs[0]->product.a, 0, 18 * 20, NULL);
    fake_cuda.copies = 0;
    for (unsigned part = 0; part < 4; part++) {
        const size_t row = part / 2 * 7, rows = part < 2 ? 7 : 11, col = part % 2 * 12,
                     cols = part % 2 ? 5 : 12;
        struct mm_job *job = jobs[1];
        *job = *jobs[0];
        job->product = mm_product_part(&jobs[0]->product, MM_MATMUL, row, rows, col, cols);
        job->product.a.data = NULL;
        job->product.whole = (struct mm_whole){18, 17, row, col};
        job->sources[MM_OPERAND_A] = uniform;
        job->sources[MM_OPERAND_A].first = row * 20;
        job->sources[MM_OPERAND_B].first = col;
        job->sources[MM_OPERAND_B].gap = 17 - cols;
        plan_job(&tests[1]);
        assert_int_equal(job->work.batch_key, 0);
        run(0, &jobs[1], 1);
        assert_int_equal(job->work.error.status, MM_OK);
        assert_int_equal(job->outcome.uploaded_bytes, part == 0 ? B_BYTES : 0);
    }
    expect_product(&tests[0]);
    assert_int_equal(fake_cuda.copies, 1 + 4); /* B, and each share's block of C */
    release();
}

/* Shares copy only their rows of A, and only those that earlier shares did not copy. */
static void shares_copy_their_rows(void **state) {
    static const struct {
        size_t row, rows, copied_rows;
    } cases[] = {{7, 4, 4}, {8, 2, 0}, {5, 9, 5}, {0, 18, 9}};
    job_init(&tests[0], &ours, 18, 20, 17);
    value = (struct mm_stored){.data = tests[0].a, .bytes = A_BYTES};
    for (unsigned index = 0; index < sizeof cases / sizeof *cases; index++) {
        struct mm_job *job = jobs[1];
        *job = *jobs[0];
        job->product =
            mm_product_part(&jobs[0]->product, MM_MATMUL, cases[index].row, cases[index].rows, 0, 17);
        job->product.whole = (struct mm_whole){18, 17, cases[index].row, 0};
        job->sources[MM_OPERAND_A] =
            (struct mm_source){.kind = MM_SOURCE_STORED, .stored = &value, .first = cases[index].row * 20};
        plan_job(&tests[1]);
        run(0, &jobs[1], 1);
        assert_int_equal(job->work.error.status, MM_OK);
        assert_int_equal(job->outcome.uploaded_bytes, cases[index].copied_rows * 80 + B_BYTES);
    }
    expect_product(&tests[0]);
    release();
}

static void stored_operand_is_copied_once(void **state) {
    make(0);
    assert_int_equal(jobs[0]->work.batch_key, 0); /* the device has no copy of B yet */
    run_and_expect(1, 3, A_BYTES + B_BYTES);
    make(0);
    make(1);
    assert_int_not_equal(jobs[0]->work.batch_key, 0);
    run_and_expect(2, 0, 2 * A_BYTES); /* only A is copied */
    assert_int_equal(fake_cuda.batches, 1);
    make(0);
    jobs[0]->work.batch_key = 0;
    fake_cuda.is_late = true; /* another lane is still copying B */
    run_and_expect(1, 2, A_BYTES);
    fake_cuda.is_late = false;
    assert_int_equal(device.copy_bytes, B_BYTES);
    release();
}

/* If the device copy is freed between planning and launch, the value is copied again. */
static void device_copy_is_freed_for_jobs(void **state) {
    make(0);
    run_and_expect(1, 3, A_BYTES + B_BYTES);
    make(0);
    make(1);
    mm_cuda_trim(&device);
    assert_int_equal(fake_cuda.memory_used, 0);
    run_and_expect(2, 1, 2 * A_BYTES + B_BYTES);
    release();
}

/* Without memory for a device copy, each job copies the value into its own workspace. */
static void without_a_device_copy_each_job_copies(void **state) {
    make(0);
    run_and_expect(1, 3, A_BYTES + B_BYTES);
    make(0);
    make(1);
    mm_cuda_trim(&device);
    device.head.memory_bytes = 4 * (B_BYTES - 1);
    run_and_expect(2, 2, 2 * (A_BYTES + B_BYTES));
    assert_int_equal(fake_cuda.batches, 1);
    release();
}

/* If a value has no device copy, the job needs memory for A and B, even if it was planned for a batch. */
static void error_names_the_memory_for_both_operands(void **state) {
    const size_t needed = mm_cuda_aligned(A_BYTES) + mm_cuda_aligned(B_BYTES);
    for (unsigned count = 1; count <= 2; count++) {
        fake_cuda.memory_max = (size_t)1 << 20;
        device.head.memory_bytes = (size_t)1 << 20;
        make(0);
        run_and_expect(1, 3, A_BYTES + B_BYTES);
        make(0);
        make(1);
        mm_cuda_trim(&device);
        device.head.memory_bytes = 4 * (B_BYTES - 1);
        fake_cuda.memory_max = needed - 1;
        mm_cuda_begin(&device.head, 0, jobs, count);
        for (unsigned index = 0; index < count; index++) {
            assert_int_equal(jobs[index]->work.error.status, MM_NO_DEVICE_MEMORY);
            assert_int_equal(jobs[index]->work.error.needed_bytes, needed);
            assert_int_equal(jobs[index]->work.error.free_bytes, needed - 1);
        }
        release();
    }
}

static void too_large_values_are_uploaded(void **state) {
    device.head.memory_bytes = 4 * (B_BYTES - 1);
    for (unsigned turn = 0; turn < 2; turn++) {
        make(0);
        assert_int_equal(jobs[0]->work.batch_key, 0);
        run_and_expect(1, 3, A_BYTES + B_BYTES);
    }
    assert_int_equal(device.copy_bytes, 0);
    release();
}

static void value_outlives_the_device(void **state) {
    make(0);
    run_and_expect(1, 3, A_BYTES + B_BYTES);
    mm_cuda_drop_copies(&device, true);
    release();
}

/* Data derived from a stored value is kept if a second job needs it. The data is freed with the device copy.
 */
static void derived_data_is_kept(void **state) {
    struct mm_lane *lane = &device.lanes[0];
    bool is_filled = true;
    make(0);
    run_and_expect(1, 3, A_BYTES + B_BYTES);
    const void *from = value.copies->data;
    lane->bands.job = jobs[0];
    assert_null(mm_cuda_acquire_derived(lane, 0, tests[0].a, 7, 100, &is_filled)); /* A is not stored */
    assert_null(mm_cuda_acquire_derived(lane, 1, tests[0].b, 7, 100, &is_filled));
    assert_null(mm_cuda_acquire_derived(lane, 1, from, 7, 100, &is_filled));
    void *derived = mm_cuda_acquire_derived(lane, 1, from, 7, 100, &is_filled);
    assert_non_null(derived);
    assert_false(is_filled); /* a failed job has not filled the data */
    assert_ptr_equal(mm_cuda_acquire_derived(lane, 1, from, 7, 100, &is_filled), derived);
    assert_false(is_filled);
    assert_int_equal(mm_cuda_note_derived(lane, 1), cudaSuccess);
    assert_ptr_equal(mm_cuda_acquire_derived(lane, 1, from, 7, 100, &is_filled), derived);
    assert_true(is_filled);
    assert_null(mm_cuda_acquire_derived(lane, 1, from, 8, 100, &is_filled));
    assert_null(mm_cuda_acquire_derived(lane, 1, from, 7, 101, &is_filled));
    assert_int_equal(device.copy_bytes, B_BYTES + 100);
    lane->bands.job = NULL;
    assert_null(mm_cuda_acquire_derived(lane, 1, from, 7, 100, &is_filled));
    mm_cuda_trim(&device);
    assert_int_equal(device.copy_bytes, 0);
    assert_int_equal(fake_cuda.memory_used, 0);
    make(0);
    run_and_expect(1, 3, A_BYTES + B_BYTES);
    lane->bands.job = jobs[0];
    device.head.memory_bytes = 4 * (B_BYTES + 99);
    assert_null(mm_cuda_acquire_derived(lane, 1, value.copies->data, 7, 100, &is_filled)); /* no memory */
    device.head.memory_bytes += 4;
    assert_non_null(mm_cuda_acquire_derived(lane, 1, value.copies->data, 7, 100, &is_filled));
    assert_false(is_filled);
    lane->bands.job = NULL;
    release();
    mm_cuda_trim(&device);
    assert_int_equal(fake_cuda.memory_used, 0);
}

enum { C_BYTES = 18 * 17 * 4 };

/* Makes a job whose C stays on the device. */
static void make_for_c(unsigned index) {
    job_init(&tests[index], &ours, 18, 20, 17);
    tests[index].job.stores_c = true;
    tests[index].job.product.c.data = NULL;
    plan_job(&tests[index]);
    jobs[index]->stored_c = NULL;
}

/* Runs one job, which must end with `expected`. Returns the device copy that holds C, or NULL. */
static struct mm_device_copy *run_for_c(enum mm_status expected) {
    make_for_c(0);
    jobs[0]->work.batch_key = 0;
    mm_cuda_begin(&device.head, 0, jobs, 1);
    if (jobs[0]->work.error.status == MM_OK)
        mm_cuda_end(&device.head, 0, jobs, 1);
    assert_int_equal(jobs[0]->work.error.status, expected);
    assert_true((jobs[0]->stored_c != NULL) == (expected == MM_OK));
    return jobs[0]->stored_c;
}

static void expect_read(struct mm_device_copy *copy) {
    const struct mm_window all = {.count = 1, .all_rows = 18, .all_cols = 17, .rows = 18, .cols = 17};
    const struct mm_window part = {
        .count = 1, .all_rows = 18, .all_cols = 17, .row = 3, .rows = 2, .cols = 5};
    float elements[10];
    assert_int_equal(copy->read(copy, &all, MM_FLOAT32, tests[0].c, NULL), MM_OK);
    tests[0].job.product.c.data = tests[0].c;
    expect_product(&tests[0]);
    assert_int_equal(copy->read(copy, &part, MM_FLOAT32, elements, NULL), MM_OK);
    for (unsigned index = 0; index < 10; index++)
        assert_float_equal(elements[index], tests[0].c[(3 + index / 5) * 17 + index % 5], 0.0f);
}

/* If a panel's data has another key, the launch must derive its own. */
static void other_data_of_a_panel_is_not_used(void **state) {
    struct mm_cuda_slot panel = {.kept = &value, .kept_bytes = 16, .key = 1, .is_kept = true};
    bool is_filled = false;
    device.lanes[0].bands.panels[0] = &panel;
    assert_null(mm_cuda_acquire_derived(&device.lanes[0], 0, NULL, 2, 16, &is_filled));
    assert_null(mm_cuda_acquire_derived(&device.lanes[0], 0, NULL, 1, 17, &is_filled));
    assert_false(is_filled);
    assert_ptr_equal(mm_cuda_acquire_derived(&device.lanes[0], 0, NULL, 1, 16, &is_filled), &value);
    assert_true(is_filled);
}

static void stored_result_stays_on_the_device(void **state) {
    struct mm_device_copy *copy = run_for_c(MM_OK);
    assert_int_equal(jobs[0]->outcome.downloaded_bytes, 0);
    assert_int_equal(device.copy_bytes, C_BYTES);
    mm_cuda_trim(&device);
    expect_read(copy);
    copy->release(copy);
    assert_int_equal(device.copy_bytes, 0);
    assert_int_equal(fake_cuda.memory_used, 0);
}

/* Only five columns are wanted in the reply, but all columns stay on the device. */
static void stored_part_has_all_columns(void **state) {
    make_for_c(0);
    jobs[0]->work.batch_key = 0;
    jobs[0]->product.whole = (struct mm_whole){36, 17, 0, 0};
    jobs[0]->product.c.ld = 5;
    mm_cuda_begin(&device.head, 0, jobs, 1);
    assert_int_equal(jobs[0]->work.error.status, MM_OK);
    mm_cuda_end(&device.head, 0, jobs, 1);
    assert_int_equal(device.copy_bytes, C_BYTES);
    jobs[0]->product.c.ld = 17;
    expect_read(jobs[0]->stored_c);
    jobs[0]->stored_c->release(jobs[0]->stored_c);
}

/* On the device with the stored C, another job uses it without a copy. Another device copies it. */
static void a_result_is_an_operand(void **state) {
    struct mm_device_copy *copy = run_for_c(MM_OK);
    struct mm_cuda_device other = device;
    struct mm_stored result = {.bytes = C_BYTES, .only_copy = copy};
    struct mm_job job = {.sources = {{.kind = MM_SOURCE_STORED, .stored = &result}}};
    struct mm_error error;
    void *data;
    mm_stored_add_copy(&result, copy);
    assert_int_equal(mm_cuda_acquire_operand(&job, 0, &device.lanes[1], &data, &error), MM_OK);
    assert_ptr_equal(data, copy->data);
    assert_int_equal(job.outcome.uploaded_bytes + device.head.peer_bytes, 0);
    LIST_INIT(&other.copies);
    other.copy_bytes = 0;
    other.direct.device = other.lanes[0].device = &other;
    assert_int_equal(mm_cuda_acquire_operand(&job, 0, &other.lanes[0], &data, &error), MM_OK);
    assert_memory_equal(data, copy->data, C_BYTES);
    assert_int_equal(job.outcome.uploaded_bytes, 0); /* no bytes came from the host */
    assert_int_equal(other.head.peer_bytes, C_BYTES);
    mm_cuda_drop_copies(&other, false);
    other.head.memory_bytes = 4 * C_BYTES - 4;
    assert_int_equal(mm_cuda_acquire_operand(&job, 0, &other.lanes[0], &data, &error), MM_OK);
    assert_null(data);
    device.head.failed = 1;
    assert_int_equal(mm_cuda_acquire_operand(&job, 0, &other.lanes[0], &data, &error), MM_DEVICE_FAILED);
    device.head.failed = 0;
    value = result;
    release();
}

/* A C in two parts is gathered on each device that uses it, unless a share reads only the part of its own
 * device. The first part ends inside of a row. */
static void a_result_in_parts_is_gathered(void **state) {
    enum { FIRST = 5 * 17 * 4 + 8 };
    struct mm_cuda_device other = device;
    struct mm_cuda_device *const both[] = {&device, &other};
    struct mm_device_copy *parts[2];
    struct mm_error error;
    char expected[C_BYTES];
    void *data;
    LIST_INIT(&other.copies);
    other.direct.device = other.lanes[0].device = &other;
    for (unsigned index = 0; index < 2; index++) {
        const size_t bytes = index == 0 ? FIRST : C_BYTES - FIRST;
        assert_int_equal(mm_cuda_acquire_copy_on(bytes, &both[index]->lanes[0], &parts[index], &error),
                         MM_OK);
        assert_int_equal(mm_device_stored_bytes(&both[index]->head), bytes);
        memset(parts[index]->data, 3 + (int)index, bytes);
        memset(expected + index * FIRST, 3 + (int)index, bytes);
    }
    parts[0]->next_part = parts[1];
    parts[1]->first = FIRST;
    value = (struct mm_stored){.bytes = C_BYTES, .only_copy = parts[0]};
    for (unsigned index = 0; index < 2; index++)
        mm_stored_add_copy(&value, parts[index]);
    for (unsigned index = 0; index < 2; index++) {
        struct mm_lane *lane = &both[index]->lanes[0];
        struct mm_job job = {.sources = {{.kind = MM_SOURCE_STORED, .stored = &value}}};
        struct mm_job share = job;
        share.product.a = mm_matrix_dense(MM_FLOAT32, 5, 17, NULL);
        share.product.whole.m = 18;
        share.sources[0].first = index == 0 ? 0 : 7 * 17;
        assert_int_equal(mm_cuda_acquire_operand(&share, 0, lane, &data, &error), MM_OK);
        assert_ptr_equal(data, (char *)parts[index]->data - parts[index]->first);
        both[!index]->head.failed = 1;
        assert_int_equal(mm_cuda_acquire_operand(&job, 0, lane, &data, &error), MM_DEVICE_FAILED);
        both[!index]->head.failed = 0;
        assert_int_equal(mm_cuda_acquire_operand(&job, 0, lane, &data, &error), MM_OK);
        assert_memory_equal(data, expected, C_BYTES);
        assert_int_equal(job.outcome.uploaded_bytes, 0);
        assert_int_equal(job.outcome.peer_bytes, index == 0 ? C_BYTES - FIRST : FIRST);
        assert_int_equal(both[index]->head.peer_bytes, job.outcome.peer_bytes);
        assert_int_equal(mm_cuda_copy_stored(&value, FIRST - 9, 20, data, lane), cudaSuccess);
        assert_memory_equal(data, expected + FIRST - 9, 20);
    }
    release();
    assert_int_equal(other.copy_bytes + mm_device_stored_bytes(&other.head), 0);
    assert_int_equal(mm_device_stored_bytes(&device.head), 0);
    assert_int_equal(fake_cuda.memory_used, 0);
}

static void copies_use_at_most_a_quarter_of_the_memory(void **state) {
    device.head.memory_bytes = 4 * C_BYTES;
    struct mm_device_copy *copy = run_for_c(MM_OK);
    assert_null(run_for_c(MM_STORE_FULL));
    assert_int_equal(jobs[0]->work.error.needed_bytes, C_BYTES);
    assert_int_equal(jobs[0]->work.error.free_bytes, 0);
    copy->release(copy);
    make(0);
    run_and_expect(1, 3, A_BYTES + B_BYTES);
    copy = run_for_c(MM_OK); /* frees the device copy of B */
    assert_int_equal(device.copy_bytes, C_BYTES);
    copy->release(copy);
    release();
}

/* If there is no memory for all jobs of a batch, each job is tried alone. */
static void results_share_a_launch(void **state) {
    for (unsigned has_room = 2; has_room > 0; has_room--) {
        device.head.memory_bytes = (size_t)1 << 20;
        make_for_c(0);
        make_for_c(1);
        assert_int_not_equal(jobs[0]->work.batch_key, 0);
        device.head.memory_bytes = 4 * C_BYTES * has_room;
        mm_cuda_begin(&device.head, 0, jobs, 2);
        assert_int_equal(jobs[1]->work.error.status, has_room == 2 ? MM_OK : MM_NO_DEVICE_MEMORY);
        mm_cuda_end(&device.head, 0, jobs, has_room);
        assert_int_equal(jobs[0]->work.error.status, MM_OK);
        assert_int_equal(jobs[0]->outcome.batched, has_room);
        for (unsigned index = has_room; index < 2; index++) { /* as the queue's worker does it */
            jobs[index]->work.error = (struct mm_error){.status = MM_OK};
            mm_cuda_begin(&device.head, 0, &jobs[index], 1);
            assert_int_equal(jobs[index]->work.error.status, MM_STORE_FULL);
            assert_null(jobs[index]->stored_c);
        }
        expect_read(jobs[0]->stored_c);
        for (unsigned index = 0; index < has_room; index++)
            jobs[index]->stored_c->release(jobs[index]->stored_c);
    }
    assert_int_equal(device.copy_bytes, 0);
    job_init(&tests[0], &ours, 18, 20, 17);
    tests[0].job.stores_c = true;
    plan_job(&tests[0]);
    assert_int_equal(jobs[0]->work.batch_key, 0); /* C is also returned, so no batch */
}

/* Memory suffices for the stored C of only one job, which begins. If it suffices for none, both errors name
 * the bytes that one job needs. */
static void first_result_that_fits_is_stored(void **state) {
    const size_t needed = mm_cuda_aligned(A_BYTES) + mm_cuda_aligned(B_BYTES) + mm_cuda_aligned(C_BYTES);
    for (unsigned missing = 0; missing <= 1; missing++) {
        make_for_c(0);
        make_for_c(1);
        fake_cuda.memory_max = needed - missing;
        mm_cuda_begin(&device.head, 0, jobs, 2);
        assert_int_equal(jobs[0]->work.error.status, missing ? MM_NO_DEVICE_MEMORY : MM_OK);
        assert_int_equal(jobs[1]->work.error.status, MM_NO_DEVICE_MEMORY);
        assert_null(jobs[1]->stored_c);
        for (unsigned index = 0; index < 2 * missing; index++) {
            assert_int_equal(jobs[index]->work.error.needed_bytes, needed);
            assert_int_equal(jobs[index]->work.error.free_bytes, needed - 1);
        }
        if (missing)
            continue;
        mm_cuda_end(&device.head, 0, jobs, 1);
        expect_read(jobs[0]->stored_c);
        jobs[0]->stored_c->release(jobs[0]->stored_c);
    }
    assert_int_equal(device.copy_bytes, 0);
}

/* There is memory for one C. The first job reserves this memory but cannot run, so the second job gets it. */
static void reserved_memory_goes_to_a_job_that_fits(void **state) {
    make_for_c(0);
    make_for_c(1);
    job_init(&tests[0], &ours, 18, 100, 17);
    tests[0].job.stores_c = true;
    tests[0].job.product.c.data = NULL;
    plan_job(&tests[0]);
    assert_int_equal(jobs[0]->work.batch_key, jobs[1]->work.batch_key);
    device.head.memory_bytes = 4 * C_BYTES;
    fake_cuda.memory_max = mm_cuda_aligned(A_BYTES) + mm_cuda_aligned(B_BYTES) + mm_cuda_aligned(C_BYTES);
    mm_cuda_begin(&device.head, 0, jobs, 2);
    assert_int_equal(jobs[0]->work.error.status, MM_NO_DEVICE_MEMORY);
    assert_int_equal(jobs[1]->work.error.status, MM_OK);
    mm_cuda_end(&device.head, 0, &jobs[1], 1);
    jobs[1]->stored_c->release(jobs[1]->stored_c);
}

static void a_job_that_fails_leaves_nothing(void **state) {
    fake_cuda.launch_fails = cudaErrorInvalidValue;
    assert_null(run_for_c(MM_INTERNAL));
    make_for_c(0);
    make_for_c(1);
    mm_cuda_begin(&device.head, 0, jobs, 2);
    for (unsigned index = 0; index < 2; index++) {
        assert_int_equal(jobs[index]->work.error.status, MM_INTERNAL);
        assert_null(jobs[index]->stored_c);
    }
    fake_cuda.launch_fails = cudaSuccess;
    assert_int_equal(device.copy_bytes, 0);
    assert_int_equal(fake_cuda.events, 0);
}

RUN_TESTS_BETWEEN(reset, drop, stored_operand_is_copied_once, shares_read_their_parts, shares_copy_their_rows,
                  device_copy_is_freed_for_jobs, without_a_device_copy_each_job_copies,
                  error_names_the_memory_for_both_operands, too_large_values_are_uploaded,
                  value_outlives_the_device, derived_data_is_kept, other_data_of_a_panel_is_not_used,
                  stored_result_stays_on_the_device, stored_part_has_all_columns, a_result_is_an_operand,
                  a_result_in_parts_is_gathered, copies_use_at_most_a_quarter_of_the_memory,
                  results_share_a_launch, first_result_that_fits_is_stored,
                  reserved_memory_goes_to_a_job_that_fits, a_job_that_fails_leaves_nothing)
