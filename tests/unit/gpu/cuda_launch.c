/* Tests launches, copies and kernel attributes on a fake CUDA runtime. */
#include "cuda_job.h"

#include "gpu/cuda/lane.h"
#include "gpu/product/shape.h"

#include <math.h>

enum { KIB = 1024, UNASKED = 48 * KIB };

static char memory[64]; /* stands for device memory and for a kernel */
static struct mm_error error;

/* Resets the fake device and limits its shared memory. */
static void limit(size_t static_bytes, size_t block_max) {
    reset(NULL);
    fake_cuda.static_bytes = static_bytes;
    fake_cuda.dynamic_max = UNASKED - static_bytes;
    fake_cuda.block_max = device.head.shared_bytes_per_block_max = block_max;
}

static struct mm_plan plan_of(size_t dynamic_bytes) {
    static const struct mm_variant variant_96 = {.name = "made up", .tile = 96};
    return (struct mm_plan){.device = &device.head,
                            .variant = &variant_96,
                            .layout = {.kernel = memory,
                                       .block_rows = 96,
                                       .block_cols = 96,
                                       .threads_x = 32,
                                       .threads_y = 32,
                                       .dynamic_shared_bytes = dynamic_bytes}};
}

/* A kernel that needs more than the default shared memory asks for it once, not at each launch. */
static void shared_memory_limit_is_raised_once(void **state) {
    static const struct {
        size_t static_bytes, block_max;
        size_t first, last; /* shared memory of two preparations; the launch uses the last */
        enum mm_status status;
        unsigned asked;
    } cases[] = {{8 * KIB, 227 * KIB, 40 * KIB, 40 * KIB, MM_OK, 0},
                 {8 * KIB, 227 * KIB, 40 * KIB + 1, 219 * KIB, MM_OK, 1},
                 {1 * KIB, 64 * KIB, 63 * KIB + 1, 63 * KIB, MM_UNSUPPORTED, 1}};
    const struct mm_product product = {.m = 1, .n = 1, .k = 1};
    struct mm_lane lane = {.device = &device};
    for (size_t index = 0; index < COUNT(cases); index++) {
        const struct mm_plan first = plan_of(cases[index].first), last = plan_of(cases[index].last);
        limit(cases[index].static_bytes, cases[index].block_max);
        assert_int_equal(mm_cuda_prepare(&first, &product, &lane, &error), cases[index].status);
        assert_int_equal(fake_cuda.attributes_set, cases[index].status == MM_OK ? cases[index].asked : 0);
        assert_int_equal(mm_cuda_prepare(&last, &product, &lane, NULL), MM_OK);
        const unsigned reads = fake_cuda.attributes_read;
        assert_int_equal(mm_cuda_launch(&last, &product, &lane, NULL), MM_OK);
        assert_int_equal(fake_cuda.notes, 1);
        assert_int_equal(fake_cuda.launched_bytes, cases[index].last);
        assert_int_equal(fake_cuda.noted[0].product.tile, 96);
        assert_true(fake_cuda.attributes_read == reads && fake_cuda.attributes_set == cases[index].asked);
    }
    assert_true(strstr(error.detail, "65537") && strstr(error.detail, "65536") &&
                strstr(error.detail, "Card"));
}

