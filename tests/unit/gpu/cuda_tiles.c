/* Tests products in tiles on a fake CUDA device that is too small for them. */
#include "cuda_job.h"

#include "gpu/clock.h"
#include "gpu/store/store.h"

enum { M = 700, K = 40, N = 500, PADDED = N + 7, ELEMENTS = M * PADDED, SMALL_BYTES = 400 << 10 };

static float a[ELEMENTS], b[ELEMENTS], c[ELEMENTS], expected[ELEMENTS], addend[ELEMENTS], bias[N];
static struct mm_job job;
static struct mm_job *const jobs[] = {&job};

/* Small integers, so sums are exact. */
static void fill(float *elements, size_t count, unsigned seed) {
    for (size_t index = 0; index < count; index++)
        elements[index] = (float)((index * 7 + index / 97 + seed) % 11) - 5.0F;
}

static void plan(void) {
    assert_int_equal(mm_job_plan(&job, &device.head, NULL), MM_OK);
    mm_job_begin(&job, &device.head);
}

/* Initializes a product that needs 1.3 MB, on a device with 400 KiB. The rows of C have padding. */
static void init_long(size_t k) {
    static unsigned seed; /* each product has other elements */
    memset(&job, 0, sizeof job);
    fake_cuda.memory_max = SMALL_BYTES;
    fill(a, M * k, ++seed);
    fill(b, k * N, 2 * seed);
    fill(c, ELEMENTS, 1);
    job.product.a = mm_matrix_dense(MM_FLOAT32, M, k, a);
    job.product.b = mm_matrix_dense(MM_FLOAT32, k, N, b);
    job.product.c = mm_matrix_dense(MM_FLOAT32, M, N, c);
    job.product.c.ld = PADDED;
    assert_int_equal(mm_product_conform(MM_MATMUL, &job.product, NULL), MM_OK);
    job.variant = &alone;
    plan();
    assert_true(job.work.is_exclusive);
}

static void init(void) {
    init_long(K);
}

/* Computes the product without tiles, over the old contents of C. */
static void expect_c(void) {
    struct mm_product product = job.product;
    fill(expected, ELEMENTS, 1);
    product.c.data = expected;
    fake_compute(&product, false);
    fake_expect_written(c, sizeof c);
    assert_memory_equal(c, expected, sizeof c);
}

/* Begins the job, and looks at it until it is over. */
static void run_tiles(void) {
    mm_cuda_begin(&device.head, 1, jobs, 1);
    assert_int_equal(job.work.error.status, MM_OK);
    while (!mm_cuda_is_over(&device.head, 1))
        continue;
    mm_cuda_end(&device.head, 1, jobs, 1);
}

static void product_is_right_and_without_races(void **state) {
    for (int time = 0; time < 3; time++) {
        const unsigned launches = fake_cuda.launches;
        init();
        if (time > 0) /* both operands fit, and stay in their slots */
            fake_cuda.memory_max = (size_t)900 << 10;
        run_tiles();
        assert_int_equal(job.work.error.status, MM_OK);
        expect_c();
        assert_int_equal(fake_cuda.races, 0);
        assert_in_range(job.outcome.tiles, 4, 40);
        assert_int_equal(fake_cuda.launches - launches, job.outcome.tiles);
        assert_int_equal(job.outcome.downloaded_bytes, M * N * sizeof(float));
        assert_true(job.outcome.uploaded_bytes >= (M + N) * K * sizeof(float));
        assert_int_equal(fake_cuda.memory_used, 0); /* the job was exclusive */
    }
}

/* A part of a stack that is computed as one product is no part of one matrix. */
static void part_of_a_stack_is_computed_whole(void **state) {
    const struct mm_window part = {2, M / 2, N, 0, M / 2, 0, N, 0, 0};
    init();
    job.part = &part;
    job.device_bytes_max = SMALL_BYTES;
    fake_cuda.memory_max = 8 << 20;
    run_tiles();
    assert_int_equal(job.work.error.status, MM_OK);
    assert_int_equal(job.outcome.tiles, 0);
}

/* The device has enough memory, but the job may use only a part. If there are no tiles that are so small, the
 * job runs whole. */
