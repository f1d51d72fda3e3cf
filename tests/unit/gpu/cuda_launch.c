/* gpu/cuda/launch.c, transpose.c and copy.c on a made-up CUDA runtime: it keeps one kernel's limits as the
 * documentation of cudaFuncSetAttribute tells them, and notes what a preparation asks for and what a launch
 * or a copy gets. No GPU takes part, and nothing moves. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/lane.h"
#include "tests/unit/unit.h"

enum { KIB = 1024, UNASKED = 48 * KIB, CALLS_MAX = 8, GRID_Y_MAX = 65535, PITCH_MAX = 1000 };

/* One call: a launch (rows and columns of blocks), or a copy (0 rows: of one piece). */
struct call {
    struct mm_product product;
    unsigned grid_rows, grid_cols;
    void *to;
    const void *from;
    size_t to_pitch, from_pitch, row_bytes, rows;
};

/* The runtime: one device and one kernel. */
static struct {
    size_t static_bytes, dynamic_max, block_max;
    unsigned reads, asked;
    size_t launched_bytes; /* dynamic, of the last launch */
    bool may_begin_before; /* the last launch, before the one ahead of it is over */
    struct call calls[CALLS_MAX];
    unsigned call_count;
} runtime;

static struct mm_cuda_device device;
static const struct mm_backend backend = {.name = "made up", .plan = mm_cuda_plan};
static char memory[64]; /* an address to count from */

static cudaError_t note(struct call call) {
    assert_true(runtime.call_count < CALLS_MAX);
    runtime.calls[runtime.call_count++] = call;
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel) {
    runtime.reads++;
    *attributes = (struct cudaFuncAttributes){.sharedSizeBytes = runtime.static_bytes,
                                              .numRegs = 32,
                                              .maxDynamicSharedSizeBytes = (int)runtime.dynamic_max};
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value) {
    runtime.asked++;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        runtime.static_bytes + (size_t)value > runtime.block_max)
        return cudaErrorInvalidValue;
    runtime.dynamic_max = (size_t)value;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *kernel, int threads,
                                                          size_t dynamic_bytes) {
    *blocks = dynamic_bytes <= runtime.dynamic_max ? 2 : 0;
    return cudaSuccess;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *launch, const void *kernel, void **arguments) {
    if (launch->dynamicSmemBytes > runtime.dynamic_max || launch->gridDim.y > GRID_Y_MAX)
        return cudaErrorInvalidValue;
    runtime.launched_bytes = launch->dynamicSmemBytes;
    runtime.may_begin_before = launch->numAttrs == 1 &&
                               launch->attrs[0].id == cudaLaunchAttributeProgrammaticStreamSerialization &&
                               launch->attrs[0].val.programmaticStreamSerializationAllowed == 1;
    return note((struct call){.product = *(const struct mm_product *)arguments[0],
                              .grid_rows = launch->gridDim.y,
                              .grid_cols = launch->gridDim.x});
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    assert_int_equal(kind, cudaMemcpyDeviceToDevice);
    return note((struct call){.to = to, .from = from, .row_bytes = bytes});
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t row_bytes, size_t rows, enum cudaMemcpyKind kind, cudaStream_t stream) {
    assert_int_equal(kind, cudaMemcpyDeviceToDevice);
    return note((struct call){{.m = 0}, 0, 0, to, from, to_pitch, from_pitch, row_bytes, rows});
}

enum mm_status mm_cuda_use(struct mm_device *head, struct mm_error *error) {
    return MM_OK;
}

enum mm_status mm_cuda_status(struct mm_cuda_device *failed, cudaError_t code, const char *doing,
                              struct mm_error *error) {
    return code == cudaSuccess ? MM_OK : mm_fail(error, MM_INTERNAL, "error %d while %s", (int)code, doing);
}

/* The device as it is opened: the kernel has what comes unasked. */
static void reset(size_t static_bytes, size_t block_max) {
    memset(&runtime, 0, sizeof runtime);
    runtime.static_bytes = static_bytes;
    runtime.dynamic_max = UNASKED - static_bytes;
    runtime.block_max = block_max;
    device.pitch_bytes_max = PITCH_MAX;
    device.head =
        (struct mm_device){.backend = &backend, .name = "Card", .shared_bytes_per_block_max = block_max};
}

static struct mm_error error;

/* --- products ------------------------------------------------------------------------------------------- */