/* C has one row more than two grids can cover. Each launch begins at the first row of its band. */
static void tall_products_are_divided_into_bands(void **state) {
    enum { BAND = FAKE_GRID_Y_MAX * 96, M = 2 * BAND + 1, K = 5, N = 97, LDA = 7, LDC = 101 };
    for (int turned = 0; turned < 2; turned++) {
        const struct mm_plan plan = plan_of(0);
        struct mm_lane lane = {.device = &device};
        struct mm_product product = {.m = M, .n = N, .k = K, .transpose_a = turned != 0};
        product.a = mm_matrix_dense(MM_FLOAT32, turned ? K : M, turned ? M : K, memory);
        product.a.ld = turned ? M + LDA : LDA;
        product.b = mm_matrix_dense(MM_FLOAT32, K, N, memory);
        product.c = mm_matrix_dense(MM_FLOAT32, M, N, memory);
        product.c.ld = LDC;
        limit(0, 227 * KIB);
        assert_int_equal(mm_cuda_launch(&plan, &product, &lane, &error), MM_OK);
        assert_int_equal(fake_cuda.notes, 3);
        for (size_t index = 0; index < 3; index++) {
            const struct mm_product *band = &fake_cuda.noted[index].product;
            const size_t rows = index < 2 ? BAND : 1;
            const size_t a_step = turned ? 1 : LDA;
            assert_int_equal(fake_cuda.noted[index].grid.y, index < 2 ? FAKE_GRID_Y_MAX : 1);
            assert_int_equal(fake_cuda.noted[index].grid.x, 2);
            assert_true(band->m == rows && band->c.rows == rows && band->a.ld == product.a.ld);
            assert_int_equal(turned ? band->a.cols : band->a.rows, rows);
            assert_int_equal(turned ? band->a.rows : band->a.cols, K);
            assert_int_equal((uintptr_t)band->a.data - (uintptr_t)memory,
                             index * BAND * a_step * sizeof(float));
            assert_ptr_equal(band->b.data, memory);
            assert_int_equal((uintptr_t)band->c.data - (uintptr_t)memory, index * BAND * LDC * sizeof(float));
        }
    }
}

/* From compute capability 9.0 on, kernels that wait for their predecessor may start before it ends. */
static void only_kernels_that_wait_start_early(void **state) {
    static const struct {
        bool follows;
        unsigned compute_capability;
    } cases[] = {{true, 90}, {false, 90}, {true, 89}};
    struct mm_product product = {.m = 1, .n = 1, .k = 1};
    void *arguments[] = {&product};
    struct mm_lane lane = {.device = &device};
    limit(0, 227 * KIB);
    for (size_t index = 0; index < COUNT(cases); index++) {
        struct mm_layout layout = plan_of(0).layout;
        layout.follows = cases[index].follows;
        device.head.compute_capability = cases[index].compute_capability;
        assert_int_equal(mm_cuda_enqueue(&layout, (dim3){1, 1, 1}, arguments, &lane, &error), MM_OK);
        assert_int_equal(fake_cuda.may_begin_before, index == 0);
    }
    assert_int_equal(fake_cuda.notes, 3);
}

static enum mm_status plan_turn(const struct mm_product *product, struct mm_plan *plan, struct mm_error *e) {
    const struct mm_layout layout = {.kernel = memory,
                                     .batch_kernel = memory,
                                     .block_rows = 64,
                                     .block_cols = 32,
                                     .threads_x = 256,
                                     .threads_y = 1};
    mm_cuda_plan_transposition(&layout, product, plan);
    return MM_OK;
}

static const struct mm_variant turn = {
    .name = "turn", .op = MM_TRANSPOSE, .plan = {[0 ... MM_DTYPE_COUNT - 1] = plan_turn}};

/* Each product of a stack is a layer of the grid. Tall products are launched in bands of rows. */
static void a_stack_is_one_launch(void **state) {
    static const struct {
        size_t count, n;
        unsigned launches, layers, rows, last_layers;
    } cases[] = {{70, 7, 1, 70, 1, 70},
                 {70000, 7, 2, 65535, 1, 4465},
                 {2, 65 * FAKE_GRID_Y_MAX, 4, 1, FAKE_GRID_Y_MAX, 1}};
    for (size_t index = 0; index < COUNT(cases); index++) {
        const struct mm_shape a = {3, {cases[index].count, 5, cases[index].n}};
        struct mm_lane lane = {.device = &device};
        struct mm_product product = {.a = mm_shape_view(&a, false, MM_INT64), .transpose_a = true};
        const struct mm_shape *const shapes[MM_OPERANDS_MAX] = {&a};
        struct mm_stack stack;
        struct mm_plan plan;
        limit(0, 227 * KIB);
        assert_int_equal(mm_shape_conform(MM_TRANSPOSE, shapes, &product, &stack, &error), MM_OK);
        product.c.dtype = MM_INT64;
        assert_int_equal(mm_plan_make(&device.head, &turn, &product, &plan, &error), MM_OK);
        assert_int_equal(mm_cuda_prepare(&plan, &product, &lane, &error), MM_OK);
        assert_int_equal(fake_cuda.attributes_read,
                         plan.launch_stack != NULL ? 2 : 1); /* also loads the kernel for stacks */
        assert_int_equal(mm_plan_launch(&plan, &product, &lane, &error), MM_OK);
        assert_int_equal(fake_cuda.notes, cases[index].launches);
        assert_int_equal(fake_cuda.noted[0].grid.z, cases[index].layers);
        assert_int_equal(fake_cuda.noted[0].grid.y, cases[index].rows);
        assert_int_equal(fake_cuda.noted[cases[index].launches - 1].grid.z, cases[index].last_layers);
    }
}

