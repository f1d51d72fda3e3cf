/* Tests the workspace, kernel arguments and clusters of fp32_tensor. The kernels are fakes. */
#include "gpu/cuda/variants/fp32_tensor/plan.h"
#include "gpu/cuda/variants/simt.h"
#include "gpu/cuda/variants.h"
#include "tests/unit/gpu/cuda_kept.h"

enum { SIMT_BYTES = 1000 };

static const char kernels[4];
const void *const mm_fp32_scan_kernel = &kernels[0];
const void *const mm_fp32_split_kernel = &kernels[1];
const void *const mm_fp32_product_kernel = &kernels[2];
const void *const mm_fp32_repair_kernel = &kernels[3];
const size_t mm_fp32_product_shared_bytes = 200000;

/* The last launch. */
static struct {
    unsigned count;
    struct mm_fp32_plan plan;
    char *simt_scratch;
    size_t kept_workspace; /* of the plan: the workspace if the halves of both operands are kept */
    const unsigned *run_flag;
    unsigned simts;
    unsigned loads;
    size_t cleared;
    unsigned split_blocks;
} seen;

unsigned mm_fp32_scan_blocks(const struct mm_fp32_operand *operand) {
    return operand->lines;
}

unsigned mm_fp32_split_blocks(const struct mm_fp32_operand *operand) {
    return operand->k_contiguous ? 0 : operand->lines;
}

enum mm_status mm_cuda_simt_prepare(const struct mm_plan *plan, const struct mm_product *product,
                                    struct mm_lane *lane, struct mm_error *error) {
    seen.loads++;
    return MM_OK;
}

enum mm_status mm_cuda_load(const struct mm_layout *layout, struct mm_lane *lane, struct mm_error *error) {
    seen.loads++;
    return MM_OK;
}

enum mm_status mm_cuda_simt_enqueue(const struct mm_plan *plan, const struct mm_product *product,
                                    struct mm_lane *lane, void *workspace, const unsigned *run_flag,
                                    struct mm_error *error) {
    seen.simt_scratch = workspace;
    seen.run_flag = run_flag;
    seen.simts++;
    return MM_OK;
}

enum mm_status mm_cuda_simt(const struct mm_product *product, struct mm_plan *plan, struct mm_error *error) {
    plan->workspace_bytes = SIMT_BYTES;
    plan->cuts.rows = 64;
    return MM_OK;
}

enum mm_status mm_cuda_enqueue(const struct mm_layout *layout, dim3 grid, void **arguments,
                               struct mm_lane *lane, struct mm_error *error) {
    seen.count++;
    if (layout->kernel == mm_fp32_scan_kernel)
        seen.split_blocks = grid.x;
    /* A kernel may start before the previous kernel ends. The first kernel must not, because it follows a
     * memset. After a large product, the repair kernel must not start early either. */
    const bool is_large = seen.plan.product.m >= 2048;
    assert_int_equal(layout->follows,
                     seen.count > 1 && !(is_large && layout->kernel == mm_fp32_repair_kernel));
    if (layout->kernel == mm_fp32_product_kernel) {
        seen.plan = *(const struct mm_fp32_plan *)arguments[0];
        assert_int_equal(grid.x, seen.plan.schedule.clusters * MM_FP32_CLUSTER);
        assert_in_range(seen.plan.schedule.clusters, 1, MULTIPROCESSORS / MM_FP32_CLUSTER);
        assert_int_equal(seen.plan.merges_path, seen.plan.product.whole.m > 0);
    }
    return MM_OK;
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream) {
    seen.cleared = bytes;
    return cudaSuccess;
}

static struct mm_path path;

static struct mm_product product_of(size_t m, size_t k, size_t n) {
    return (struct mm_product){.m = m,
                               .n = n,
                               .k = k,
                               .a = mm_matrix_dense(MM_FLOAT32, m, k, scratch),
                               .b = mm_matrix_dense(MM_FLOAT32, k, n, scratch),
                               .c = mm_matrix_dense(MM_FLOAT32, m, n, scratch)};
}

