/* Tests how the variant `blas` prepares operands for the vendor's libraries. Fake libraries and kernels
 * compute on the host. They accept only what mm_blas_types says. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/variants.h"
#include "gpu/cuda/variants/blas.h"
#include "gpu/cuda/variants/finish.h"
#include "tests/unit/unit.h"

enum { EDGE_MAX = 48, LD_MAX = EDGE_MAX + 16, STORAGE_BYTES = EDGE_MAX * LD_MAX * 8 + 256 };
enum { WORKSPACE_BYTES = (32 << 20) + (1 << 17), GUARD_BYTES = 1 << 12, POISON = 0x7b, GUARD = 0x11 };
enum { EDGES_BYTES = 1 << 10 }; /* the fake library uses this many bytes at both ends of its workspace */

/* Stands for device memory. */
static _Alignas(256) unsigned char storage[3][STORAGE_BYTES], expected[STORAGE_BYTES];
static _Alignas(256) unsigned char workspace[WORKSPACE_BYTES + GUARD_BYTES];

/* Calls since the last launch. */
static struct {
    struct mm_product product; /* product that the library received */
    void *workspace;
    unsigned multiplied, turned, padded, copied, finished, loaded, prepared;
} seen;

static const struct mm_backend backend = {.name = "made up", .plan = mm_cuda_plan};
static struct mm_cuda_device device = {.head.backend = &backend, .pitch_bytes_max = 1 << 20};
static struct mm_error error;

const char *__wrap_mm_cuda_blas_missing(const struct mm_device *head);
const char *__wrap_mm_cuda_blas_float8_missing(const struct mm_device *head);
enum mm_status __wrap_mm_blas_prepare(struct mm_lane *lane, struct mm_error *failure);
enum mm_status __wrap_mm_blas_multiply(const struct mm_product *product, void *memory, struct mm_lane *lane,
                                       struct mm_error *failure);
cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t *launch, const void *kernel,
                                       void **arguments);
cudaError_t __wrap_cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel);
cudaError_t __wrap_cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                                   cudaStream_t stream);
cudaError_t __wrap_cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                     size_t row_bytes, size_t rows, enum cudaMemcpyKind kind,
                                     cudaStream_t stream);

const char *__wrap_mm_cuda_blas_missing(const struct mm_device *head) {
    return NULL;
}

const char *__wrap_mm_cuda_blas_float8_missing(const struct mm_device *head) {
    return NULL;
}

enum mm_status __wrap_mm_blas_prepare(struct mm_lane *lane, struct mm_error *failure) {
    seen.prepared++;
    return MM_OK;
}

static double at(const struct mm_matrix *matrix, bool is_turned, size_t row, size_t col) {
    const size_t index = is_turned ? col * matrix->ld + row : row * matrix->ld + col;
    return mm_dtype_get(matrix->dtype, matrix->data, index);
}

/* Stores an element of D from its sum, which is a small integer. */
static void store(const struct mm_product *product, size_t row, size_t col, double sum) {
    if (!mm_dtype_is_float(product->c.dtype))
        mm_store_c_uint32_t(product, row, col, (uint32_t)(int32_t)sum);
    else if (product->a.dtype == MM_FLOAT64)
        mm_store_c_double(product, row, col, sum);
    else
        mm_store_c_float(product, row, col, (float)sum);
}

/* The elements are small integers, so the sums are exact. */
static void compute(const struct mm_product *product) {
    for (size_t index = 0; index < mm_product_count(product); index++) {
        const struct mm_product item = mm_product_item(product, index);
        for (size_t row = 0; row < item.m; row++) {
            for (size_t col = 0; col < item.n; col++) {
                double sum = 0.0;
                for (size_t i = 0; i < item.k; i++)
                    sum += at(&item.a, item.transpose_a, row, i) * at(&item.b, item.transpose_b, i, col);
                store(&item, row, col, sum);
            }
        }
    }
}

static bool suits(const struct mm_matrix *matrix, unsigned alignment) {
    return (uintptr_t)matrix->data % alignment == 0 &&
           matrix->ld * mm_dtype_bytes(matrix->dtype) % alignment == 0 &&
           matrix->cols * mm_dtype_bytes(matrix->dtype) % alignment == 0;
}

enum mm_status __wrap_mm_blas_multiply(const struct mm_product *product, void *memory, struct mm_lane *lane,
                                       struct mm_error *failure) {
    const struct mm_blas_type *type = &mm_blas_types[product->a.dtype];
    seen.product = *product;
    seen.workspace = memory;
    seen.multiplied++;
    assert_true((type->results & MM_DTYPE_BIT(product->c.dtype)) != 0);
    if (type->alignment != 0) {
        assert_false(product->transpose_a);
        assert_true(product->transpose_b);
        assert_true(suits(&product->a, type->alignment));
        assert_true(suits(&product->b, type->alignment));
        assert_true(suits(&product->c, type->alignment));
    }
    if (type->workspace_bytes > 0) {
        assert_int_equal((uintptr_t)memory % 256, 0);
        memset(memory, POISON, EDGES_BYTES);
        memset((char *)memory + type->workspace_bytes - EDGES_BYTES, POISON, EDGES_BYTES);
    }
    assert_false(product->epilogue.is_set);
    compute(product);
    return MM_OK;
}

