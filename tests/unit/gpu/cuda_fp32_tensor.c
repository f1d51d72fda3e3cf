/* What fp32_tensor asks the device for (gpu/cuda/variants/fp32_tensor/fp32_tensor.c): memory that holds all
 * that its kernels are told of, and clusters that there is room for. The kernels are made up; no GPU takes
 * part. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/variants/fp32_tensor/parts.h"
#include "gpu/cuda/variants/simt.h"
#include "gpu/cuda/variants.h"
#include "tests/unit/unit.h"

enum { MULTIPROCESSORS = 132, SIMT_BYTES = 1000 };

static const char kernels[4];
const void *const mm_fp32_scan_kernel = &kernels[0];
const void *const mm_fp32_split_kernel = &kernels[1];
const void *const mm_fp32_product_kernel = &kernels[2];
const void *const mm_fp32_repair_kernel = &kernels[3];
const size_t mm_fp32_product_shared_bytes = 200000;

/* What was enqueued last. */
static struct {
    unsigned count;
    unsigned splits;
    struct mm_fp32_operand a;
    struct mm_fp32_operand b;
    struct mm_fp32_plan plan;
    dim3 grid; /* of the product */
    char *simt_scratch;
    const unsigned *run_flag;
    unsigned simts;
    unsigned loads;
    size_t cleared;
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
    return MM_OK;
}

enum mm_status mm_cuda_enqueue(const struct mm_layout *layout, dim3 grid, void **arguments,
                               struct mm_lane *lane, struct mm_error *error) {
    seen.count++;
    /* The first comes behind what clears memory, which it does not wait for by itself. */
    assert_int_equal(layout->follows, layout->kernel != mm_fp32_scan_kernel);
    if (layout->kernel == mm_fp32_scan_kernel) {
        seen.a = *(const struct mm_fp32_operand *)arguments[0];
        seen.b = *(const struct mm_fp32_operand *)arguments[1];
        assert_int_equal(grid.x, seen.a.lines + seen.b.lines);
        assert_int_equal(*(const unsigned *)arguments[2], seen.a.lines);
    }
    seen.splits += layout->kernel == mm_fp32_split_kernel;
    if (layout->kernel == mm_fp32_product_kernel) {
        seen.plan = *(const struct mm_fp32_plan *)arguments[0];
        seen.grid = grid;
    }
    return MM_OK;
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream) {
    seen.cleared = bytes;
    return cudaSuccess;
}

enum mm_status mm_cuda_status(struct mm_cuda_device *device, cudaError_t code, const char *doing,
                              struct mm_error *error) {
    return code == cudaSuccess ? MM_OK : mm_fail(error, MM_INTERNAL, "%s", doing);
}

static struct mm_path path;
static struct mm_cuda_device device = {.head.multiprocessors = MULTIPROCESSORS};
static _Alignas(256) char scratch[1 << 26]; /* nothing is written there */

static struct mm_product product_of(size_t m, size_t k, size_t n) {
    return (struct mm_product){.m = m,
                               .n = n,
                               .k = k,
                               .a = mm_matrix_dense(MM_FLOAT32, m, k, scratch),
                               .b = mm_matrix_dense(MM_FLOAT32, k, n, scratch),
                               .c = mm_matrix_dense(MM_FLOAT32, m, n, scratch)};
}

/* Plans it, prepares it and enqueues it; the workspace that it needs. */
static size_t launch_by(const struct mm_product *product, bool is_frugal) {
    struct mm_lane lane = {.device = &device, .path = &path, .scratch = scratch};
    struct mm_plan plan = {.device = &device.head, .is_frugal = is_frugal};
    struct mm_error error;
    memset(&seen, 0, sizeof seen);
    assert_int_equal(mm_cuda_fp32_tensor(product, &plan, &error), MM_OK);
    assert_int_equal(seen.count + seen.simts, 0);
    assert_int_equal(plan.layout.block_rows, 0); /* so it is not cut into bands */
    if (plan.prepare != NULL) {
        assert_int_equal(plan.prepare(&plan, product, &lane, &error), MM_OK);
        assert_int_equal(seen.loads, 5); /* the four kernels, and simt's */
    }
    assert_int_equal(plan.launch(&plan, product, &lane, &error), MM_OK);
    return plan.workspace_bytes;
}