static void share_bounds_the_memory(void **state) {
    static const struct {
        size_t share, memory;
        bool has_tiles;
    } cases[] = {{SMALL_BYTES, 8 << 20, true},
                 {SMALL_BYTES, 300 << 10, true}, /* less is free */
                 {100 << 10, 8 << 20, false},
                 {8 << 20, 8 << 20, false}};
    for (size_t index = 0; index < COUNT(cases); index++) {
        const size_t most = cases[index].has_tiles ? cases[index].share : cases[index].memory;
        init();
        job.device_bytes_max = cases[index].share;
        fake_cuda.memory_max = cases[index].memory;
        mm_cuda_begin(&device.head, 1, jobs, 1);
        assert_int_equal(job.work.error.status, MM_OK);
        assert_int_equal(job.outcome.tiles > 0, cases[index].has_tiles);
        assert_in_range(fake_cuda.memory_used, 1, most * 3 / 2); /* a small workspace gets more */
        mm_cuda_end(&device.head, 1, jobs, 1);
        expect_c();
    }
    init();
    device.head.memory_bytes = (size_t)1 << 30; /* even a job that is not large is then exclusive */
    job.device_bytes_max = SMALL_BYTES;
    assert_int_equal(mm_job_plan(&job, &device.head, NULL), MM_OK);
    assert_true(job.work.is_exclusive);
}

/* Initializes a product with an addend and a bias. */
static void init_sum(void) {
    init();
    fill(addend, M * N, 7);
    fill(bias, N, 9);
    job.product.addend = mm_matrix_dense(MM_FLOAT32, M, N, addend);
    job.product.bias = mm_matrix_dense(MM_FLOAT32, 1, N, bias);
    job.product.epilogue.is_set = true;
    job.product.epilogue.alpha.of_float = 2.0F;
    job.product.epilogue.beta.of_float = 3.0F;
    plan();
}

static void addend_and_bias_are_applied_once(void **state) {
    for (int verifies = 0; verifies < 2; verifies++) {
        const unsigned passes = fake_cuda.passes;
        init_sum();
        job.verify = verifies;
        run_tiles();
        expect_c();
        assert_int_equal(fake_cuda.races, 0);
        assert_int_equal(fake_cuda.passes - passes, job.outcome.tiles);
    }
}

enum { HOST, UNIFORM, IDENTITY, STORED_IN_HOST, STORED_HERE, STORED_ELSEWHERE, STORED_IN_PARTS, KINDS };
static struct mm_device other_device = {.index = 1};
static struct mm_stored values[MM_OPERANDS_MAX];
static struct mm_device_copy copies[MM_OPERANDS_MAX], rests[MM_OPERANDS_MAX];

/* Divides a stored operand inside of a row. The second part is before the first part in memory. */
static void divide(enum mm_operand_index index) {
    static float memory[MM_OPERANDS_MAX][ELEMENTS];
    const size_t count = values[index].bytes / sizeof(float), first = count / 2 - 3;
    const float *elements = copies[index].data;
    memcpy(memory[index], elements + first, (count - first) * sizeof(float));
    memcpy(memory[index] + count - first, elements, first * sizeof(float));
    copies[index].data = memory[index] + count - first;
    copies[index].next_part = &rests[index];
    rests[index] = (struct mm_device_copy){
        .device = &other_device, .data = memory[index], .first = first * sizeof(float)};
}

/* Sets where the job gets an operand from. A generated operand has no memory. */
static void set_source(enum mm_operand_index index, int kind) {
    static const enum mm_source_kind kinds[KINDS] = {MM_SOURCE_HOST,   MM_SOURCE_UNIFORM, MM_SOURCE_IDENTITY,
                                                     MM_SOURCE_STORED, MM_SOURCE_STORED,  MM_SOURCE_STORED,
                                                     MM_SOURCE_STORED};
    const struct mm_matrix *operand = mm_product_operand(&job.product, index);
    struct mm_source *source = &job.sources[index];
    *source = (struct mm_source){.kind = kinds[kind], .seed = 3, .rows = operand->rows};
    if (mm_source_is_generated(source))
        (void)mm_source_generate(source, operand, 0, operand->rows * operand->cols, NULL);
    copies[index] = (struct mm_device_copy){.device = kind == STORED_ELSEWHERE ? &other_device : &device.head,
                                            .data = operand->data};
    values[index] = (struct mm_stored){.data = operand->data, .bytes = mm_matrix_bytes(operand)};
    if (kind >= STORED_HERE)
        values[index].only_copy = &copies[index];
    if (kind == STORED_IN_PARTS)
        divide(index);
    source->stored = kinds[kind] == MM_SOURCE_STORED ? &values[index] : NULL;
    if (kind != HOST)
        mm_product_place_operand(&job.product, index, NULL);
}