/* Plans, prepares and enqueues the product. Returns the bytes of the workspace. */
static size_t launch(const struct mm_product *product) {
    struct mm_lane lane = {
        .device = &device, .path = &path, .scratch = scratch, .bands.in_panels = product->whole.m > 0};
    struct mm_plan plan = {.device = &device.head};
    struct mm_error error;
    memset(&seen, 0, sizeof seen);
    assert_int_equal(mm_cuda_fp32_tensor(product, &plan, &error), MM_OK);
    assert_int_equal(seen.count + seen.simts, 0);
    assert_int_equal(plan.layout.block_rows, 0); /* 0 means that C is not divided into bands of rows */
    if (plan.prepare != NULL) {
        assert_int_equal(plan.prepare(&plan, product, &lane, &error), MM_OK);
        assert_int_equal(seen.loads, 5); /* the four kernels of fp32_tensor and the one of simt */
    }
    assert_int_equal(plan.launch(&plan, product, &lane, &error), MM_OK);
    seen.kept_workspace = plan.kept.workspace_bytes;
    for (unsigned slot = 0; slot < 2 && seen.kept_workspace > 0; slot++)
        assert_int_equal(kept[slot].bytes, plan.kept.bytes[slot]);
    return plan.workspace_bytes;
}

/* The parts of the workspace are aligned and do not overlap. Parts that must be zeroed come first. */
static void expect_pieces(size_t bytes) {
    const struct mm_fp32_plan *plan = &seen.plan;
    const size_t blocks = (size_t)plan->schedule.clusters * MM_FP32_CLUSTER;
    const size_t sums = blocks * MM_FP32_CONSUMER_THREADS * MM_FP32_SUMS * sizeof(float);
    const size_t lines = plan->product.m + plan->product.n;
    const size_t line_bytes = (size_t)plan->schedule.steps * 2 * MM_FP32_LINE_BYTES;
    const struct {
        const void *begin;
        size_t bytes;
    } pieces[] = {
        {plan->flags, sizeof *plan->flags},
        {plan->max_a, lines * sizeof *plan->max_a},
        {plan->lost_a, lines * sizeof *plan->lost_a},
        {plan->partial.ready, blocks * MM_CONSUMERS * sizeof *plan->partial.ready},
        {plan->costs, blocks * MM_FP32_CONSUMER_WARPS * sizeof *plan->costs},
        {plan->uncertain, plan->uncertain_max * sizeof *plan->uncertain},
        {plan->partial.sums, sums},
        {plan->flushed, sums},
        {seen.simt_scratch, SIMT_BYTES},
        {plan->a, (size_t)plan->schedule.cluster_tile_rows * MM_FP32_CLUSTER * MM_FP32_ROWS * line_bytes},
        {plan->b, (size_t)plan->schedule.cluster_tile_cols * MM_FP32_COLS * line_bytes},
    };
    size_t end = 0;
    for (size_t index = 0; index < COUNT(pieces); index++) {
        const size_t begin = offset_of(pieces[index].begin);
        assert_true(begin >= end && begin % 256 == 0);
        end = begin + pieces[index].bytes;
        if (index < 5)
            assert_true(seen.cleared >= end);
    }
    assert_true(bytes >= end);
    assert_true(seen.cleared <= offset_of(plan->uncertain));
    if (seen.kept_workspace > 0) /* without the last two pieces */
        assert_int_equal(seen.kept_workspace, offset_of(plan->a));
}

static void each_shape_has_its_memory(void **state) {
    static const size_t shapes[][3] = {{1, 1, 1},        {1, 64, 192},     {128, 65, 193},
                                       {129, 512, 1},    {257, 63, 40},    {300, 700, 80},
                                       {256, 8193, 192}, {2000, 64, 2000}, {2048, 2048, 2048}};
    for (size_t index = 0; index < COUNT(shapes); index++) {
        const struct mm_product product = product_of(shapes[index][0], shapes[index][1], shapes[index][2]);
        const size_t bytes = launch(&product);
        assert_int_equal(seen.plan.schedule.steps, (product.k + 63) / 64);
        assert_true((size_t)seen.plan.schedule.cluster_tile_rows * 256 >= product.m);
        assert_true((size_t)seen.plan.schedule.cluster_tile_cols * 192 >= product.n);
        assert_int_equal(seen.plan.max_b - seen.plan.max_a, product.m);
        assert_int_equal(seen.plan.lost_b - seen.plan.lost_a, product.m);
        assert_true(
            seen.plan.threshold ==
            mm_fp32_threshold((unsigned)product.k)); /* tests/kernels/guard.c tests the threshold itself */
        assert_true(seen.plan.range_share == mm_fp32_range_share((unsigned)product.k));
        assert_ptr_equal(seen.run_flag, &seen.plan.flags->fallback);
        expect_pieces(bytes);
    }
}

