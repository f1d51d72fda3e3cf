/* gpu/cuda/launch.c on a made-up CUDA runtime, which keeps one kernel's limits as the documentation of
 * cudaFuncSetAttribute tells them: what a rehearsal asks for, and what a launch gets. No GPU takes part. */
#include "gpu/cuda/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { KIB = 1024, UNASKED = 48 * KIB };

/* The runtime: one device and one kernel. */
static struct {
    size_t static_bytes;
    size_t dynamic_max;
    size_t block_max;
    unsigned reads;
    unsigned asked;
    unsigned launches;
    size_t launched_bytes;         /* dynamic, of the last launch */
    unsigned tile;                 /* of the last launch's product */
    bool may_begin_before;         /* the last launch, before the one ahead of it is over */
    struct mm_product products[4]; /* of the first launches */
    unsigned rows_of_blocks[4];
} runtime;

static struct mm_cuda_device device;

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel) {
    (void)kernel;
    runtime.reads++;
    *attributes = (struct cudaFuncAttributes){.sharedSizeBytes = runtime.static_bytes,
                                              .numRegs = 32,
                                              .maxDynamicSharedSizeBytes = (int)runtime.dynamic_max};
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value) {
    (void)kernel;
    runtime.asked++;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        runtime.static_bytes + (size_t)value > runtime.block_max)
        return cudaErrorInvalidValue;
    runtime.dynamic_max = (size_t)value;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *kernel, int threads,
                                                          size_t dynamic_bytes) {
    (void)kernel;
    (void)threads;
    *blocks = dynamic_bytes <= runtime.dynamic_max ? 2 : 0;
    return cudaSuccess;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *launch, const void *kernel, void **arguments) {
    (void)kernel;
    if (launch->dynamicSmemBytes > runtime.dynamic_max || launch->gridDim.y > 65535)
        return cudaErrorInvalidValue;
    if (runtime.launches < sizeof runtime.products / sizeof runtime.products[0]) {
        runtime.products[runtime.launches] = *(const struct mm_product *)arguments[0];
        runtime.rows_of_blocks[runtime.launches] = launch->gridDim.y;
    }
    runtime.launches++;
    runtime.launched_bytes = launch->dynamicSmemBytes;
    runtime.tile = ((const struct mm_product *)arguments[0])->tile;
    runtime.may_begin_before = launch->numAttrs == 1 &&
                               launch->attrs[0].id == cudaLaunchAttributeProgrammaticStreamSerialization &&
                               launch->attrs[0].val.programmaticStreamSerializationAllowed == 1;
    return cudaSuccess;
}

enum mm_status mm_cuda_use(struct mm_device *head, struct mm_error *error) {
    (void)head;
    (void)error;
    return MM_OK;
}

enum mm_status mm_cuda_fail(struct mm_cuda_device *failed, cudaError_t code, const char *doing,
                            struct mm_error *error) {
    (void)failed;
    return mm_fail(error, MM_INTERNAL, "error %d while %s", (int)code, doing);
}

/* The device as it is opened: the kernel has what comes unasked. */
static void reset(size_t static_bytes, size_t block_max) {
    memset(&runtime, 0, sizeof runtime);
    runtime.static_bytes = static_bytes;
    runtime.dynamic_max = UNASKED - static_bytes;
    runtime.block_max = block_max;
    device.head = (struct mm_device){.name = "Card", .shared_bytes_per_block_max = block_max};
}

static struct mm_cuda_layout layout_of(size_t dynamic_bytes) {
    return (struct mm_cuda_layout){.kernel = &runtime,
                                   .block_rows = 96,
                                   .block_cols = 96,
                                   .threads_x = 32,
                                   .threads_y = 32,
                                   .dynamic_shared_bytes = dynamic_bytes};
}