static void turn(const struct mm_product *product) {
    const size_t bytes = mm_dtype_bytes(product->a.dtype);
    seen.turned++;
    for (size_t row = 0; row < product->m; row++)
        for (size_t col = 0; col < product->n; col++)
            memcpy((char *)product->c.data + (row * product->c.ld + col) * bytes,
                   (char *)product->a.data + (col * product->a.ld + row) * bytes, bytes);
}

static void pad(const struct mm_product *product) {
    const size_t bytes = mm_dtype_bytes(product->a.dtype);
    seen.padded++;
    assert_true((uintptr_t)product->c.data % 16 == 0 && product->c.ld * bytes % 16 == 0);
    for (size_t row = 0; row < product->m; row++)
        memcpy((char *)product->c.data + row * product->c.ld * bytes,
               (char *)product->a.data + row * product->a.ld * bytes, product->n * bytes);
}

#define FINISH(SUM)                                                                                          \
    static void finish_##SUM(const struct mm_cuda_sums *sums) {                                              \
        for (size_t row = 0; row < sums->m; row++)                                                           \
            for (size_t col = 0; col < sums->n; col++) {                                                     \
                SUM x = ((const SUM *)sums->sums)[row * sums->sums_ld + col];                                \
                if (sums->terms.epilogue.is_set)                                                             \
                    x = mm_finish_##SUM(&sums->terms, row, col, x);                                          \
                mm_store_##SUM(sums->terms.dtype, sums->c, row * sums->c_ld + col, x);                       \
            }                                                                                                \
    }
FINISH(float)
FINISH(double)
FINISH(uint32_t)

/* Runs the pass over `count` matrices if the kernel is its kernel for a type of sums. */
static bool finish(const void *kernel, const struct mm_cuda_pass *pass, unsigned count) {
    static const enum mm_dtype dtypes[] = {MM_FLOAT32, MM_FLOAT64, MM_INT32};
    static void (*const finishes[])(const struct mm_cuda_sums *sums) = {finish_float, finish_double,
                                                                        finish_uint32_t};
    for (size_t type = 0; type < COUNT(dtypes); type++) {
        if (kernel != mm_cuda_finish_layout(dtypes[type]).kernel)
            continue;
        for (unsigned index = 0; index < count; index++)
            finishes[type](&pass->of[index]);
        seen.finished++;
        return true;
    }
    return false;
}

cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t *launch, const void *kernel,
                                       void **arguments) {
    const struct mm_product *product = arguments[0];
    if (finish(kernel, arguments[0], launch->gridDim.y))
        return cudaSuccess;
    if (kernel == mm_cuda_pad_layout(product->a.dtype).kernel) {
        pad(product);
    } else {
        turn(product);
    }
    return cudaSuccess;
}

cudaError_t __wrap_cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel) {
    *attributes = (struct cudaFuncAttributes){.numRegs = 32};
    seen.loaded++;
    return cudaSuccess;
}

cudaError_t __wrap_cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                                   cudaStream_t stream) {
    seen.copied++;
    memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t __wrap_cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                     size_t row_bytes, size_t rows, enum cudaMemcpyKind kind,
                                     cudaStream_t stream) {
    seen.copied++;
    for (size_t row = 0; row < rows; row++)
        memcpy((char *)to + row * to_pitch, (const char *)from + row * from_pitch, row_bytes);
    return cudaSuccess;
}

/* Elements between the rows of a matrix, and before its first row. */
struct gaps {
    size_t between;
    size_t before;
};

static struct mm_matrix place(unsigned which, enum mm_dtype dtype, size_t rows, size_t cols,
                              struct gaps gaps) {
    struct mm_matrix matrix = mm_matrix_dense(dtype, rows, cols, NULL);
    matrix.ld += gaps.between;
    matrix.data = storage[which] + gaps.before * mm_dtype_bytes(dtype);
    memset(storage[which], POISON, STORAGE_BYTES);
    return matrix;
}

static void fill(const struct mm_matrix *matrix, unsigned seed) {
    for (size_t row = 0; row < matrix->rows; row++)
        for (size_t col = 0; col < matrix->cols; col++)
            mm_dtype_put(matrix->dtype, matrix->data, row * matrix->ld + col,
                         (double)((row * 7 + col * 3 + seed) % 9) - 4.0);
}

