/* Tests the workspace and kernel arguments of fp64_tensor. The kernels are fakes. */
#include "gpu/cuda/variants.h"
#include "gpu/cuda/variants/fp64_tensor/plan.h"
#include "gpu/cuda/variants/tensor/plan.h"
#include "gpu/cuda/variants/tensor/tensor.h"
#include "tests/unit/gpu/cuda_kept.h"

enum { NATIVE_BYTES = 1000 };

static const char kernels[6];
const void *const mm_fp64_scan_kernel = &kernels[0];
const void *const mm_fp64_scale_kernel = &kernels[1];
const void *const mm_fp64_residue_kernel = &kernels[2];
const void *const mm_fp64_certify_kernel = &kernels[3];
const void *const mm_fp64_product_kernel = &kernels[4];
const void *const mm_fp64_chinese_kernel = &kernels[5];
const size_t mm_fp64_residue_shared_bytes = 60000, mm_fp64_product_shared_bytes = 200000;

/* The last launch. */
static struct {
    unsigned count;
    unsigned passes; /* over operands */
    struct mm_fp64_plan plan;
    struct mm_tensor_plan product;
    struct mm_matrix planes[2];
    unsigned maps;
    const void *native_workspace;
    const unsigned *natives;
    unsigned native_count;
    unsigned loads;
    unsigned clears;
    unsigned residue_blocks;
} seen;

void mm_fp64_set_limits(struct mm_fp64_plan *plan) {
    plan->limit = plan->a.k;
}

unsigned mm_tensor_lines(size_t all, unsigned whole, unsigned square) {
    return (unsigned)mm_size_min(all, whole);
}

static enum mm_status prepare_native(const struct mm_plan *plan, const struct mm_product *product,
                                     struct mm_lane *lane, struct mm_error *error) {
    seen.loads++;
    return MM_OK;
}

static enum mm_status launch_native(const struct mm_plan *plan, const struct mm_product *product,
                                    struct mm_lane *lane, struct mm_error *error) {
    fail_msg("%s", "tensor's own launch does not report the path");
    return MM_OK;
}

enum mm_status mm_cuda_tensor(const struct mm_product *product, struct mm_plan *plan,
                              struct mm_error *error) {
    plan->launch = launch_native;
    plan->prepare = prepare_native;
    plan->finishes = true;
    plan->workspace_bytes = NATIVE_BYTES;
    return MM_OK;
}

enum mm_status mm_cuda_tensor_enqueue(const struct mm_plan *plan, const struct mm_product *product,
                                      struct mm_lane *lane, void *workspace, const unsigned *products,
                                      struct mm_error *error) {
    seen.native_workspace = workspace;
    seen.natives = products;
    seen.native_count++;
    return MM_OK;
}

enum mm_status mm_cuda_map(struct mm_lane *lane, CUtensorMapDataType type, const struct mm_matrix *matrix,
                           size_t count, unsigned lines, CUtensorMap *map, struct mm_error *error) {
    assert_int_equal(count, MM_FP64_MODULI);
    assert_true(lines > 0 && lines <= 128);
    seen.planes[seen.maps++] = *matrix;
    return MM_OK;
}

enum mm_status mm_cuda_load(const struct mm_layout *layout, struct mm_lane *lane, struct mm_error *error) {
    seen.loads++;
    return MM_OK;
}

