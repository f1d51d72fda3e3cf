/* Tests several products in one launch (gpu/cuda/batch.c). A fake CUDA runtime replaces the GPU. */
#include "cuda_job.h"

static struct test_job tests[MM_BATCH_MAX];
static struct mm_job *jobs[MM_BATCH_MAX];

/* Makes a product that may share a launch. */
static struct mm_product *make(unsigned index, const struct mm_variant *variant, size_t m, size_t k,
                               size_t n) {
    jobs[index] = &tests[index].job;
    job_init(&tests[index], variant, m, k, n);
    plan_job(&tests[index]);
    return &jobs[index]->product;
}

static enum mm_status plan_nothing(const struct mm_product *product, struct mm_plan *plan,
                                   struct mm_error *error) {
    return mm_fail(error, MM_UNSUPPORTED, "not here");
}

static const struct mm_variant whole = {.name = "whole", .multiple_of = 4, .plan[MM_FLOAT32] = plan_ours};
static const struct mm_variant refused = {.name = "refused", .plan[MM_FLOAT32] = plan_nothing};

/* Sets the product to rows × cols blocks of 16×16, with k = 0 and without data. */
static void set_blocks(struct mm_product *product, size_t rows, size_t cols) {
    product->m = 16 * rows;
    product->n = 16 * cols;
    product->k = 0;
    product->a = mm_matrix_dense(MM_FLOAT32, product->m, 0, NULL);
    product->b = mm_matrix_dense(MM_FLOAT32, 0, product->n, NULL);
    product->c = mm_matrix_dense(MM_FLOAT32, product->m, product->n, NULL);
}

/* What a case changes in a product of 4×8 by 8×12. */
enum change {
    NOTHING,
    ODD_DEPTH,
    MOST_BYTES,
    MOST_ROWS,
    MOST_COLS,
    TRANSPOSED,
    OTHER_TILE,
    UNLOCKED,
    PADDED_A,
    PADDED_B,
    PADDED_C,
    TOO_MANY_BYTES,
    TOO_MANY_ROWS,
    TOO_MANY_COLS,
    CHECKED,
    CHANGES
};

static uint64_t key_of(const struct mm_variant *variant, enum change change) {
    device.head.memory_bytes = (size_t)1 << 40;
    struct mm_product *product = make(0, variant, 4, 8, 12);
    product->k -= change == ODD_DEPTH;
    jobs[0]->is_locked = change != UNLOCKED;
    jobs[0]->verify = change == CHECKED;
    product->a.ld += change == PADDED_A;
    product->b.ld += change == PADDED_B;
    product->c.ld += change == PADDED_C;
    product->tile = change == OTHER_TILE ? 8 : 0;
    if (change == MOST_BYTES || change == TOO_MANY_BYTES)
        jobs[0]->work.bytes = (1 << 20) + (change == TOO_MANY_BYTES);
    if (change == MOST_ROWS || change == TOO_MANY_ROWS)
        set_blocks(product, 32768 + (change == TOO_MANY_ROWS), 1);
    if (change == MOST_COLS || change == TOO_MANY_COLS)
        set_blocks(product, 1, 32768 + (change == TOO_MANY_COLS));
    if (change == TRANSPOSED)
        transpose_job(&tests[0]);
    plan_job(&tests[0]);
    return jobs[0]->work.batch_key;
}

/* Products may share a launch if they have the same key, which is not 0. */
static void keys_say_which_jobs_may_share_a_launch(void **state) {
    const uint64_t key = key_of(&ours, NOTHING);
    assert_int_not_equal(key, 0);
    for (enum change change = ODD_DEPTH; change < CHANGES; change++) {
        const uint64_t changed = key_of(&ours, change);
        if (change <= MOST_BYTES ? changed != key : (changed == 0) != (change >= UNLOCKED) || changed == key)
            fail_msg("change %d has the key %d of %d", change, (int)changed, (int)key);
    }
    assert_int_not_equal(key_of(&ours, MOST_COLS), key_of(&ours, MOST_ROWS));
    assert_int_not_equal(key_of(&whole, NOTHING), 0);
    assert_int_equal(key_of(&whole, ODD_DEPTH), 0);
    assert_int_equal(key_of(&alone, NOTHING), 0);
    assert_int_equal(key_of(&refused, NOTHING), 0);
    device.reads_locked_pages = false;
    assert_int_equal(key_of(&ours, NOTHING), 0);
}

static uint64_t key_of_shape(size_t m, size_t n) {
    make(0, &ours, m, 1, n);
    return jobs[0]->work.batch_key;
}