static struct mm_plan plan_of(size_t dynamic_bytes) {
    static const struct mm_variant variant_96 = {.name = "made up", .tile = 96};
    return (struct mm_plan){.device = &device.head,
                            .variant = &variant_96,
                            .layout = {.kernel = &runtime,
                                       .block_rows = 96,
                                       .block_cols = 96,
                                       .threads_x = 32,
                                       .threads_y = 32,
                                       .dynamic_shared_bytes = dynamic_bytes}};
}

/* What comes unasked is not asked for, more is asked for once, and too much is unsupported. A launch trusts
 * its preparation, and asks the runtime for nothing. */
static void shared_memory_is_asked_for_once(void **state) {
    static const struct {
        size_t static_bytes, block_max;
        size_t first, last; /* of two preparations; the launch is like the last */
        enum mm_status status;
        unsigned asked;
    } cases[] = {{8 * KIB, 227 * KIB, 40 * KIB, 40 * KIB, MM_OK, 0},
                 {8 * KIB, 227 * KIB, 40 * KIB + 1, 219 * KIB, MM_OK, 1},
                 {1 * KIB, 64 * KIB, 63 * KIB + 1, 63 * KIB, MM_UNSUPPORTED, 1}};
    const struct mm_product product = {.m = 1, .n = 1, .k = 1};
    struct mm_lane lane = {.device = &device};
    for (size_t index = 0; index < COUNT(cases); index++) {
        const struct mm_plan first = plan_of(cases[index].first), last = plan_of(cases[index].last);
        reset(cases[index].static_bytes, cases[index].block_max);
        assert_int_equal(mm_cuda_prepare(&first, NULL, &lane, &error), cases[index].status);
        assert_int_equal(runtime.asked, cases[index].status == MM_OK ? cases[index].asked : 0);
        assert_int_equal(mm_cuda_prepare(&last, NULL, &lane, NULL), MM_OK);
        const unsigned reads = runtime.reads;
        assert_int_equal(mm_cuda_launch(&last, &product, &lane, NULL), MM_OK);
        assert_int_equal(runtime.call_count, 1);
        assert_int_equal(runtime.launched_bytes, cases[index].last);
        assert_int_equal(runtime.calls[0].product.tile, 96);
        assert_true(runtime.reads == reads && runtime.asked == cases[index].asked);
    }
    assert_true(strstr(error.detail, "65537") && strstr(error.detail, "65536") &&
                strstr(error.detail, "Card"));
}