enum mm_status mm_cuda_enqueue(const struct mm_layout *layout, dim3 grid, void **arguments,
                               struct mm_lane *lane, struct mm_error *error) {
    seen.count++;
    assert_false(layout->follows); /* no kernel waits for the kernel before it */
    if (layout->kernel == mm_fp64_residue_kernel)
        seen.residue_blocks = grid.x;
    seen.passes += layout->kernel == mm_fp64_scan_kernel || layout->kernel == mm_fp64_scale_kernel ||
                   layout->kernel == mm_fp64_residue_kernel;
    if (layout->kernel == mm_fp64_product_kernel) {
        seen.product = *(const struct mm_tensor_plan *)arguments[0];
        assert_int_equal(grid.x, seen.product.schedule.clusters * MM_FP64_CLUSTER);
        assert_in_range(seen.product.schedule.clusters, 1, MULTIPROCESSORS / MM_FP64_CLUSTER);
    }
    if (layout->kernel == mm_fp64_chinese_kernel) {
        seen.plan = *(const struct mm_fp64_plan *)arguments[0];
        assert_int_equal(grid.x,
                         seen.plan.schedule.cluster_tile_rows * seen.plan.schedule.cluster_tile_cols * 2);
    }
    return MM_OK;
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream) {
    seen.clears++;
    return cudaSuccess;
}

static struct mm_path path;

/* Plans, prepares and enqueues a product. Returns the bytes of the workspace. */
static size_t launch(size_t m, size_t k, size_t n) {
    const struct mm_product product = {.m = m,
                                       .n = n,
                                       .k = k,
                                       .a = mm_matrix_dense(MM_FLOAT64, m, k, scratch),
                                       .b = mm_matrix_dense(MM_FLOAT64, k, n, scratch),
                                       .c = mm_matrix_dense(MM_FLOAT64, m, n, scratch)};
    struct mm_lane lane = {.device = &device, .path = &path, .scratch = scratch};
    struct mm_plan plan = {.device = &device.head};
    struct mm_error error;
    memset(&seen, 0, sizeof seen);
    assert_int_equal(mm_cuda_fp64_tensor(&product, &plan, &error), MM_OK);
    assert_int_equal(plan.layout.block_rows, 0); /* 0 means that C is not divided into bands of rows */
    assert_int_equal(plan.prepare(&plan, &product, &lane, &error), MM_OK);
    assert_int_equal(plan.launch(&plan, &product, &lane, &error), MM_OK);
    if (seen.count > 0) { /* the residues lie behind all that a launch needs if they are kept */
        assert_int_equal(plan.kept.workspace_bytes + plan.kept.bytes[0] + plan.kept.bytes[1],
                         plan.workspace_bytes);
        assert_int_equal(kept[0].bytes, plan.kept.bytes[0]);
        assert_int_equal(kept[1].bytes, plan.kept.bytes[1]);
    }
    return plan.workspace_bytes;
}

/* The parts of the workspace are aligned and do not overlap. */
static void expect_pieces(size_t bytes) {
    const struct mm_fp64_plan *plan = &seen.plan;
    const struct mm_fp64_operand *operands[] = {&plan->a, &plan->b};
    const size_t tiles = (size_t)plan->schedule.cluster_tile_rows * plan->schedule.cluster_tile_cols;
    assert_true(offset_of(plan->planes) >= offset_of(plan->flags) + sizeof *plan->flags);
    assert_true(offset_of(seen.native_workspace) >= offset_of(plan->planes) + tiles * 15 * 256 * 256);
    size_t end = offset_of(seen.native_workspace) + NATIVE_BYTES;
    for (unsigned slot = 0; slot < 2; slot++) {
        const struct mm_fp64_operand *operand = operands[slot];
        const size_t lines = operand->lines;
        const struct {
            const void *begin;
            size_t bytes;
        } pieces[] = {{operand->seen, sizeof *operand->seen},
                      {operand->counts, lines * sizeof *operand->counts},
                      {operand->squares, (operand->k + 511) / 512 * lines * sizeof *operand->squares},
                      {operand->scales, lines * sizeof *operand->scales},
                      {operand->planes, 15 * lines * operand->k_bytes}};
        for (size_t index = 0; index < COUNT(pieces); index++) {
            assert_true(offset_of(pieces[index].begin) >= end && offset_of(pieces[index].begin) % 256 == 0);
            end = offset_of(pieces[index].begin) + pieces[index].bytes;
        }
        assert_true(operand->k_bytes >= operand->k && operand->k_bytes % 128 == 0);
        assert_ptr_equal(seen.planes[slot].data, operand->planes);
        assert_int_equal(seen.planes[slot].rows, 15 * lines);
        assert_int_equal(seen.planes[slot].cols, operand->k);
        assert_int_equal(seen.planes[slot].ld, operand->k_bytes);
    }
    assert_true(bytes >= end);
}