/* A tall and a wide product may not share a launch, because the grid would be both tall and wide. */
static void other_outlines_have_other_keys(void **state) {
    static const struct {
        size_t m[2], n[2];
        bool same;
    } cases[] = {{{1, 16}, {1, 16}, true}, {{1, 17}, {1, 1}, false},  {{17, 1}, {1, 17}, false},
                 {{17, 48}, {1, 1}, true}, {{48, 49}, {1, 1}, false}, {{49, 112}, {1, 1}, true},
                 {{1, 1}, {48, 49}, false}};
    for (size_t index = 0; index < COUNT(cases); index++)
        assert_true((key_of_shape(cases[index].m[0], cases[index].n[0]) ==
                     key_of_shape(cases[index].m[1], cases[index].n[1])) == cases[index].same);
}

enum { SHAPES = 4 };

static const struct batch {
    struct {
        size_t m, k, n;
        bool gathered;
    } shapes[SHAPES];
    unsigned grid_x, grid_y;
} batches[] = {
    {{{1, 1, 1, false}, {16, 32, 16, false}, {16, 33, 16, true}, {2, 0, 2, false}}, 1, 1},
    {{{17, 9, 20, true}, {30, 0, 40, false}, {33, 40, 33, true}, {17, 1, 17, true}}, 3, 3},
    {{{1, 5, 17, true}, {16, 2, 48, true}, {3, 0, 33, false}, {4, 7, 31, true}}, 3, 1},
};

static void run_batch(const struct batch *batch, bool turns) {
    double flops = 0.0;
    run_square(2, 3, MM_OK); /* an earlier job with copies */
    fake_cuda.launches = fake_cuda.copies = 0;
    for (unsigned index = 0; index < SHAPES; index++) {
        make(index, &ours, batch->shapes[index].m, batch->shapes[index].k, batch->shapes[index].n);
        if (turns)
            transpose_job(&tests[index]);
        assert_int_not_equal(jobs[index]->work.batch_key, 0);
        assert_int_equal(jobs[index]->work.batch_key, jobs[0]->work.batch_key);
        flops += mm_product_flops(&jobs[index]->product);
    }
    run(2, jobs, SHAPES);
    for (unsigned index = 0; index < SHAPES; index++) {
        const struct mm_product *product = &jobs[index]->product;
        expect_product(&tests[index]);
        assert_int_equal(jobs[index]->outcome.batched, SHAPES);
        assert_true(mm_outcome_rate(&jobs[index]->outcome) == flops / 2e6);
        assert_int_equal(jobs[index]->outcome.uploaded_bytes,
                         batch->shapes[index].gathered ? (product->m + product->n) * product->k * 4 : 0);
        assert_int_equal(jobs[index]->outcome.downloaded_bytes, 0);
        expect_spans_ms(jobs[index], 1, 2, 0);
    }
    assert_int_equal(fake_cuda.batches, 1);
    assert_int_equal(fake_cuda.gathers, 1);
    assert_int_equal(fake_cuda.launches + fake_cuda.copies, 0);
    assert_true(fake_cuda.grid.x == batch->grid_x && fake_cuda.grid.y == batch->grid_y &&
                fake_cuda.grid.z == SHAPES);
}

static void batch_is_one_launch(void **state) {
    for (size_t which = 0; which < 2 * COUNT(batches); which++) {
        reset(state);
        run_batch(&batches[which / 2], which % 2 != 0);
        drop(state);
    }
}

static void jobs_of_one_batch_may_differ_in_the_type_of_c(void **state) {
    static const enum mm_dtype dtypes[] = {MM_FLOAT32, MM_FLOAT16, MM_BFLOAT16};
    for (unsigned index = 0; index < COUNT(dtypes); index++) {
        make(index, &ours, 17, 3, 17)->c.dtype = dtypes[index];
        plan_job(&tests[index]);
        assert_int_not_equal(jobs[index]->work.batch_key, 0);
        assert_int_equal(jobs[index]->work.batch_key, jobs[0]->work.batch_key);
    }
    run(0, jobs, COUNT(dtypes));
    for (unsigned index = 0; index < COUNT(dtypes); index++)
        expect_product(&tests[index]);
    assert_int_equal(fake_cuda.batches, 1);
}

static float addend[17 * 17 + 1], bias[17];