/* Of a C of two grids' rows and a row more, each beginning where its rows do. */
static void tall_products_are_cut_into_bands(void **state) {
    enum { BAND = GRID_Y_MAX * 96, M = 2 * BAND + 1, K = 5, N = 97, LDA = 7, LDC = 101 };
    for (int turned = 0; turned < 2; turned++) {
        const struct mm_plan plan = plan_of(0);
        struct mm_lane lane = {.device = &device};
        struct mm_product product = {.m = M, .n = N, .k = K, .transpose_a = turned != 0};
        product.a = mm_matrix_dense(MM_FLOAT32, turned ? K : M, turned ? M : K, memory);
        product.a.ld = turned ? M + LDA : LDA;
        product.b = mm_matrix_dense(MM_FLOAT32, K, N, memory);
        product.c = mm_matrix_dense(MM_FLOAT32, M, N, memory);
        product.c.ld = LDC;
        reset(0, 227 * KIB);
        assert_int_equal(mm_cuda_launch(&plan, &product, &lane, &error), MM_OK);
        assert_int_equal(runtime.call_count, 3);
        for (size_t index = 0; index < 3; index++) {
            const struct mm_product *band = &runtime.calls[index].product;
            const size_t rows = index < 2 ? BAND : 1;
            const size_t a_step = turned ? 1 : LDA;
            assert_int_equal(runtime.calls[index].grid_rows, index < 2 ? GRID_Y_MAX : 1);
            assert_int_equal(runtime.calls[index].grid_cols, 2);
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

/* A kernel that does not wait by itself must not begin before the one ahead of it is over; a device before
 * compute capability 9.0 cannot have it so. */
static void only_those_that_wait_begin_before(void **state) {
    static const struct {
        bool follows;
        unsigned compute_capability;
    } cases[] = {{true, 90}, {false, 90}, {true, 89}};
    struct mm_product product = {.m = 1, .n = 1, .k = 1};
    void *arguments[] = {&product};
    struct mm_lane lane = {.device = &device};
    reset(0, 227 * KIB);
    for (size_t index = 0; index < COUNT(cases); index++) {
        struct mm_layout layout = plan_of(0).layout;
        layout.follows = cases[index].follows;
        device.head.compute_capability = cases[index].compute_capability;
        assert_int_equal(mm_cuda_enqueue(&layout, (dim3){1, 1, 1}, arguments, &lane, &error), MM_OK);
        assert_int_equal(runtime.may_begin_before, index == 0);
    }
    assert_int_equal(runtime.call_count, 3);
}

/* --- transpositions ------------------------------------------------------------------------------------- */

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

/* Of int64; A lies at the memory's start, C 32 bytes behind. Rows further apart than the runtime copies at
 * once go one by one. */
static void what_lies_there_is_copied(void **state) {
    static const struct {
        size_t m, n, a_extra, c_extra;
        unsigned calls;
        size_t rows, row_bytes, from_pitch, to_pitch; /* of the last call */
        long from, to;
    } cases[] = {
        {5, 7, 0, 0, 1, 0, 5 * 7 * 8, 0, 0, 0, 32},
        {1, 7, 4, 9, 1, 0, 7 * 8, 0, 0, 0, 32},
        {5, 7, 0, 2, 1, 5, 7 * 8, 7 * 8, 9 * 8, 0, 32},
        {2, 7, PITCH_MAX / 8 - 7, 0, 1, 2, 7 * 8, PITCH_MAX, 7 * 8, 0, 32},
        {2, 7, PITCH_MAX / 8 - 6, 1, 2, 0, 7 * 8, 0, 0, PITCH_MAX + 8, 32 + 8 * 8},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        const size_t m = cases[index].m, n = cases[index].n;
        struct mm_lane lane = {.device = &device};
        struct mm_plan plan;
        struct mm_product product = {.a = mm_matrix_dense(MM_INT64, m, n, memory),
                                     .c = mm_matrix_dense(MM_INT64, m, n, memory + 32)};
        product.a.ld += cases[index].a_extra;
        product.c.ld += cases[index].c_extra;
        mm_product_conform_transposition(&product);
        reset(0, 227 * KIB);
        assert_int_equal(mm_plan_make(&device.head, &turn, &product, false, &plan, &error), MM_OK);
        assert_null(plan.layout.batch_kernel); /* it goes alone */
        assert_int_equal(mm_cuda_prepare(&plan, &product, &lane, &error), MM_OK);
        assert_int_equal(runtime.call_count, 0);
        assert_int_equal(plan.launch(&plan, &product, &lane, &error), MM_OK);
        assert_int_equal(runtime.call_count, cases[index].calls);
        const struct call *call = &runtime.calls[cases[index].calls - 1];
        assert_true(call->rows == cases[index].rows && call->row_bytes == cases[index].row_bytes);
        assert_true(call->from_pitch == cases[index].from_pitch && call->to_pitch == cases[index].to_pitch);
        assert_int_equal((const char *)call->from - memory, cases[index].from);
        assert_int_equal((char *)call->to - memory, cases[index].to);
    }
}

static enum mm_status plan_large(const struct mm_product *product, struct mm_plan *plan, struct mm_error *e) {
    plan->layout = plan_of(72 * KIB).layout;
    return MM_OK;
}

/* Occupancy is asked for what a launch would have; of a transposition, what its kernel would, not a copy. */
static void attributes_are_those_of_a_launch(void **state) {
    static const struct mm_variant large = {.name = "large", .plan[MM_FLOAT32] = plan_large};
    static const struct {
        const struct mm_variant *variant;
        unsigned threads, dynamic_bytes;
    } cases[] = {{&large, 1024, 72 * KIB}, {&turn, 256, 0}};
    struct mm_attributes attributes;
    for (size_t index = 0; index < COUNT(cases); index++) {
        reset(1 * KIB, 227 * KIB);
        assert_int_equal(mm_cuda_attributes(&device.head, cases[index].variant, 0, &attributes, &error),
                         MM_OK);
        assert_int_equal(attributes.threads_per_block, cases[index].threads);
        assert_int_equal(attributes.registers_per_thread, 32);
        assert_int_equal(attributes.static_shared_bytes, 1 * KIB);
        assert_int_equal(attributes.dynamic_shared_bytes, cases[index].dynamic_bytes);
        assert_int_equal(attributes.blocks_per_multiprocessor, 2);
        assert_int_equal(runtime.call_count, 0);
    }
    reset(0, 64 * KIB);
    assert_int_equal(mm_cuda_attributes(&device.head, &large, 0, &attributes, &error), MM_UNSUPPORTED);
}

RUN_TESTS(shared_memory_is_asked_for_once, tall_products_are_cut_into_bands, attributes_are_those_of_a_launch,
          only_those_that_wait_begin_before, what_lies_there_is_copied)