/* How the plan of plan_multiply launches a stack. */
static enum way { BY_BATCH_KERNEL, AT_ONCE, ONE_BY_ONE } way;

static enum mm_status launch_all(const struct mm_plan *plan, const struct mm_product *product, size_t first,
                                 size_t count, struct mm_lane *lane, struct mm_error *e) {
    return plan->launch(plan, product, lane, e);
}

static enum mm_status plan_multiply(const struct mm_product *product, struct mm_plan *plan,
                                    struct mm_error *e) {
    plan->layout = plan_of(0).layout;
    plan->layout.batch_kernel = way == BY_BATCH_KERNEL ? memory : NULL;
    plan->launch_stack = way == AT_ONCE ? launch_all : NULL;
    return MM_OK;
}

static const struct mm_variant multiply = {
    .name = "multiply", .tile = 96, .converts = true, .plan[MM_FLOAT32] = plan_multiply};

enum { STACK_M = 2, STACK_N = 3, IN_ITEM = STACK_M * STACK_N, IN_STACK = 100 * IN_ITEM };

static double sum_at(size_t index) {
    return (double)(index * 7 % 23) - 9.0;
}

static double addend_at(size_t index) {
    return (double)(index * 5 % 19) - 8.0;
}

/* Makes a stack of products with an addend. If `is_shared`, all products have the same addend. */
static struct mm_product make_stack(size_t count, bool is_shared, bool is_transposed, enum mm_dtype c_dtype,
                                    struct mm_stack *stack) {
    static float addends[IN_STACK], c[IN_STACK];
    const struct mm_shape a = {3, {count, STACK_M, 5}}, b = {3, {count, 5, STACK_N}};
    const struct mm_shape addend = {3, {is_shared ? 1 : count, STACK_M, STACK_N}};
    const struct mm_shape *const shapes[MM_OPERANDS_MAX] = {&a, &b, &addend};
    struct mm_product product = {.a = mm_shape_view(&a, false, MM_FLOAT32),
                                 .b = mm_shape_view(&b, false, MM_FLOAT32),
                                 .c.dtype = c_dtype,
                                 .addend = mm_shape_view(&addend, false, c_dtype),
                                 .epilogue = {.is_set = true,
                                              .activation = MM_ACTIVATION_RELU,
                                              .alpha.of_float = 2.0F,
                                              .beta.of_float = -1.0F}};
    assert_int_equal(mm_shape_conform(MM_MATMUL, shapes, &product, stack, &error), MM_OK);
    product.transpose_addend = is_transposed;
    if (is_transposed)
        product.addend = mm_matrix_dense(c_dtype, stack->addend_count * STACK_N, STACK_M, NULL);
    product.addend.data = addends;
    product.c.data = c;
    for (size_t index = 0; index < count * IN_ITEM; index++) {
        mm_dtype_put(c_dtype, addends, index, addend_at(index));
        mm_dtype_put(c_dtype, c, index, sum_at(index));
    }
    return product;
}

/* The fake kernel computes nothing, so the test stores the sums: in C, and in the workspace, which the pass
 * reads if C has another type than the sums. */
