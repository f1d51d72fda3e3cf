/* How a transposition reaches its kernel, or the plain copy in its place (gpu/cuda/transpose.c, copy.c and
 * launch.c), on a made-up CUDA runtime that notes what it is asked for. No GPU takes part, and nothing moves.
 */
#include "gpu/cuda/device.h"
#include "gpu/cuda/transpose.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { CALLS_MAX = 8, GRID_Y_MAX = 65535, BLOCK_ROWS = 64, PITCH_MAX = 1000 };

/* One call: a launch (rows and columns of blocks), or a copy (0 rows: of one piece). */
struct call {
    struct mm_product product;
    unsigned grid_rows;
    unsigned grid_cols;
    void *to;
    const void *from;
    size_t to_pitch;
    size_t from_pitch;
    size_t row_bytes;
    size_t rows;
};

static struct call calls[CALLS_MAX];
static size_t call_count;
static struct mm_cuda_device device;
static char memory[64];

static struct call *note(void) {
    assert_true(call_count < CALLS_MAX);
    memset(&calls[call_count], 0, sizeof calls[call_count]);
    return &calls[call_count++];
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *launch, const void *kernel, void **arguments) {
    (void)kernel;
    struct call *call = note();
    call->product = *(const struct mm_product *)arguments[0];
    call->grid_rows = launch->gridDim.y;
    call->grid_cols = launch->gridDim.x;
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    (void)stream;
    assert_int_equal(kind, cudaMemcpyDeviceToDevice);
    *note() = (struct call){.to = to, .from = from, .row_bytes = bytes};
    return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t row_bytes, size_t rows, enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)stream;
    assert_int_equal(kind, cudaMemcpyDeviceToDevice);
    *note() = (struct call){.to = to,
                            .from = from,
                            .to_pitch = to_pitch,
                            .from_pitch = from_pitch,
                            .row_bytes = row_bytes,
                            .rows = rows};
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel) {
    (void)kernel;
    memset(attributes, 0, sizeof *attributes);
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value) {
    (void)kernel;
    (void)attribute;
    (void)value;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *kernel, int threads,
                                                          size_t dynamic_bytes) {
    (void)kernel;
    (void)threads;
    (void)dynamic_bytes;
    *blocks = 8;
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

/* C is m×n; A lies at the memory's start, C 32 bytes behind. */
static struct mm_product product_of(size_t m, size_t n, bool transpose_a, size_t a_extra, size_t c_extra) {
    struct mm_product product = {
        .a = mm_matrix_dense(MM_INT64, transpose_a ? n : m, transpose_a ? m : n, memory),
        .c = mm_matrix_dense(MM_INT64, m, n, memory + 32),
        .transpose_a = transpose_a,
    };
    product.a.ld += a_extra;
    product.c.ld += c_extra;
    mm_product_conform_transposition(&product);
    return product;
}

static enum mm_status launch(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error) {
    const struct mm_cuda_layout layout = {
        .kernel = memory, .block_rows = BLOCK_ROWS, .block_cols = 32, .threads_x = 256, .threads_y = 1};
    return mm_cuda_transpose(&layout, product, lane, error);
}

static enum mm_status run(const struct mm_product *product, enum mm_cuda_purpose purpose) {
    struct mm_lane lane = {.device = &device, .purpose = purpose};
    struct mm_error error;
    call_count = 0;
    device.pitch_bytes_max = PITCH_MAX;
    return launch(product, &lane, &error);
}

static void blocks_cover_all_of_c(void **state) {
    const struct mm_product product = product_of(65, 33, true, 3, 5);
    (void)state;
    assert_int_equal(run(&product, MM_CUDA_RUN), MM_OK);
    assert_int_equal(call_count, 1);
    assert_int_equal(calls[0].grid_rows, 2);
    assert_int_equal(calls[0].grid_cols, 2);
    assert_memory_equal(&calls[0].product, &product, sizeof product);
}

/* C's next rows come from A's next columns. */
static void a_tall_c_is_cut_into_bands(void **state) {
    const size_t band = (size_t)GRID_Y_MAX * BLOCK_ROWS;
    const struct mm_product product = product_of(band + 7, 3, true, 2, 1);
    (void)state;
    assert_int_equal(run(&product, MM_CUDA_RUN), MM_OK);
    assert_int_equal(call_count, 2);
    assert_int_equal(calls[0].grid_rows, GRID_Y_MAX);
    assert_int_equal(calls[0].product.m, band);
    assert_int_equal(calls[1].grid_rows, 1);
    assert_int_equal(calls[1].product.m, 7);
    assert_int_equal(calls[1].product.n, 3);
    assert_int_equal(calls[1].product.a.cols, 7);
    assert_int_equal(calls[1].product.a.rows, 3);
    assert_int_equal(calls[1].product.a.ld, band + 9);
    assert_int_equal((char *)calls[1].product.a.data - memory, 8 * band);
    assert_int_equal((char *)calls[1].product.c.data - memory, 32 + 8 * 4 * band);
}

static void what_lies_there_is_copied(void **state) {
    const struct mm_product dense = product_of(5, 7, false, 0, 0);
    const struct mm_product row = product_of(1, 7, false, 4, 9);
    const struct mm_product longer = product_of(5, 7, false, 0, 2);
    (void)state;
    assert_int_equal(run(&dense, MM_CUDA_RUN), MM_OK);
    assert_int_equal(call_count, 1);
    assert_int_equal(calls[0].rows, 0);
    assert_int_equal(calls[0].row_bytes, 5 * 7 * 8);
    assert_ptr_equal(calls[0].from, memory);
    assert_ptr_equal(calls[0].to, memory + 32);

    assert_int_equal(run(&row, MM_CUDA_RUN), MM_OK);
    assert_int_equal(call_count, 1);
    assert_int_equal(calls[0].rows, 0);
    assert_int_equal(calls[0].row_bytes, 7 * 8);

    assert_int_equal(run(&longer, MM_CUDA_RUN), MM_OK);
    assert_int_equal(call_count, 1);
    assert_int_equal(calls[0].rows, 5);
    assert_int_equal(calls[0].row_bytes, 7 * 8);
    assert_int_equal(calls[0].from_pitch, 7 * 8);
    assert_int_equal(calls[0].to_pitch, 9 * 8);
}

/* Rows further apart than the runtime copies at once go one by one. */
static void the_pitch_has_a_limit(void **state) {
    const struct mm_product at_limit = product_of(2, 7, false, PITCH_MAX / 8 - 7, 0);
    const struct mm_product past_limit = product_of(2, 7, false, PITCH_MAX / 8 - 6, 1);
    (void)state;
    assert_int_equal(run(&at_limit, MM_CUDA_RUN), MM_OK);
    assert_int_equal(call_count, 1);
    assert_int_equal(calls[0].rows, 2);
    assert_int_equal(run(&past_limit, MM_CUDA_RUN), MM_OK);
    assert_int_equal(call_count, 2);
    assert_int_equal(calls[1].row_bytes, 7 * 8);
    assert_int_equal((const char *)calls[1].from - memory, PITCH_MAX + 8);
    assert_int_equal((char *)calls[1].to - memory, 32 + 8 * 8);
}

static void a_rehearsal_moves_nothing(void **state) {
    const struct mm_product product = product_of(5, 7, false, 0, 0);
    const struct mm_product turned = product_of(5, 7, true, 0, 0);
    (void)state;
    assert_int_equal(run(&product, MM_CUDA_REHEARSE), MM_OK);
    assert_int_equal(call_count, 0);
    assert_int_equal(run(&turned, MM_CUDA_REHEARSE), MM_OK);
    assert_int_equal(call_count, 0);
}

/* Those of the kernel: of a copy there would be none to tell. */
static void attributes_are_those_of_the_kernel(void **state) {
    static const struct mm_variant variant = {.name = "turn", .op = MM_TRANSPOSE, .launch = launch};
    struct mm_attributes attributes;
    struct mm_error error;
    (void)state;
    assert_int_equal(mm_cuda_attributes(&device.head, &variant, 0, &attributes, &error), MM_OK);
    assert_int_equal(attributes.threads_per_block, 256);
    assert_int_equal(attributes.blocks_per_multiprocessor, 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_cover_all_of_c),     cmocka_unit_test(a_tall_c_is_cut_into_bands),
        cmocka_unit_test(what_lies_there_is_copied), cmocka_unit_test(the_pitch_has_a_limit),
        cmocka_unit_test(a_rehearsal_moves_nothing), cmocka_unit_test(attributes_are_those_of_the_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
