/* Tests jobs that find too little device memory: what they free, their errors, and leaks. */
#include "cuda_job.h"
#include "gpu/store/store.h"

enum { EDGE = 16, MATRIX = EDGE * EDGE * 4 };

static struct test_job tests[2];
static struct mm_job *const job = &tests[0].job, *const other = &tests[1].job;
static float elements[EDGE * EDGE];
static struct mm_stored value;

enum { STORES_C = 1, STORED_B = 2, SHARES = 4 };

static void make(unsigned index, const struct mm_variant *variant, unsigned kind) {
    struct mm_job *made = &tests[index].job;
    job_init(&tests[index], variant, EDGE, EDGE, EDGE);
    value.data = elements;
    value.bytes = MATRIX;
    if (kind & STORES_C) {
        made->stores_c = true;
        made->product.c.data = NULL;
    }
    if (kind & STORED_B)
        made->sources[MM_OPERAND_B] = (struct mm_source){.kind = MM_SOURCE_STORED, .stored = &value};
    plan_job(&tests[index]);
    if ((kind & SHARES) == 0)
        made->work.batch_key = 0;
}

static void begin(unsigned lane, struct mm_job *begun, enum mm_status expected) {
    begun->work.error = (struct mm_error){.status = MM_OK};
    mm_cuda_begin(&device.head, lane, &begun, 1);
    assert_int_equal(begun->work.error.status, expected);
}

static void end(unsigned lane, struct mm_job *begun) {
    mm_cuda_end(&device.head, lane, &begun, 1);
    assert_int_equal(begun->work.error.status, MM_OK);
    if (begun->stored_c != NULL)
        begun->stored_c->release(begun->stored_c);
    begun->stored_c = NULL;
}

static void release_value(void) {
    struct mm_device_copy *copy;
    while ((copy = value.copies) != NULL) {
        value.copies = copy->next;
        copy->release(copy);
    }
}

/* If a job needs more memory than is free, it fails and leaves nothing allocated. */
static void failed_job_names_its_bytes_and_frees_all(void **state) {
    static const struct {
        const struct mm_variant *variant;
        unsigned kind;
        size_t needed;
    } cases[] = {{&ours, 0, 3 * MATRIX},
                 {&ours, STORES_C, 3 * MATRIX},
                 {&ours, STORED_B, 3 * MATRIX},
                 {&ours, STORES_C | STORED_B, 3 * MATRIX},
                 {&ours, STORES_C | STORED_B | SHARES, 2 * MATRIX}, /* A is read in host memory */
                 {&scratching, STORES_C | STORED_B, 3 * MATRIX + WORKSPACE_BYTES}};
    for (size_t index = 0; index < COUNT(cases); index++) {
        const size_t needed = cases[index].needed;
        for (size_t free_bytes = 0; free_bytes < needed; free_bytes += MATRIX / 2) {
            reset(state);
            make(0, cases[index].variant, cases[index].kind);
            if (cases[index].kind & SHARES)
                job->work.batch_key = 1; /* as if the device had a copy of B when the job was planned */
            fake_cuda.memory_max = free_bytes;
            begin(0, job, MM_NO_DEVICE_MEMORY);
            assert_int_equal(job->work.error.needed_bytes, needed);
            assert_int_equal(job->work.error.free_bytes, free_bytes);
            assert_null(job->stored_c);
            assert_int_equal(job->outcome.uploaded_bytes, 0);
            assert_int_equal(fake_cuda.memory_used, 0);
            assert_int_equal(device.copy_bytes, 0);
            assert_false(device.lanes[0].is_busy);
            fake_cuda.memory_max = needed;
            begin(0, job, MM_OK);
            end(0, job);
            release_value();
            drop(state);
        }
    }
}

/* The job frees device copies that no other job uses. */
static void unused_copies_are_freed_first(void **state) {
    make(0, &ours, STORED_B);
    begin(0, job, MM_OK);
    end(0, job);
    assert_int_equal(device.copy_bytes, MATRIX);
    fake_cuda.memory_max = 3 * MATRIX + WORKSPACE_BYTES;
    make(0, &scratching, 0);
    begin(0, job, MM_OK);
    assert_int_equal(device.copy_bytes, 0);
    end(0, job);
    release_value();
}