static void passes_finish_a_stack(void **state) {
    static const struct {
        enum way way;
        size_t count, first; /* products of the stack, and of its first part */
        bool is_shared, is_transposed;
        enum mm_dtype c_dtype;
        unsigned launches, passes;
    } cases[] = {{BY_BATCH_KERNEL, 100, 27, false, false, MM_FLOAT32, 2, 2},
                 {BY_BATCH_KERNEL, 100, 27, true, false, MM_FLOAT32, 2, 1 + 3},
                 {BY_BATCH_KERNEL, 100, 28, true, true, MM_FLOAT32, 2, 1 + 2},
                 {BY_BATCH_KERNEL, 100, 28, false, true, MM_FLOAT16, 2, 1 + 2},
                 {BY_BATCH_KERNEL, 100, 27, true, false, MM_FLOAT16, 2, 1 + 3},
                 {AT_ONCE, 100, 100, false, false, MM_FLOAT32, 1, 1},
                 {AT_ONCE, 73, 73, true, false, MM_FLOAT32, 1, 3},
                 {AT_ONCE, 72, 72, true, false, MM_FLOAT16, 1, 2},
                 {ONE_BY_ONE, 4, 1, true, false, MM_FLOAT32, 4, 4},
                 {ONE_BY_ONE, 4, 1, false, true, MM_FLOAT32, 4, 4},
                 {ONE_BY_ONE, 4, 1, true, false, MM_FLOAT16, 4, 4}};
    static float sums[IN_STACK];
    for (size_t index = 0; index < IN_STACK; index++)
        sums[index] = (float)sum_at(index);
    for (size_t index = 0; index < COUNT(cases); index++) {
        const size_t count = cases[index].count, first = cases[index].first;
        const bool has_sums = cases[index].c_dtype != MM_FLOAT32; /* in the workspace */
        const size_t sums_count = (cases[index].way == ONE_BY_ONE ? 1 : count) * IN_ITEM;
        struct mm_lane lane = {.device = &device, .scratch = sums};
        struct mm_stack stack;
        struct mm_plan plan;
        const struct mm_product product = make_stack(
            count, cases[index].is_shared, cases[index].is_transposed, cases[index].c_dtype, &stack);
        way = cases[index].way;
        limit(0, 227 * KIB);
        assert_int_equal(mm_plan_make(&device.head, &multiply, &product, &plan, &error), MM_OK);
        assert_int_equal(plan.workspace_bytes, has_sums ? sums_count * sizeof(float) : 0);
        assert_int_equal(mm_plan_launch_range(&plan, &product, 0, first, &lane, &error), MM_OK);
        if (first < count)
            assert_int_equal(mm_plan_launch_range(&plan, &product, first, count - first, &lane, &error),
                             MM_OK);
        assert_int_equal(fake_cuda.notes, cases[index].launches);
        assert_int_equal(fake_cuda.passes, cases[index].passes);
        for (size_t at = 0; at < count * IN_ITEM; at++) {
            const size_t row = at % IN_ITEM / STACK_N, col = at % STACK_N;
            const size_t before = cases[index].is_shared ? 0 : at / IN_ITEM * IN_ITEM;
            const size_t in_addend = cases[index].is_transposed ? col * STACK_M + row : row * STACK_N + col;
            const double sum = sum_at(has_sums ? at % sums_count : at);
            const double expected = fmax(2.0 * sum - addend_at(before + in_addend), 0.0);
            if (mm_dtype_get(cases[index].c_dtype, product.c.data, at) != expected)
                fail_msg("case %zu, element %zu", index, at);
        }
    }
}