static void each_shape_has_its_memory(void **state) {
    static const size_t shapes[][3] = {{1, 1, 1},       {129, 512, 1},    {257, 63, 40},     {300, 700, 80},
                                       {256, 513, 257}, {1000, 64, 1000}, {1024, 1024, 1024}};
    for (size_t index = 0; index < COUNT(shapes); index++) {
        const size_t m = shapes[index][0], k = shapes[index][1], n = shapes[index][2];
        const size_t bytes = launch(m, k, n);
        assert_int_equal(seen.loads, 7); /* six kernels, and those of tensor */
        assert_int_equal(seen.plan.schedule.steps, (k + 127) / 128);
        assert_int_equal(seen.plan.schedule.sharers, 0);
        assert_true((size_t)seen.plan.schedule.cluster_tile_rows * 256 >= m);
        assert_true((size_t)seen.plan.schedule.cluster_tile_cols * 256 >= n);
        assert_int_equal(seen.plan.schedule.whole_cluster_tiles,
                         15 * seen.plan.schedule.cluster_tile_rows * seen.plan.schedule.cluster_tile_cols);
        assert_true(seen.plan.limit == (double)k);
        assert_int_equal(seen.clears, 2);
        assert_ptr_equal(seen.product.sums, seen.plan.planes);
        assert_ptr_equal(seen.product.products, &seen.plan.flags->moduli);
        assert_ptr_equal(seen.natives, &seen.plan.flags->natives);
        /* A's rows are contiguous along k, B's columns are not. */
        assert_int_equal(seen.residue_blocks, m * ((k + 1023) / 1024) + (n + 31) / 32 * ((k + 127) / 128));
        expect_pieces(bytes);
    }
}

/* The residues of a stored operand are computed only once. Later products use them. */
static void residues_are_kept(void **state) {
    for (unsigned filled = 0; filled < 4; filled++) {
        keep_copies(filled);
        launch(300, 70, 80);
        for (unsigned slot = 0; slot < 2; slot++)
            assert_int_equal(kept[slot].is_noted, !(filled >> slot & 1));
        assert_int_equal(seen.passes, filled == 3 ? 0 : 3);
        assert_int_equal(seen.residue_blocks, (filled & 1 ? 0 : 300) + (filled & 2 ? 0 : 3));
        assert_int_equal(seen.clears, !(filled & 1) + !(filled & 2));
        assert_ptr_equal(seen.plan.a.seen, kept[0].copy);
        assert_ptr_equal(seen.plan.b.seen, kept[1].copy);
        offset_of(seen.plan.flags);
    }
    keep_no_copies();
}

/* tensor computes products that fp64_tensor cannot count. */
static void other_products_are_left_to_tensor(void **state) {
    static const struct {
        size_t m, k, n;
    } cases[] = {{5, 1 << 21, 5}, {(1 << 20) + 1, 5, 5}, {5, 5, 0x7fffffff}};
    for (size_t index = 0; index < COUNT(cases); index++) {
        path.kind = MM_PATH_NONE;
        assert_int_equal(launch(cases[index].m, cases[index].k, cases[index].n), NATIVE_BYTES);
        assert_int_equal(seen.count, 0);
        assert_int_equal(seen.native_count, 1);
        assert_null(seen.natives);
        assert_int_equal(path.kind, MM_PATH_NATIVE);
    }
}

RUN_TESTS(each_shape_has_its_memory, residues_are_kept, other_products_are_left_to_tensor)