static struct mm_product product_of(enum mm_dtype dtype, enum mm_dtype c_dtype, size_t m, size_t k, size_t n,
                                    unsigned transposes, struct gaps gaps) {
    struct mm_product product = {.transpose_a = transposes & 1, .transpose_b = transposes & 2};
    product.a = product.transpose_a ? place(0, dtype, k, m, gaps) : place(0, dtype, m, k, gaps);
    product.b = product.transpose_b ? place(1, dtype, n, k, gaps) : place(1, dtype, k, n, gaps);
    (void)mm_product_conform(MM_MATMUL, &product, NULL);
    product.c = place(2, c_dtype, m, n, gaps);
    fill(&product.a, 1);
    fill(&product.b, 2);
    return product;
}

/* Plans, prepares and launches the product. Only C may change. Returns the bytes of the workspace. */
static size_t run(const struct mm_product *product) {
    static unsigned char operands[2][STORAGE_BYTES];
    struct mm_lane lane = {.device = &device, .scratch = workspace};
    struct mm_plan plan;
    assert_int_equal(mm_plan_make(&device.head, &mm_cuda_variants[MM_CUDA_ROW_blas], product, &plan, &error),
                     MM_OK);
    assert_in_range(plan.workspace_bytes, 0, WORKSPACE_BYTES);
    assert_int_equal(plan.layout.block_rows, 0); /* 0 means that C is not divided into bands of rows */
    memset(workspace + plan.workspace_bytes, GUARD, GUARD_BYTES);
    memcpy(operands, storage, sizeof operands);
    memcpy(expected, storage[2], sizeof expected);
    struct mm_product copy = *product;
    copy.c.data = expected + ((unsigned char *)product->c.data - storage[2]);
    compute(&copy);
    memset(&seen, 0, sizeof seen);
    assert_int_equal(mm_cuda_prepare(&plan, product, &lane, &error), MM_OK);
    assert_int_equal(seen.prepared, 1);
    assert_int_equal(seen.multiplied + seen.turned + seen.padded + seen.copied + seen.finished, 0);
    assert_int_equal(mm_plan_launch(&plan, product, &lane, &error), MM_OK);
    assert_int_equal(seen.loaded > 0, seen.turned + seen.padded + seen.finished > 0);
    assert_memory_equal(storage[2], expected, sizeof expected);
    assert_memory_equal(storage, operands, sizeof operands);
    for (size_t byte = 0; byte < GUARD_BYTES; byte++)
        assert_int_equal(workspace[plan.workspace_bytes + byte], GUARD);
    return plan.workspace_bytes;
}

static const struct gaps all_gaps[] = {{0, 0}, {1, 0}, {4, 0}, {16, 0}, {0, 1}, {16, 16}, {3, 5}};

/* Tests every type of operands and C, transposition, stride and alignment. */
static void operands_are_prepared_for_the_library(void **state) {
    const struct mm_variant *row = &mm_cuda_variants[MM_CUDA_ROW_blas];
    unsigned count = 0;
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT; dtype++) {
        const struct mm_multiples of = mm_variant_multiples(row, dtype);
        for (enum mm_dtype c_dtype = 0; c_dtype < MM_DTYPE_COUNT && row->plan[dtype] != NULL; c_dtype++) {
            if ((mm_dtype_results(dtype) & MM_DTYPE_BIT(c_dtype)) == 0)
                continue;
            for (unsigned index = 0; index < 4 * COUNT(all_gaps); index++) {
                const struct gaps gaps = all_gaps[index / 4];
                const struct mm_product wide =
                    product_of(dtype, c_dtype, of.m, of.k, 5 * of.n, index % 4, gaps);
                run(&wide);
                const struct mm_product tall =
                    product_of(dtype, c_dtype, 33, 2 * of.k, of.n, index % 4, gaps);
                run(&tall);
                count++;
            }
        }
    }
    assert_int_equal(count, 4 * COUNT(all_gaps) * 13);
}