static enum mm_status launch_bytes(size_t dynamic_bytes, enum mm_cuda_purpose purpose,
                                   struct mm_error *error) {
    const struct mm_cuda_layout layout = layout_of(dynamic_bytes);
    const struct mm_product product = {.m = 1, .n = 1, .k = 1, .tile = 96};
    struct mm_lane lane = {.device = &device, .purpose = purpose};
    *error = (struct mm_error){0};
    return mm_cuda_launch(&layout, &product, &lane, error);
}

static void what_comes_unasked_is_not_asked_for(void **state) {
    struct mm_error error;
    (void)state;
    reset(8 * KIB, 227 * KIB);
    assert_int_equal(launch_bytes(40 * KIB, MM_CUDA_REHEARSE, &error), MM_OK);
    assert_int_equal(launch_bytes(40 * KIB, MM_CUDA_RUN, &error), MM_OK);
    assert_int_equal(runtime.asked, 0);
    assert_int_equal(runtime.launched_bytes, 40 * KIB);
}

static void more_is_asked_for_once(void **state) {
    struct mm_error error;
    (void)state;
    reset(8 * KIB, 227 * KIB);
    assert_int_equal(launch_bytes(40 * KIB + 1, MM_CUDA_REHEARSE, &error), MM_OK);
    assert_int_equal(runtime.asked, 1);
    assert_int_equal(launch_bytes(219 * KIB, MM_CUDA_REHEARSE, &error), MM_OK);
    assert_int_equal(runtime.asked, 1);
    assert_int_equal(launch_bytes(219 * KIB, MM_CUDA_RUN, &error), MM_OK);
    assert_int_equal(runtime.launched_bytes, 219 * KIB);
    assert_int_equal(runtime.tile, 96);
}

/* The attributes are the runtime's word for what a kernel may have; a run trusts its rehearsal. */
static void a_run_asks_the_runtime_for_nothing(void **state) {
    struct mm_error error;
    (void)state;
    reset(0, 227 * KIB);
    assert_int_equal(launch_bytes(72 * KIB, MM_CUDA_REHEARSE, &error), MM_OK);
    const unsigned reads = runtime.reads;
    assert_int_equal(launch_bytes(72 * KIB, MM_CUDA_RUN, &error), MM_OK);
    assert_int_equal(runtime.reads, reads);
    assert_int_equal(runtime.asked, 1);
    assert_int_equal(runtime.launches, 1);
}

static void too_much_is_unsupported(void **state) {
    struct mm_error error;
    (void)state;
    reset(1 * KIB, 64 * KIB);
    assert_int_equal(launch_bytes(63 * KIB + 1, MM_CUDA_REHEARSE, &error), MM_UNSUPPORTED);
    assert_non_null(strstr(error.detail, "65537"));
    assert_non_null(strstr(error.detail, "65536"));
    assert_non_null(strstr(error.detail, "Card"));
    assert_int_equal(runtime.asked, 0);
    assert_int_equal(launch_bytes(63 * KIB, MM_CUDA_REHEARSE, &error), MM_OK);
    assert_int_equal(launch_bytes(63 * KIB, MM_CUDA_RUN, &error), MM_OK);
}