static void operands_come_from_anywhere(void **state) {
    static float *const elements[] = {a, b, addend, bias};
    for (int kind = 0; kind < 2 * KINDS; kind++) {
        init_sum();
        unsigned kinds = 0; /* one bit for each kind that an operand has */
        for (unsigned index = 0; index < MM_OPERANDS_MAX; index++) {
            const int mine = kind < KINDS ? kind : (kind + (int)index) % KINDS;
            set_source(index, mine);
            kinds |= 1U << mine;
        }
        device.head.peer_bytes = 0;
        job.device_bytes_max = SMALL_BYTES;
        run_tiles();
        assert_int_equal(job.work.error.status, MM_OK);
        assert_in_range(job.outcome.tiles, 4, 100);
        if (kind < KINDS) /* panels of B would have gaps between their rows */
            assert_int_equal(device.lanes[1].bands.tiling.in_place,
                             kind == STORED_HERE ? 1U << MM_OPERAND_A : 0);
        for (unsigned index = 0; index < MM_OPERANDS_MAX; index++)
            mm_product_place_operand(&job.product, index, elements[index]);
        expect_c();
        assert_int_equal(fake_cuda.races, 0);
        assert_int_equal(device.head.peer_bytes > 0,
                         (kinds >> STORED_ELSEWHERE | kinds >> STORED_IN_PARTS) & 1);
        assert_int_equal(job.outcome.uploaded_bytes > 0, (kinds >> HOST | kinds >> STORED_IN_HOST) & 1);
    }
    init();
    set_source(MM_OPERAND_B, STORED_ELSEWHERE);
    job.device_bytes_max = SMALL_BYTES;
    other_device.backend = device.head.backend;
    other_device.failed = 1;
    mm_cuda_begin(&device.head, 1, jobs, 1);
    other_device.failed = 0;
    assert_int_equal(job.work.error.status, MM_DEVICE_FAILED);
}

/* Each row counts once, although several tiles check it. The time of the checks is no kernel time. */
static void tiles_are_checked(void **state) {
    for (int time = 0; time < 2; time++) {
        init();
        job.verify = true;
        plan();
        fake_cuda.checks = 0;
        run_tiles();
        expect_c();
        const struct mm_verification *verification = &job.outcome.verification;
        assert_true(verification->is_done);
        assert_int_equal(verification->rows_checked, M);
        assert_int_equal(verification->rows_unjudged, 0);
        assert_int_equal(mm_verification_verdict(verification), MM_VERDICT_PASSED);
        assert_int_equal(fake_cuda.checks, job.outcome.tiles);
        assert_int_equal(verification->took_ns, job.outcome.tiles * UINT64_C(1000000));
        assert_int_equal(job.outcome.span_ns[MM_SPAN_KERNEL], 0); /* the checks take longer than all marks */
        assert_int_equal(fake_cuda.races, 0);
    }
}

/* The last element of C is wrong. */
static enum mm_status launch_wrong(const struct mm_plan *tile_plan, const struct mm_product *product,
                                   struct mm_lane *lane, struct mm_error *error) {
    const enum mm_status status = mm_cuda_launch(tile_plan, product, lane, error);
    const struct mm_tiling *tiling = &lane->bands.tiling;
    const struct mm_tiling_step tile = mm_tiling_tile(tiling, lane->bands.tile);
    if (tile.a + 1 == tiling->a_panels && tile.b + 1 == tiling->b_panels)
        ((float *)product->c.data)[product->m * product->n - 1] += 1000.0F;
    return status;
}

static enum mm_status plan_wrong(const struct mm_product *product, struct mm_plan *made,
                                 struct mm_error *error) {
    made->layout = (struct mm_layout){
        .kernel = &fake_kernels.lonely, .block_rows = FAKE_BLOCK, .block_cols = FAKE_BLOCK};
    made->launch = launch_wrong;
    return MM_OK;
}

static void wrong_tile_fails_the_check(void **state) {
    static const struct mm_variant wrong = {.name = "wrong", .plan[MM_FLOAT32] = plan_wrong};
    init();
    job.verify = true;
    job.variant = &wrong;
    plan();
    run_tiles();
    assert_int_equal(mm_verification_verdict(&job.outcome.verification), MM_VERDICT_FAILED);
    assert_int_equal(job.outcome.verification.row, M - 1);
}