/* The kernel decides about the slow path by the limit of the whole. The last share has all shared tiles. */
static void shares_are_computed_as_in_the_whole(void **state) {
    const struct mm_product product = product_of(1900, 2048, 2000);
    struct mm_plan plan = {.device = &device.head};
    assert_int_equal(mm_cuda_fp32_tensor(&product, &plan, NULL), MM_OK);
    launch(&product);
    const struct mm_fp32_plan whole = seen.plan;
    assert_true(whole.schedule.sharers > 0 && plan.cuts.rows == 1024);
    for (size_t row = 0; row <= 1024; row += 1024) {
        struct mm_product share =
            mm_product_part(&product, MM_MATMUL, row, row == 0 ? 1024 : 876, 0, product.n);
        share.whole = (struct mm_whole){1900, 2000, row, 0};
        share.a.data = scratch;
        expect_pieces(launch(&share));
        assert_int_equal(seen.plan.uncertain_max, whole.uncertain_max);
        assert_int_equal(seen.plan.schedule.sharers, row == 0 ? 0 : whole.schedule.sharers);
    }
}

/* The halves of a stored operand are computed only once. Later products use these halves. */
static void halves_are_kept(void **state) {
    const struct mm_product product = product_of(300, 70, 80);
    for (unsigned filled = 0; filled < 4; filled++) {
        keep_copies(filled);
        launch(&product);
        assert_int_equal(seen.split_blocks, (filled & 1 ? 0 : 300) + (filled & 2 ? 0 : 80));
        const struct {
            const void *flags, *max, *lost, *tiles;
            size_t lines, tile_bytes;
        } operands[] = {
            {seen.plan.a_flags, seen.plan.max_a, seen.plan.lost_a, seen.plan.a, 300, 512 * 2 * 2 * 128},
            {seen.plan.b_flags, seen.plan.max_b, seen.plan.lost_b, seen.plan.b, 80, 192 * 2 * 2 * 128}};
        for (unsigned slot = 0; slot < 2; slot++) {
            assert_int_equal(kept[slot].is_noted, !(filled >> slot & 1));
            assert_ptr_equal(operands[slot].flags, kept[slot].copy);
            assert_true((const char *)operands[slot].max >= kept[slot].copy + sizeof(struct mm_fp32_flags));
            assert_true((const char *)operands[slot].lost >=
                        (const char *)operands[slot].max + operands[slot].lines * sizeof(unsigned));
            assert_true((const char *)operands[slot].tiles >=
                        (const char *)operands[slot].lost +
                            operands[slot].lines * sizeof(unsigned long long));
            assert_true((const char *)operands[slot].tiles + operands[slot].tile_bytes <=
                        kept[slot].copy + kept[slot].bytes);
        }
        offset_of(seen.plan.flags);
    }
    keep_no_copies();
}

/* simt computes vectors, k = 0 and huge products. */
static void small_and_huge_products_are_left_to_simt(void **state) {
    static const struct {
        size_t m, k, n;
    } cases[] = {{5, 0, 7}, {1, 33554432, 1}, {5, 1 << 20, 5}, {0x7fffffff, 0x7fffffff, 0x7fffffff}};
    for (size_t index = 0; index < COUNT(cases); index++) {
        const struct mm_product product = product_of(cases[index].m, cases[index].k, cases[index].n);
        path.kind = MM_PATH_NONE;
        assert_int_equal(launch(&product), SIMT_BYTES);
        assert_int_equal(seen.count, 0);
        assert_int_equal(seen.simts, 1);
        assert_null(seen.run_flag);
        assert_int_equal(path.kind, MM_PATH_SIMT);
    }
}

static void compute_capability_9_0_is_required(void **state) {
    for (unsigned capability = 89; capability < 101; capability++) {
        const struct mm_device head = {.compute_capability = capability};
        assert_int_equal(mm_cuda_fp32_tensor_missing(&head) == NULL, capability == 90);
    }
}

RUN_TESTS(each_shape_has_its_memory, shares_are_computed_as_in_the_whole, halves_are_kept,
          small_and_huge_products_are_left_to_simt, compute_capability_9_0_is_required)
