/* Runs each variant of a device on a product or transposition with a known result. Also measures the
 * variants' first rates for forecasts. */
#include "gpu/queue/self_test.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The dimensions of the known product are prime, so no dimension is a multiple of a tile's edge. If a variant
 * supports only multiples of a number, the dimensions are rounded up. The three dimensions always differ. */
enum {
    SELF_TEST_M = 37,
    SELF_TEST_N = 67,
    SELF_TEST_K = 101,
    SELF_TEST_MULTIPLE_MAX = 32,
    SELF_TEST_M_MAX = 64,
    SELF_TEST_N_MAX = 96,
    SELF_TEST_K_MAX = 128,
    A_NUMBERS = 9,
    B_NUMBERS = 7,
    TRANSPOSITION_M = 132,
    TRANSPOSITION_N = 200,
};

/* The known product. Its elements are small whole numbers, so the result is exact in every order of
 * summation. The arrays have space for elements of any type. */
struct known_product {
    size_t m;
    size_t n;
    size_t k;
    uint64_t a[SELF_TEST_M_MAX * SELF_TEST_K_MAX];
    uint64_t b[SELF_TEST_K_MAX * SELF_TEST_N_MAX];
    uint64_t c[SELF_TEST_M_MAX * SELF_TEST_N_MAX];
    double a_values[SELF_TEST_M_MAX * SELF_TEST_K_MAX];
    double b_values[SELF_TEST_K_MAX * SELF_TEST_N_MAX];
    double sums[SELF_TEST_M_MAX * SELF_TEST_N_MAX]; /* the expected C, before rounding to its type */
};

/* Fills an operand with small whole numbers. Floating-point operands also get negative numbers. */
static void fill_operand(void *elements, double *values, enum mm_dtype dtype, size_t count, int numbers) {
    const int least = mm_dtype_is_float(dtype) ? -numbers / 2 : 0;
    for (size_t index = 0; index < count; index++) {
        mm_dtype_put(dtype, elements, index, least + (int)(index % (size_t)numbers));
        values[index] = mm_dtype_get(dtype, elements, index);
    }
}

static double sum_at(const struct known_product *known, size_t row, size_t col) {
    double sum = 0.0;
    for (size_t depth = 0; depth < known->k; depth++)
        sum += known->a_values[row * known->k + depth] * known->b_values[depth * known->n + col];
    return sum;
}

static void fill_known(struct known_product *known, enum mm_dtype dtype, struct mm_multiples of) {
    assert(of.m <= SELF_TEST_MULTIPLE_MAX);
    assert(of.n <= SELF_TEST_MULTIPLE_MAX);
    assert(of.k <= SELF_TEST_MULTIPLE_MAX);
    known->m = mm_size_round_up(SELF_TEST_M, of.m);
    known->n = mm_size_round_up(SELF_TEST_N, of.n);
    known->k = mm_size_round_up(SELF_TEST_K, of.k);
    fill_operand(known->a, known->a_values, dtype, known->m * known->k, A_NUMBERS);
    fill_operand(known->b, known->b_values, dtype, known->k * known->n, B_NUMBERS);
    for (size_t row = 0; row < known->m; row++)
        for (size_t col = 0; col < known->n; col++)
            known->sums[row * known->n + col] =
                row < A_NUMBERS && col < B_NUMBERS
                    ? sum_at(known, row, col)
                    : known->sums[row % A_NUMBERS * known->n + col % B_NUMBERS];
}

/* Compares C with the exact sums, rounded to the type of C. */
static enum mm_status check_known(const struct known_product *known, enum mm_dtype dtype,
                                  enum mm_dtype c_dtype, const char *name, struct mm_error *error) {
    for (size_t index = 0; index < known->m * known->n; index++) {
        uint64_t element;
        mm_dtype_put(c_dtype, &element, 0, known->sums[index]);
        const double expected = mm_dtype_get(c_dtype, &element, 0);
        const double got = mm_dtype_get(c_dtype, known->c, index);
        if (got != expected)
            return mm_fail(error, MM_DEVICE_FAILED,
                           "the known product of %s by %s is wrong: %g expected, %g came",
                           mm_dtype_name(dtype), name, expected, got);
    }
    return MM_OK;
}