/* Operands that the library accepts are neither copied nor rounded. */
static void suitable_operands_are_not_copied(void **state) {
    static const struct {
        enum mm_dtype dtype, c_dtype;
        size_t k, n;
        unsigned turned; /* transposed copies of each operand that is stored the wrong way */
        unsigned finished;
    } cases[] = {
        {MM_FLOAT32, MM_FLOAT32, 5, 3, 0, 0},         {MM_FLOAT32, MM_FLOAT16, 5, 3, 0, 1},
        {MM_FLOAT64, MM_FLOAT32, 5, 3, 0, 1},         {MM_FLOAT16, MM_FLOAT32, 5, 3, 0, 0},
        {MM_BFLOAT16, MM_BFLOAT16, 5, 3, 0, 0},       {MM_INT8, MM_INT32, 4, 3, 1, 0},
        {MM_FLOAT8_E4M3FN, MM_FLOAT32, 16, 4, 1, 0},  {MM_FLOAT8_E4M3FN, MM_FLOAT16, 16, 8, 1, 0},
        {MM_FLOAT8_E4M3FN, MM_FLOAT16, 16, 12, 1, 1}, /* rows of C are not aligned to 16 bytes */
    };
    /* How many operands are stored the wrong way for the library, by the combination of transposes. */
    static const unsigned wrong_ways[] = {1, 2, 0, 1};
    for (size_t index = 0; index < COUNT(cases); index++) {
        for (unsigned transposes = 0; transposes < 4; transposes++) {
            const struct mm_product product =
                product_of(cases[index].dtype, cases[index].c_dtype, 7, cases[index].k, cases[index].n,
                           transposes, (struct gaps){0, 0});
            const size_t bytes = run(&product);
            const size_t own_bytes = mm_blas_types[product.a.dtype].workspace_bytes;
            assert_int_equal(seen.turned, cases[index].turned * wrong_ways[transposes]);
            assert_int_equal(seen.finished, cases[index].finished);
            assert_int_equal(seen.padded + seen.copied, 0);
            assert_int_equal(bytes > own_bytes, seen.turned + seen.finished > 0);
            if (seen.turned == 0)
                assert_ptr_equal(seen.product.a.data, product.a.data);
            if (seen.finished == 0)
                assert_ptr_equal(seen.product.c.data, product.c.data);
        }
    }
}

static void without_depth_a_kernel_stores_c(void **state) {
    const struct mm_product product = product_of(MM_INT8, MM_INT32, 3, 0, 5, 0, (struct gaps){1, 0});
    struct mm_plan plan, tiled;
    assert_int_equal(mm_plan_make(&device.head, &mm_cuda_variants[MM_CUDA_ROW_blas], &product, &plan, &error),
                     MM_OK);
    assert_int_equal(
        mm_plan_make(&device.head, &mm_cuda_variants[MM_CUDA_ROW_tiled_16], &product, &tiled, &error), MM_OK);
    assert_ptr_equal(plan.layout.kernel, tiled.layout.kernel);
    assert_int_equal(plan.workspace_bytes, 0);
}

/* After the library, one launch of another kernel applies the epilogues of all products. If C is narrower
 * than the sums, the library stores the sums in the workspace. */
static void an_epilogue_is_a_pass(void **state) {
    static unsigned char terms[2][STORAGE_BYTES];
    static const struct {
        enum mm_dtype dtype, c_dtype;
        bool has_workspace;
    } cases[] = {{MM_FLOAT32, MM_FLOAT32, false}, {MM_FLOAT32, MM_FLOAT16, true},
                 {MM_FLOAT64, MM_FLOAT64, false}, {MM_FLOAT64, MM_FLOAT32, true},
                 {MM_FLOAT16, MM_FLOAT32, false}, {MM_INT8, MM_INT32, false},
                 {MM_BFLOAT16, MM_BFLOAT16, true}};
    for (size_t index = 0; index < 4 * COUNT(cases); index++) {
        const enum mm_dtype dtype = cases[index / 4].dtype, sum = mm_dtype_sum(dtype);
        const bool is_shared = index % 2 != 0;
        struct mm_product product =
            product_of(dtype, cases[index / 4].c_dtype, 12, 4, 8, 0, (struct gaps){0, 0});
        /* three products of 4×4 by one 4×8 matrix */
        const struct mm_stack stack = {.count = 3,
                                       .a_count = 3,
                                       .b_count = 1,
                                       .addend_count = is_shared ? 1 : 3,
                                       .rank = 1,
                                       .dims = {3},
                                       .a_steps = {1},
                                       .addend_steps = {!is_shared}};
        if (index % 4 >= 2) {
            product.stack = &stack;
            product.m = 4;
        }
        product.addend =
            mm_matrix_dense(product.c.dtype, is_shared && product.stack != NULL ? 4 : 12, 8, terms[0]);
        product.bias = mm_matrix_dense(product.c.dtype, 1, 8, terms[1]);
        fill(&product.addend, 3);
        fill(&product.bias, 4);
        product.epilogue =
            (struct mm_epilogue){true, MM_ACTIVATION_RELU, mm_scale_of(sum, -2), mm_scale_of(sum, 3)};
        const size_t bytes = run(&product);
        assert_int_equal(seen.multiplied, 1);
        assert_int_equal(seen.finished, 1);
        if (mm_blas_types[dtype].alignment == 0)
            assert_int_equal(bytes - mm_blas_types[dtype].workspace_bytes,
                             cases[index / 4].has_workspace ? 12 * 8 * mm_dtype_bytes(sum) : 0);
    }
}

RUN_TESTS(operands_are_prepared_for_the_library, suitable_operands_are_not_copied,
          without_depth_a_kernel_stores_c, an_epilogue_is_a_pass)