/* Gives a product of 17×3 by 3×17 an epilogue: bit 0 of `terms` is the addend, bit 1 the bias. */
static struct mm_job *add_terms(unsigned index, unsigned terms) {
    struct mm_product *product = make(index, &ours, 17, 3, 17);
    product->epilogue = (struct mm_epilogue){
        true, MM_ACTIVATION_RELU, {.of_float = 2.0F + (float)index}, {.of_float = -1.0F}};
    if (terms & 1)
        product->addend = mm_matrix_dense(MM_FLOAT32, 17, 17, addend);
    if (terms & 2)
        product->bias = mm_matrix_dense(MM_FLOAT32, 1, 17, bias);
    product->transpose_addend = index == 3;
    plan_job(&tests[index]);
    return jobs[index];
}

/* Products with and without an epilogue share a launch. One pass applies all epilogues, and reads addends and
 * biases in host memory. */
static void epilogues_share_a_launch(void **state) {
    for (unsigned index = 0; index < COUNT(addend); index++)
        addend[index] = (float)(index % 7) - 3.0F;
    for (unsigned index = 0; index < COUNT(bias); index++)
        bias[index] = (float)(index % 5) - 2.0F;
    for (unsigned index = 0; index < 4; index++)
        assert_int_not_equal(add_terms(index, index)->work.batch_key, 0);
    make(4, &ours, 17, 3, 17);
    for (unsigned index = 0; index < 5; index++)
        assert_int_equal(jobs[index]->work.batch_key, jobs[0]->work.batch_key);
    run(0, jobs, 5);
    for (unsigned index = 0; index < 5; index++) {
        expect_product(&tests[index]);
        assert_int_equal(jobs[index]->outcome.uploaded_bytes, 2 * 17 * 3 * sizeof(float));
    }
    assert_int_equal(fake_cuda.batches, 1);
    assert_int_equal(fake_cuda.passes, 1);
}

/* A full batch has more epilogues than one pass can apply. */
static void a_full_batch_is_launched(void **state) {
    for (unsigned index = 0; index < MM_BATCH_MAX; index++)
        add_terms(index, index % 4);
    run(0, jobs, MM_BATCH_MAX);
    for (unsigned index = 0; index < MM_BATCH_MAX; index++)
        expect_product(&tests[index]);
    assert_int_equal(fake_cuda.batches, 1);
    assert_int_equal(fake_cuda.passes, 2);
}

/* Addends and biases that a batch cannot read. */
static void terms_that_a_batch_cannot_read(void **state) {
    struct mm_job *job = add_terms(0, 3);
    job->product.addend.ld++;
    plan_job(&tests[0]);
    assert_int_equal(job->work.batch_key, 0); /* the addend is not dense */
    job = add_terms(0, 3);
    job->product.bias.data = (char *)bias + 1;
    plan_job(&tests[0]);
    assert_int_equal(job->work.batch_key, 0); /* the bias begins within an element */
    job = add_terms(0, 1);
    job->sources[MM_OPERAND_ADDEND] = (struct mm_source){MM_SOURCE_UNIFORM, 1, 0, NULL};
    plan_job(&tests[0]);
    assert_int_not_equal(job->work.batch_key, 0);
    job->product.c.dtype = job->product.addend.dtype = MM_FLOAT16;
    plan_job(&tests[0]);
    assert_int_equal(job->work.batch_key, 0); /* a batch can generate an addend only in A's type */
}

static enum mm_status plan_bytes(const struct mm_product *product, struct mm_plan *plan,
                                 struct mm_error *error) {
    static const char kernel; /* stands for a kernel that computes nothing */
    plan->layout = (struct mm_layout){
        .kernel = &kernel, .batch_kernel = &kernel, .block_rows = FAKE_BLOCK, .block_cols = FAKE_BLOCK};
    return MM_OK;
}

/* Operands with an odd number of bytes use their last word only partly. */
static void operands_of_odd_bytes_are_gathered(void **state) {
    static const struct mm_variant bytes = {.name = "bytes", .plan[MM_INT8] = plan_bytes};
    struct mm_product *product = make(0, &ours, 17, 3, 17);
    product->a = mm_matrix_dense(MM_INT8, 17, 3, tests[0].a);
    product->b = mm_matrix_dense(MM_INT8, 3, 17, tests[0].b);
    product->c = mm_matrix_dense(MM_INT32, 17, 17, tests[0].c);
    jobs[0]->variant = &bytes;
    plan_job(&tests[0]);
    assert_int_not_equal(jobs[0]->work.batch_key, 0);
    run(0, jobs, 1);
    assert_int_equal(jobs[0]->work.error.status, MM_OK);
    assert_int_equal(fake_cuda.gathered_words, 13 + 13);
    assert_int_equal(jobs[0]->outcome.uploaded_bytes, 51 + 51);
}