/* Runs a job whose operands and flags are set, and stores the result at `c`. */
static enum mm_status run_job(struct mm_device *device, struct mm_job *job, void *c, struct mm_error *error) {
    const enum mm_op op = job->variant->op;
    job->work.backend = device->backend;
    (void)mm_product_conform(op, &job->product, NULL);
    job->product.c = mm_product_result(op, &job->product);
    job->product.c.data = c;
    if (mm_device_run(device, job) != MM_OK)
        *error = job->work.error;
    return job->work.error.status;
}

static enum mm_status run_product(struct mm_device *device, const struct mm_variant *variant,
                                  enum mm_dtype dtype, unsigned tile, struct known_product *known,
                                  struct mm_error *error) {
    struct mm_job job = {.variant = variant, .product.tile = tile};
    memset(known->c, 0xff, sizeof known->c); /* so an element that was not written is wrong */
    job.product.a = mm_matrix_dense(dtype, known->m, known->k, known->a);
    job.product.b = mm_matrix_dense(dtype, known->k, known->n, known->b);
    if (run_job(device, &job, known->c, error) != MM_OK)
        return error->status;
    return check_known(known, dtype, job.product.c.dtype, job.outcome.ran->name, error);
}

/* Runs the variant with its usual tile, and then with each tile that a client can choose. Ignores
 * MM_UNSUPPORTED for such a tile, because a device can have too little shared memory for the tile. */
static enum mm_status run_products(struct mm_device *device, const struct mm_variant *variant,
                                   enum mm_dtype dtype, struct known_product *known, struct mm_error *error) {
    fill_known(known, dtype, mm_variant_multiples(variant, dtype));
    enum mm_status status = run_product(device, variant, dtype, 0, known, error);
    for (const unsigned *tile = variant->tiles; tile != NULL && *tile != 0 && status == MM_OK; tile++) {
        status = run_product(device, variant, dtype, *tile, known, error);
        if (status == MM_UNSUPPORTED)
            status = MM_OK;
    }
    return status;
}

/* The known transposition. Every byte depends on its position. The dimensions are no multiples of a tile's
 * edge, and rows of 4-byte elements begin at multiples of 16 bytes, so kernels take all their code paths. */
struct known_transposition {
    uint64_t a[TRANSPOSITION_N * TRANSPOSITION_M];
    uint64_t c[TRANSPOSITION_M * TRANSPOSITION_N];
};

static uint64_t known_element(size_t index) {
    return (index + 1) * UINT64_C(0x9E3779B97F4A7C15);
}

static void fill_transposition(struct known_transposition *known, size_t element_bytes) {
    for (size_t index = 0; index < (size_t)TRANSPOSITION_N * TRANSPOSITION_M; index++) {
        const uint64_t element = known_element(index);
        memcpy((char *)known->a + index * element_bytes, &element, element_bytes);
    }
    memset(known->c, 0, sizeof known->c);
}

static enum mm_status check_transposition(const struct known_transposition *known, size_t element_bytes,
                                          const char *name, struct mm_error *error) {
    const char *c = (const char *)known->c;
    for (size_t row = 0; row < TRANSPOSITION_M; row++) {
        for (size_t col = 0; col < TRANSPOSITION_N; col++) {
            const uint64_t expected = known_element(col * TRANSPOSITION_M + row);
            if (memcmp(c + (row * TRANSPOSITION_N + col) * element_bytes, &expected, element_bytes) != 0)
                return mm_fail(error, MM_DEVICE_FAILED,
                               "the known transposition by %s of elements of %zu bytes is wrong in row %zu, "
                               "column %zu",
                               name, element_bytes, row, col);
        }
    }
    return MM_OK;
}

static enum mm_status run_transposition(struct mm_device *device, const struct mm_variant *variant,
                                        enum mm_dtype dtype, struct known_transposition *known,
                                        struct mm_error *error) {
    struct mm_job job = {.variant = variant, .product.transpose_a = true};
    fill_transposition(known, mm_dtype_bytes(dtype));
    job.product.a = mm_matrix_dense(dtype, TRANSPOSITION_N, TRANSPOSITION_M, known->a);
    if (run_job(device, &job, known->c, error) != MM_OK)
        return error->status;
    return check_transposition(known, mm_dtype_bytes(dtype), job.outcome.ran->name, error);
}

union known {
    struct known_product product;
    struct known_transposition transposition;
};