/* While another job runs, a job does not drop the device copies that the other job uses. It begins later. */
static void job_waits_for_other_jobs(void **state) {
    make(1, &ours, STORED_B);
    begin(1, other, MM_OK);
    make(0, &scratching, 0);
    fake_cuda.memory_max = fake_cuda.memory_used + 3 * MATRIX;
    begin(0, job, MM_NO_DEVICE_MEMORY);
    assert_int_equal(device.copy_bytes, MATRIX);
    end(1, other);
    begin(0, job, MM_OK);
    end(0, job);
    release_value();
}

/* If two jobs do not fit together, the first begins and the other runs later. */
static void first_of_two_jobs_begins(void **state) {
    struct mm_job *const jobs[] = {job, other};
    make(0, &ours, STORES_C | SHARES);
    make(1, &ours, STORES_C | SHARES);
    assert_int_not_equal(job->work.batch_key, 0);
    fake_cuda.memory_max = MATRIX;
    mm_cuda_begin(&device.head, 0, jobs, 2);
    assert_int_equal(job->work.error.status, MM_OK);
    assert_int_equal(other->work.error.status, MM_NO_DEVICE_MEMORY);
    end(0, job);
    begin(0, other, MM_OK);
    end(0, other);
}

/* Memory for a benchmark belongs to no job. Idle lanes free their workspaces for such memory. */
static void benchmarks_get_unused_memory(void **state) {
    void *memory = NULL;
    struct mm_error error;
    run_square(0, EDGE + 4, MM_OK);
    const size_t bytes = fake_cuda.memory_max = fake_cuda.memory_used;
    assert_int_equal(mm_cuda_acquire(&device.head, bytes, &memory, &error), MM_OK);
    mm_cuda_release(&device.head, memory);
    assert_int_equal(mm_cuda_acquire(&device.head, bytes + 1, &memory, &error), MM_NO_DEVICE_MEMORY);
    assert_int_equal(error.needed_bytes, bytes + 1);
    assert_int_equal(error.free_bytes, bytes);
}

/* CUDA does not tell how many bytes a failed launch needs, so the error names the bytes of the job. */
static void failed_launch_names_the_bytes_of_its_job(void **state) {
    make(0, &ours, 0);
    fake_cuda.launch_fails = cudaErrorMemoryAllocation;
    begin(0, job, MM_NO_DEVICE_MEMORY);
    assert_int_equal(job->work.error.free_bytes, fake_cuda.memory_max);
    assert_in_range(job->work.error.needed_bytes, 1, job->work.error.free_bytes);
    assert_non_null(strstr(job->work.error.detail, "free, and no single block is large enough"));
    fake_cuda.launch_fails = cudaSuccess;
    begin(0, job, MM_OK);
    end(0, job);
}

/* The device has the only copy of a stored B, so this copy cannot be freed. It is already allocated, so its
 * bytes do not count as needed. */
static void a_stored_operand_of_this_device_is_not_needed(void **state) {
    make(1, &ours, STORES_C);
    begin(1, other, MM_OK);
    mm_cuda_end(&device.head, 1, (struct mm_job *const[]){other}, 1);
    value = (struct mm_stored){.bytes = MATRIX, .only_copy = other->stored_c};
    mm_stored_add_copy(&value, other->stored_c);
    mm_cuda_trim(&device);
    assert_int_equal(fake_cuda.memory_used, MATRIX);
    make(0, &ours, STORED_B);
    fake_cuda.memory_max = MATRIX + 2 * MATRIX - 256;
    begin(0, job, MM_NO_DEVICE_MEMORY);
    assert_int_equal(job->work.error.needed_bytes, 2 * MATRIX);
    assert_int_equal(job->work.error.free_bytes, 2 * MATRIX - 256);
    fake_cuda.memory_max = MATRIX + 2 * MATRIX;
    begin(0, job, MM_OK);
    end(0, job);
    release_value();
    value = (struct mm_stored){.data = NULL};
}

RUN_TESTS_BETWEEN(reset, drop, a_stored_operand_of_this_device_is_not_needed,
                  failed_job_names_its_bytes_and_frees_all, unused_copies_are_freed_first,
                  job_waits_for_other_jobs, first_of_two_jobs_begins, benchmarks_get_unused_memory,
                  failed_launch_names_the_bytes_of_its_job)