enum { KEPT_BYTES = 1000 };
static unsigned fills; /* how often data was derived from a panel */

/* Derives the panel's first element in all KEPT_BYTES. */
static void derive(struct mm_lane *lane, unsigned slot, const struct mm_matrix *panel) {
    const float *first = panel->data;
    bool is_filled;
    float *kept = mm_cuda_acquire_derived(lane, slot, panel->data, 1, KEPT_BYTES, &is_filled);
    assert_non_null(kept);
    for (size_t index = 0; index < KEPT_BYTES / sizeof *kept; index++) {
        if (is_filled)
            assert_true(kept[index] == *first);
        kept[index] = *first;
    }
    fills += !is_filled;
    assert_int_equal(mm_cuda_note_derived(lane, slot), cudaSuccess);
    assert_null(mm_cuda_acquire_derived(lane, slot, panel->data, 2, KEPT_BYTES, &is_filled)); /* other data */
}

static enum mm_status launch_keeping(const struct mm_plan *tile_plan, const struct mm_product *product,
                                     struct mm_lane *lane, struct mm_error *error) {
    derive(lane, 0, &product->a);
    derive(lane, 1, &product->b);
    memset(lane->scratch, 0xa5, tile_plan->kept.workspace_bytes);
    return mm_cuda_launch(tile_plan, product, lane, error);
}

static enum mm_status plan_keeping(const struct mm_product *product, struct mm_plan *made,
                                   struct mm_error *error) {
    made->layout = (struct mm_layout){
        .kernel = &fake_kernels.lonely, .block_rows = FAKE_BLOCK, .block_cols = FAKE_BLOCK};
    made->launch = launch_keeping;
    made->workspace_bytes = (size_t)1 << 30; /* all of this would not fit */
    made->kept.bytes[0] = made->kept.bytes[1] = KEPT_BYTES;
    made->kept.workspace_bytes = 5000;
    return MM_OK;
}

/* Data is derived once from each panel that is uploaded, and is not overwritten while the panel stays. */
static void derived_data_stays_with_panels(void **state) {
    static const struct mm_variant keeping = {.name = "keeping", .plan[MM_FLOAT32] = plan_keeping};
    init();
    job.variant = &keeping;
    job.verify = true;
    plan();
    fills = fake_cuda.copies = 0;
    run_tiles();
    expect_c();
    assert_int_equal(fills, fake_cuda.copies - job.outcome.tiles); /* each tile of C is a copy, too */
    assert_int_equal(fake_cuda.races, 0);
    assert_int_equal(mm_verification_verdict(&job.outcome.verification), MM_VERDICT_PASSED);
}

/* The wanted part ends inside of tiles. */
static void only_the_part_is_downloaded(void **state) {
    static const struct mm_window parts[] = {{1, M, N, 100, 300, 120, 300}, {1, M, N, 699, 1, 0, N}};
    for (size_t index = 0; index < COUNT(parts); index++) {
        const struct mm_window *part = &parts[index];
        init();
        job.product.c.ld = N;
        job.part = part;
        run_tiles();
        struct mm_product product = job.product;
        product.c.data = expected;
        fake_compute(&product, false);
        for (size_t row = 0; row < part->rows; row++)
            assert_memory_equal(c + row * part->cols, expected + (part->row + row) * N + part->col,
                                part->cols * sizeof(float));
        fill(expected, ELEMENTS, 1);
        assert_memory_equal(c + part->rows * part->cols, expected + part->rows * part->cols,
                            (ELEMENTS - part->rows * part->cols) * sizeof(float));
    }
}

/* C stays on the device, beside the tiles. The request may want all of C, too. */
static void c_stays_on_the_device(void **state) {
    for (int wants_c = 0; wants_c < 2; wants_c++) {
        init_long(N);
        device.head.memory_bytes = fake_cuda.memory_max = (size_t)8 << 20;
        job.product.c.ld = N;
        job.stores_c = true;
        job.product.c.data = wants_c ? c : NULL;
        job.device_bytes_max = M * N * sizeof(float) + (1 << 20);
        run_tiles();
        assert_int_equal(job.work.error.status, MM_OK);
        assert_in_range(job.outcome.tiles, 4, 40);
        assert_int_equal(fake_cuda.races, 0);
        job.product.c.data = c;
        if (wants_c)
            expect_c();
        else
            memcpy(c, job.stored_c->data, M * N * sizeof(float));
        expect_c();
        assert_memory_equal(job.stored_c->data, c, M * N * sizeof(float));
        job.stored_c->release(job.stored_c);
    }
}