static size_t launch(const struct mm_product *product) {
    return launch_by(product, false);
}

static size_t offset_of(const void *piece) {
    assert_true((const char *)piece >= scratch);
    return (size_t)((const char *)piece - scratch);
}

/* One behind the other, each aligned and as long as it has to be; those that have to be zeros come first. */
static void expect_pieces(size_t bytes) {
    const struct mm_fp32_plan *plan = &seen.plan;
    const size_t blocks = (size_t)plan->clusters * MM_FP32_CLUSTER;
    const size_t sums = blocks * MM_FP32_COMPUTING * MM_FP32_SUMS * sizeof(float);
    const size_t lines = plan->product.m + plan->product.n;
    const size_t line_bytes = (size_t)plan->steps * 2 * MM_FP32_LINE_BYTES;
    const struct {
        const void *begin;
        size_t bytes;
    } pieces[] = {
        {plan->flags, sizeof *plan->flags},
        {plan->partial_ready, blocks * 2 * sizeof *plan->partial_ready},
        {plan->max_a, lines * sizeof *plan->max_a},
        {plan->lost_a, lines * sizeof *plan->lost_a},
        {plan->uncertain, plan->uncertain_max * sizeof *plan->uncertain},
        {plan->partial, sums},
        {plan->flushed, sums},
        {plan->a, (size_t)plan->cluster_tile_rows * MM_FP32_CLUSTER * MM_FP32_EDGE * line_bytes},
        {plan->b, (size_t)plan->cluster_tile_cols * MM_FP32_WIDE * line_bytes},
        {seen.simt_scratch, SIMT_BYTES},
    };
    size_t end = 0;
    for (size_t index = 0; index < COUNT(pieces); index++) {
        const size_t begin = offset_of(pieces[index].begin);
        assert_true(begin >= end && begin % 256 == 0);
        end = begin + pieces[index].bytes;
        if (index < 4)
            assert_true(seen.cleared >= end);
    }
    assert_true(bytes >= end);
    assert_true(seen.cleared <= offset_of(plan->uncertain));
}

static void clusters_have_room_and_work(void) {
    const struct mm_fp32_plan *plan = &seen.plan;
    const unsigned cluster_tiles = plan->cluster_tile_rows * plan->cluster_tile_cols;
    const unsigned rest = cluster_tiles - plan->whole_cluster_tiles;
    assert_true(plan->clusters > 0 && plan->clusters <= MULTIPROCESSORS / MM_FP32_CLUSTER);
    assert_int_equal(seen.grid.x, plan->clusters * MM_FP32_CLUSTER);
    assert_int_equal(plan->whole_cluster_tiles % plan->clusters, 0);
    assert_true(rest < plan->clusters);
    assert_int_equal(plan->clusters * plan->share + plan->longer_shares, rest * plan->steps);
    assert_true(plan->longer_shares < plan->clusters);
}

static void each_shape_has_its_memory_and_its_shares(void **state) {
    static const size_t shapes[][3] = {{1, 1, 1},     {1, 64, 192},   {128, 65, 193},   {129, 512, 1},
                                       {257, 63, 40}, {300, 700, 80}, {256, 8193, 192}, {2000, 64, 2000}};
    for (size_t index = 0; index < COUNT(shapes); index++) {
        const struct mm_product product = product_of(shapes[index][0], shapes[index][1], shapes[index][2]);
        const size_t bytes = launch(&product);
        assert_int_equal(seen.plan.steps, (product.k + 63) / 64);
        assert_true((size_t)seen.plan.cluster_tile_rows * 256 >= product.m);
        assert_true((size_t)seen.plan.cluster_tile_cols * 192 >= product.n);
        assert_int_equal(seen.plan.max_b - seen.plan.max_a, product.m);
        assert_int_equal(seen.plan.lost_b - seen.plan.lost_a, product.m);
        assert_true(seen.plan.threshold > 1.0F);
        assert_ptr_equal(seen.run_flag, &seen.plan.flags->fallback);
        expect_pieces(bytes);
        clusters_have_room_and_work();
    }
}