/* Copies int64 in as few calls as possible. Rows that are too far apart for one call take a call each. */
static void a_plain_transposition_is_a_copy(void **state) {
    enum { PITCH_MAX = 1000, WORDS = 400 };
    static uint64_t a[WORDS], c[WORDS], expected[WORDS];
    static const struct {
        size_t m, n, a_extra, c_extra;
        unsigned copies;
    } cases[] = {{5, 7, 0, 0, 1},
                 {1, 7, 4, 9, 1},
                 {5, 7, 0, 2, 1},
                 {2, 7, PITCH_MAX / 8 - 7, 0, 1},
                 {2, 7, PITCH_MAX / 8 - 6, 1, 2},
                 {2, 7, 1, PITCH_MAX / 8 - 6, 2}};
    for (size_t index = 0; index < COUNT(cases); index++) {
        const size_t m = cases[index].m, n = cases[index].n;
        struct mm_lane lane = {.device = &device};
        struct mm_plan plan;
        struct mm_product product = {.a = mm_matrix_dense(MM_INT64, m, n, a),
                                     .c = mm_matrix_dense(MM_INT64, m, n, c)};
        product.a.ld += cases[index].a_extra;
        product.c.ld += cases[index].c_extra;
        (void)mm_product_conform(MM_TRANSPOSE, &product, NULL);
        limit(0, 227 * KIB);
        device.pitch_bytes_max = fake_cuda.pitch_max = PITCH_MAX;
        for (size_t at = 0; at < WORDS; at++) {
            a[at] = UINT64_C(0x7ff4000000000001) + at; /* a signalling NaN */
            c[at] = expected[at] = at;
        }
        for (size_t at = 0; at < m * n; at++)
            expected[at / n * product.c.ld + at % n] = a[at / n * product.a.ld + at % n];
        assert_int_equal(mm_plan_make(&device.head, &turn, &product, &plan, &error), MM_OK);
        assert_null(plan.layout.batch_kernel); /* cannot share a launch */
        assert_int_equal(mm_cuda_prepare(&plan, &product, &lane, &error), MM_OK);
        assert_int_equal(plan.launch(&plan, &product, &lane, &error), MM_OK);
        assert_memory_equal(c, expected, sizeof c);
        assert_int_equal(fake_cuda.copies, cases[index].copies);
        assert_int_equal(fake_cuda.notes, 0);
    }
}

static enum mm_status plan_large(const struct mm_product *product, struct mm_plan *plan, struct mm_error *e) {
    plan->layout = plan_of(72 * KIB).layout;
    return MM_OK;
}

static const struct mm_variant large = {.name = "large", .plan[MM_FLOAT32] = plan_large};

static const struct mm_variant *choose_large(const struct mm_device *any, const struct mm_product *product) {
    return &large;
}

/* The reported occupancy belongs to the block size and the shared memory of the launch. */
static void attributes_are_those_of_a_launch(void **state) {
    static const struct mm_variant chooses = {.name = "auto", .choose[MM_FLOAT32] = choose_large};
    static const struct {
        const struct mm_variant *variant;
        unsigned threads, dynamic_bytes;
    } cases[] = {{&large, 1024, 72 * KIB}, {&turn, 256, 0}};
    struct mm_attributes attributes;
    struct mm_plan plan;
    enum mm_dtype dtype;
    for (size_t index = 0; index < COUNT(cases); index++) {
        limit(1 * KIB, 227 * KIB);
        assert_int_equal(mm_plan_smallest(&device.head, cases[index].variant, 0, &plan, &dtype, &error),
                         MM_OK);
        assert_int_equal(mm_cuda_attributes(&device.head, &plan, &attributes, &error), MM_OK);
        assert_int_equal(attributes.threads_per_block, cases[index].threads);
        assert_int_equal(attributes.registers_per_thread, 32);
        assert_int_equal(attributes.static_shared_bytes, 1 * KIB);
        assert_int_equal(attributes.dynamic_shared_bytes, cases[index].dynamic_bytes);
        assert_int_equal(attributes.blocks_per_multiprocessor, 2);
        assert_int_equal(fake_cuda.notes, 0);
    }
    assert_int_equal(mm_plan_smallest(&device.head, &chooses, 0, &plan, &dtype, &error), MM_UNSUPPORTED);
    limit(0, 64 * KIB);
    assert_int_equal(mm_plan_smallest(&device.head, &large, 0, &plan, &dtype, &error), MM_OK);
    assert_int_equal(mm_cuda_attributes(&device.head, &plan, &attributes, &error), MM_UNSUPPORTED);
}

RUN_TESTS_BETWEEN(reset, drop, shared_memory_limit_is_raised_once, tall_products_are_divided_into_bands,
                  attributes_are_those_of_a_launch, only_kernels_that_wait_start_early, a_stack_is_one_launch,
                  passes_finish_a_stack, a_plain_transposition_is_a_copy)