/* Figures of a part that begins inside of tiles. The diagonal passes through several tiles. */
static void figures_cover_the_wanted_part(void **state) {
    static const struct mm_window parts[] = {{1, M, N, 100, 300, 120, 300}, {1, M, N, 0, M, 0, N}};
    for (size_t index = 0; index < 2 * COUNT(parts); index++) {
        init();
        job.product.c.ld = N;
        job.part = &parts[index / 2];
        job.reduces = true;
        job.verify = index % 2;
        plan();
        run_tiles();
        assert_int_equal(job.work.error.status, MM_OK);
        assert_int_equal(fake_cuda.races, 0);
        struct mm_product product = job.product;
        struct mm_reduction whole = mm_reduction_none();
        struct mm_reduction_progress done = {0};
        product.c.data = expected;
        fake_compute(&product, false);
        (void)mm_reduce_part(&whole, &done, job.part, MM_FLOAT32, expected, SIZE_MAX);
        const struct mm_reduction *got = &job.outcome.reduction; /* sums of whole numbers are exact */
        assert_true(got->count == whole.count && got->sum == whole.sum && got->trace == whole.trace);
        assert_true(got->min == whole.min && got->max == whole.max);
    }
}

/* A job that is cancelled, is late or fails after some tiles launches no more, and frees its memory. */
static void job_ends_between_tiles(void **state) {
    static const enum mm_status statuses[] = {MM_STOPPING, MM_TIMEOUT, MM_INTERNAL};
    for (size_t index = 0; index < COUNT(statuses); index++) {
        init();
        mm_cuda_begin(&device.head, 1, jobs, 1);
        assert_false(mm_cuda_is_over(&device.head, 1));
        const unsigned launches = fake_cuda.launches;
        fake_cuda.is_late = true; /* the kernel that the next tile waits for has not ended */
        assert_false(mm_cuda_is_over(&device.head, 1));
        fake_cuda.is_late = false;
        job.work.is_cancelled = statuses[index] == MM_STOPPING;
        job.work.deadline_ns = statuses[index] == MM_TIMEOUT ? 1 : 0;
        fake_cuda.launch_fails = statuses[index] == MM_INTERNAL ? cudaErrorInvalidValue : cudaSuccess;
        assert_true(mm_cuda_is_over(&device.head, 1));
        mm_cuda_end(&device.head, 1, jobs, 1);
        fake_cuda.launch_fails = cudaSuccess;
        assert_int_equal(job.work.error.status, statuses[index]);
        assert_int_equal(fake_cuda.launches, launches);
        assert_int_equal(fake_cuda.memory_used, 0);
        assert_int_equal(fake_cuda.races, 0);
    }
    init();
    fake_cuda.launch_fails = cudaErrorInvalidValue;
    fake_cuda.launches_left = 2;
    mm_cuda_begin(&device.head, 1, jobs, 1);
    assert_int_equal(job.work.error.status, MM_INTERNAL);
    assert_int_equal(fake_cuda.memory_used, 0);
    fake_cuda.launch_fails = cudaSuccess;
    product_is_right_and_without_races(state);
}

/* No tiles: one needs more than all memory, or the job is not exclusive. */
static void job_without_tiles_gets_no_memory(void **state) {
    enum { TOO_SMALL, SHARED, CASES };
    for (int index = 0; index < CASES; index++) {
        init();
        if (index == TOO_SMALL)
            fake_cuda.memory_max = 100 << 10;
        job.work.is_exclusive = index != SHARED;
        mm_cuda_begin(&device.head, 1, jobs, 1);
        assert_int_equal(job.work.error.status, MM_NO_DEVICE_MEMORY);
        assert_true(job.work.error.needed_bytes >= ((M + N) * K + M * N) * sizeof(float));
    }
}

RUN_TESTS_BETWEEN(reset, drop, product_is_right_and_without_races, part_of_a_stack_is_computed_whole,
                  share_bounds_the_memory, operands_come_from_anywhere, tiles_are_checked,
                  wrong_tile_fails_the_check, derived_data_stays_with_panels,
                  addend_and_bias_are_applied_once, c_stays_on_the_device, figures_cover_the_wanted_part,
                  only_the_part_is_downloaded, job_ends_between_tiles, job_without_tiles_gets_no_memory)