/* Lines of op(A) are rows, those of op(B) columns. */
static void operands_are_read_as_they_are_stored(void **state) {
    for (unsigned orientation = 0; orientation < 4; orientation++) {
        struct mm_product product = product_of(30, 20, 10);
        product.transpose_a = (orientation & 1) != 0;
        product.transpose_b = (orientation & 2) != 0;
        launch(&product);
        assert_int_equal(seen.a.k_contiguous, !product.transpose_a);
        assert_int_equal(seen.b.k_contiguous, product.transpose_b);
        assert_int_equal(seen.a.lines, 30);
        assert_int_equal(seen.b.lines, 10);
        assert_int_equal(seen.splits, seen.a.k_contiguous && seen.b.k_contiguous ? 0 : 1);
    }
}

/* The bound that it keeps, for as little depth as there is and as much: the factor of E is least where a step
 * is whole. */
static void the_guard_is_wary_of_short_sums(void **state) {
    struct mm_product product = product_of(1, 1, 1);
    launch(&product);
    assert_true(seen.plan.threshold > 0x1p24F / 18 && seen.plan.threshold < 0x1p24F / 6);
    product = product_of(1, 64, 1);
    launch(&product);
    assert_true(seen.plan.threshold > 0x1p24F / 144 && seen.plan.threshold < 0x1p24F / 92);
    product = product_of(1, 65536, 1);
    launch(&product);
    assert_true(seen.plan.threshold > 0x1p24F / 131088 && seen.plan.threshold < 0x1p24F / 128000);
}

static void expect_left_to_simt(size_t m, size_t k, size_t n) {
    const struct mm_product product = product_of(m, k, n);
    launch(&product);
    assert_int_equal(seen.count, 0);
    assert_int_equal(seen.simts, 1);
    assert_null(seen.run_flag);
    assert_int_equal(path.kind, MM_PATH_SIMT);
}

/* Without depth, of vectors that tiles would make many times as large, and of what no memory can hold. */
static void what_is_not_worth_splitting_is_left_to_simt(void **state) {
    expect_left_to_simt(5, 0, 7);
    expect_left_to_simt(1, 33554432, 1);
    expect_left_to_simt(5, 1 << 20, 5);
    expect_left_to_simt(0x7fffffff, 0x7fffffff, 0x7fffffff);
}

/* If there is no memory for the halves, there is for simt's workspace. */
static void a_frugal_plan_is_left_to_simt(void **state) {
    const struct mm_product product = product_of(300, 700, 80);
    path.kind = MM_PATH_NONE;
    assert_int_equal(launch_by(&product, true), SIMT_BYTES);
    assert_int_equal(seen.count, 0);
    assert_int_equal(seen.simts, 1);
    assert_null(seen.run_flag);
    assert_int_equal(path.kind, MM_PATH_SIMT);
}

static void it_wants_hopper(void **state) {
    struct mm_device head = {.compute_capability = 90};
    assert_null(mm_cuda_fp32_tensor_missing(&head));
    head.compute_capability = 89;
    assert_non_null(mm_cuda_fp32_tensor_missing(&head));
    head.compute_capability = 100;
    assert_non_null(mm_cuda_fp32_tensor_missing(&head));
}

RUN_TESTS(each_shape_has_its_memory_and_its_shares, operands_are_read_as_they_are_stored,
          the_guard_is_wary_of_short_sums, what_is_not_worth_splitting_is_left_to_simt,
          a_frugal_plan_is_left_to_simt, it_wants_hopper)