/* The bands of a C of two grids' rows and a row more, each beginning where its rows do. */
static void expect_bands(bool transpose_a) {
    enum { BAND = 65535 * 96, M = 2 * BAND + 1, K = 5, N = 3, LDA = 7, LDC = 11 };
    static float nothing; /* an address to count from */
    const struct mm_cuda_layout layout = layout_of(0);
    struct mm_lane lane = {.device = &device, .purpose = MM_CUDA_RUN};
    struct mm_product product = {.m = M, .n = N, .k = K, .transpose_a = transpose_a};
    struct mm_error error;
    product.a = mm_matrix_dense(MM_FLOAT32, transpose_a ? K : M, transpose_a ? M : K, &nothing);
    product.a.ld = transpose_a ? M + LDA : LDA;
    product.b = mm_matrix_dense(MM_FLOAT32, K, N, &nothing);
    product.c = mm_matrix_dense(MM_FLOAT32, M, N, &nothing);
    product.c.ld = LDC;
    reset(0, 227 * KIB);
    assert_int_equal(mm_cuda_launch(&layout, &product, &lane, &error), MM_OK);
    assert_int_equal(runtime.launches, 3);
    for (size_t index = 0; index < 3; index++) {
        const struct mm_product *band = &runtime.products[index];
        const size_t rows = index < 2 ? BAND : 1;
        const size_t a_step = transpose_a ? 1 : LDA;
        assert_int_equal(runtime.rows_of_blocks[index], index < 2 ? 65535 : 1);
        assert_int_equal(band->m, rows);
        assert_int_equal(transpose_a ? band->a.cols : band->a.rows, rows);
        assert_int_equal(transpose_a ? band->a.rows : band->a.cols, K);
        assert_int_equal(band->a.ld, product.a.ld);
        assert_int_equal((uintptr_t)band->a.data - (uintptr_t)&nothing,
                         index * BAND * a_step * sizeof(float));
        assert_ptr_equal(band->b.data, &nothing);
        assert_int_equal(band->c.rows, rows);
        assert_int_equal((uintptr_t)band->c.data - (uintptr_t)&nothing, index * BAND * LDC * sizeof(float));
    }
}

static void tall_products_are_cut_into_bands(void **state) {
    (void)state;
    expect_bands(false);
    expect_bands(true);
}

static enum mm_status launch_large(const struct mm_product *product, struct mm_lane *lane,
                                   struct mm_error *error) {
    const struct mm_cuda_layout layout = layout_of(72 * KIB);
    return mm_cuda_launch(&layout, product, lane, error);
}

/* Occupancy is asked for what a launch would have. */
static void attributes_are_those_of_a_launch(void **state) {
    static const struct mm_variant variant = {.name = "large", .launch = launch_large};
    struct mm_attributes attributes;
    struct mm_error error;
    (void)state;
    reset(0, 227 * KIB);
    assert_int_equal(mm_cuda_attributes(&device.head, &variant, 0, &attributes, &error), MM_OK);
    assert_int_equal(attributes.threads_per_block, 1024);
    assert_int_equal(attributes.registers_per_thread, 32);
    assert_int_equal(attributes.static_shared_bytes, 0);
    assert_int_equal(attributes.dynamic_shared_bytes, 72 * KIB);
    assert_int_equal(attributes.blocks_per_multiprocessor, 2);
    assert_int_equal(runtime.launches, 0);

    reset(0, 64 * KIB);
    assert_int_equal(mm_cuda_attributes(&device.head, &variant, 0, &attributes, &error), MM_UNSUPPORTED);
}

static bool may_begin_before(bool follows, unsigned compute_capability) {
    struct mm_cuda_layout layout = layout_of(0);
    struct mm_lane lane = {.device = &device, .purpose = MM_CUDA_RUN};
    struct mm_product product = {.m = 1, .n = 1, .k = 1};
    void *arguments[] = {&product};
    struct mm_error error;
    layout.follows = follows;
    device.head.compute_capability = compute_capability;
    assert_int_equal(mm_cuda_enqueue(&layout, (dim3){1, 1, 1}, arguments, &lane, &error), MM_OK);
    return runtime.may_begin_before;
}

/* A kernel that does not wait by itself must not begin before the one ahead of it is over; a device before
 * compute capability 9.0 cannot have it so. */
static void only_those_that_wait_begin_before(void **state) {
    (void)state;
    reset(0, 227 * KIB);
    assert_true(may_begin_before(true, 90));
    assert_false(may_begin_before(false, 90));
    assert_false(may_begin_before(true, 89));
    assert_int_equal(runtime.launches, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_unasked_is_not_asked_for),
        cmocka_unit_test(more_is_asked_for_once),
        cmocka_unit_test(a_run_asks_the_runtime_for_nothing),
        cmocka_unit_test(too_much_is_unsupported),
        cmocka_unit_test(tall_products_are_cut_into_bands),
        cmocka_unit_test(attributes_are_those_of_a_launch),
        cmocka_unit_test(only_those_that_wait_begin_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