static enum mm_status run_row(struct mm_device *device, size_t row, union known *known,
                              struct mm_error *error) {
    const struct mm_variant *variant = &device->backend->variants[row];
    const unsigned dtypes = mm_variant_dtypes_on(variant, device);
    enum mm_status status = MM_OK;
    for (enum mm_dtype dtype = 0; dtype < MM_DTYPE_COUNT && status == MM_OK; dtype++) {
        if ((dtypes & MM_DTYPE_BIT(dtype)) == 0)
            continue;
        status = variant->op == MM_MATMUL
                     ? run_products(device, variant, dtype, &known->product, error)
                     : run_transposition(device, variant, dtype, &known->transposition, error);
    }
    return status;
}

enum mm_status mm_self_test_row(struct mm_device *device, size_t row, struct mm_error *error) {
    if (device->backend->variants[row].wrong_on_purpose)
        return MM_OK;
    union known *known = malloc(sizeof *known);
    if (known == NULL)
        return mm_fail(error, MM_INTERNAL, "the system has no memory for the known product");
    const enum mm_status status = run_row(device, row, known, error);
    free(known);
    return status;
}

enum mm_status mm_self_test(struct mm_device *device, struct mm_error *error) {
    enum mm_status status = MM_OK;
    for (size_t row = 0; row < device->backend->variant_count && status == MM_OK; row++)
        status = mm_self_test_row(device, row, error);
    return status;
}

/* To measure a rate, a square product is timed, and its edge is doubled until the product takes a
 * millisecond. Other products have other rates, so forecasts assume half of the measured rate. */
enum { EDGE_MIN = 64, EDGE_MAX = 1024, LONG_NS = 1000000, TIMES_SLOWER = 2, RUNS = 3 };

static struct mm_product square(enum mm_op op, size_t edge, char *memory) {
    const size_t bytes = edge * edge * sizeof(float);
    struct mm_product product = {.a = mm_matrix_dense(MM_FLOAT32, edge, edge, memory),
                                 .c = mm_matrix_dense(MM_FLOAT32, edge, edge, memory + 2 * bytes),
                                 .transpose_a = op == MM_TRANSPOSE};
    product.b = mm_matrix_dense(MM_FLOAT32, edge, edge, memory + bytes);
    (void)mm_product_conform(op, &product, NULL);
    return product;
}

/* The best of several runs counts, because the first run is slow, and a CPU quota can interrupt a run. */
static void assume_rate(struct mm_device *device, const struct mm_variant *variant, char *memory) {
    uint64_t best_ns = 0;
    for (size_t edge = EDGE_MIN; edge <= EDGE_MAX && best_ns < LONG_NS; edge *= 2) {
        const struct mm_product product = square(variant->op, edge, memory);
        struct mm_plan plan;
        if (mm_plan_make(device, variant, &product, &plan, NULL) != MM_OK)
            return;
        for (int run = 0; run < RUNS; run++) {
            uint64_t kernel_ns = 0;
            if (device->backend->measure(device, &plan, &product, &kernel_ns, NULL) != MM_OK)
                return;
            if (run == 0 || kernel_ns < best_ns)
                best_ns = kernel_ns;
        }
        mm_forecast_assume(device, variant, &product, TIMES_SLOWER * (double)best_ns);
    }
}

enum mm_status mm_self_test_rates(struct mm_device *device, struct mm_error *error) {
    const struct mm_backend *backend = device->backend;
    const size_t count = (size_t)3 * EDGE_MAX * EDGE_MAX;
    void *memory = NULL;
    if (backend->acquire(device, count * sizeof(float), &memory, NULL) != MM_OK)
        return MM_OK;
    if (backend->fill(device, memory, MM_FLOAT32, count, 0, NULL) == MM_OK)
        for (size_t row = 0; row < backend->variant_count && !mm_device_has_failed(device); row++)
            if (!mm_variant_is_auto(&backend->variants[row]) &&
                (mm_variant_dtypes_on(&backend->variants[row], device) & MM_DTYPE_BIT(MM_FLOAT32)) != 0)
                assume_rate(device, &backend->variants[row], memory);
    backend->release(device, memory);
    return mm_device_has_failed(device)
               ? mm_fail(error, MM_DEVICE_FAILED, "the device failed while its rates were measured")
               : MM_OK;
}