static void single_job_runs_as_a_batch_of_one(void **state) {
    make(0, &ours, 5, 5, 5);
    run(0, jobs, 1);
    expect_product(&tests[0]);
    assert_int_equal(jobs[0]->outcome.batched, 1);
    expect_spans_ms(jobs[0], 0, 2, 0);
    assert_int_equal(fake_cuda.batches, 1);
    assert_int_equal(fake_cuda.gathers + fake_cuda.copies + fake_cuda.allocations, 0);
}

/* A single product needs a workspace because k is split. In a batch k is not split. */
static enum mm_status plan_splits(const struct mm_product *product, struct mm_plan *plan,
                                  struct mm_error *error) {
    plan->workspace_bytes = 256;
    return plan_ours(product, plan, error);
}

/* There is memory for only one of two jobs. The first job begins. The second job must look like a job that
 * has not begun. */
static void without_memory_for_a_batch_the_first_job_begins(void **state) {
    static const struct mm_variant split = {
        .name = "split", .tile = FAKE_BLOCK, .plan[MM_FLOAT32] = plan_splits};
    make(0, &split, 17, 17, 17);
    make(1, &split, 17, 17, 17);
    fake_cuda.memory_max = 2 * mm_cuda_aligned(mm_matrix_bytes(&jobs[0]->product.a));
    mm_cuda_begin(&device.head, 0, jobs, 2);
    assert_int_equal(jobs[0]->work.error.status, MM_OK);
    assert_int_equal(jobs[1]->work.error.status, MM_NO_DEVICE_MEMORY);
    mm_cuda_end(&device.head, 0, jobs, 1);
    expect_product(&tests[0]);
    assert_int_equal(jobs[0]->outcome.batched, 1);
}

enum { SMALL_DEPTH = 3, LARGE_DEPTH = 100 };

/* The job with the large k needs one byte more than there is, so the batch fails. Then its jobs begin again
 * one by one. */
static void job_that_does_not_fit_fails_alone(void **state) {
    static const size_t depths[][3] = {{LARGE_DEPTH, SMALL_DEPTH, SMALL_DEPTH},
                                       {SMALL_DEPTH, LARGE_DEPTH, SMALL_DEPTH},
                                       {LARGE_DEPTH, LARGE_DEPTH, SMALL_DEPTH},
                                       {LARGE_DEPTH, LARGE_DEPTH, LARGE_DEPTH}};
    const size_t needed = 2 * mm_cuda_aligned(17 * LARGE_DEPTH * sizeof(float));
    fake_cuda.memory_max = needed - 1;
    for (size_t row = 0; row < COUNT(depths); row++) {
        struct mm_job *begun = NULL;
        for (unsigned index = 0; index < 3; index++)
            make(index, &ours, 17, depths[row][index], 17);
        mm_cuda_begin(&device.head, 0, jobs, 3);
        for (unsigned index = 0; index < 3 && begun == NULL; index++)
            begun = jobs[index]->work.error.status == MM_OK ? jobs[index] : NULL;
        if (begun != NULL)
            mm_cuda_end(&device.head, 0, &begun, 1);
        for (unsigned index = 0; index < 3; index++) {
            const struct mm_error *error = &jobs[index]->work.error;
            if (begun != NULL && jobs[index] != begun) {
                assert_int_equal(error->status, MM_NO_DEVICE_MEMORY);
                jobs[index]->work.error = (struct mm_error){.status = MM_OK};
                mm_cuda_begin(&device.head, 0, &jobs[index], 1);
                if (error->status == MM_OK)
                    mm_cuda_end(&device.head, 0, &jobs[index], 1);
            }
            if (depths[row][index] == SMALL_DEPTH) {
                expect_product(&tests[index]);
                continue;
            }
            assert_int_equal(error->status, MM_NO_DEVICE_MEMORY);
            assert_int_equal(error->needed_bytes, needed);
            assert_int_equal(error->free_bytes, needed - 1);
        }
    }
}

RUN_TESTS_BETWEEN(reset, drop, keys_say_which_jobs_may_share_a_launch, other_outlines_have_other_keys,
                  batch_is_one_launch, jobs_of_one_batch_may_differ_in_the_type_of_c,
                  operands_of_odd_bytes_are_gathered, epilogues_share_a_launch, a_full_batch_is_launched,
                  terms_that_a_batch_cannot_read, single_job_runs_as_a_batch_of_one,
                  without_memory_for_a_batch_the_first_job_begins, job_that_does_not_fit_fails_alone)
