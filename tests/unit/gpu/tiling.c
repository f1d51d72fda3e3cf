/* Tests in which order tiles are computed, how large they are, and how long they take by the forecast. */
#include "gpu/device/backend.h"
#include "gpu/plan/tiling.h"
#include "tests/unit/unit.h"

/* Bytes of workspace for each element of the operands. */
static size_t workspace;

static enum mm_status plan_made_up(const struct mm_product *product, struct mm_plan *plan,
                                   struct mm_error *error) {
    plan->workspace_bytes = workspace * (product->m + product->n) * product->k;
    plan->layout.block_rows = plan->layout.block_cols = 1;
    return MM_OK;
}

static const struct mm_variant variant = {.name = "made up", .plan = {MM_EVERY_DTYPE(plan_made_up)}};
static const struct mm_backend backend = {
    .name = "made up", .variants = &variant, .variant_count = 1, .plan = plan_made_up};
static struct mm_device device;

/* A device that copies 55 GB/s, and computes `rate` operations a second. */
static void set_device(double rate) {
    const struct mm_product square = {.m = 1000, .n = 1000, .k = 1000};
    device = (struct mm_device){.backend = &backend, .forecast.copy_ns = 1.0 / 55.0};
    mm_forecast_assume(&device, &variant, &square, mm_product_flops(&square) / rate * 1e9);
}

static struct mm_product product_of(enum mm_dtype dtype, size_t m, size_t k, size_t n) {
    struct mm_product product = {.a = mm_matrix_dense(dtype, m, k, NULL),
                                 .b = mm_matrix_dense(dtype, k, n, NULL)};
    assert_int_equal(mm_product_conform(MM_MATMUL, &product, NULL), MM_OK);
    product.c = mm_product_result(MM_MATMUL, &product);
    return product;
}

/* All operands are in host memory. */
enum { ALL = 1 << MM_OPERAND_A | 1 << MM_OPERAND_B | 1 << MM_OPERAND_ADDEND | 1 << MM_OPERAND_BIAS };

static bool make(const struct mm_product *product, size_t bytes, struct mm_tiling *tiling,
                 struct mm_plan *plan) {
    assert_int_equal(mm_plan_make(&device, &variant, product, plan, NULL), MM_OK);
    *tiling = (struct mm_tiling){.uploads = ALL, .downloads = true};
    return mm_tiling_make(plan, product, bytes, tiling);
}

/* Counts the uploads of panels to slots. Asserts that each tile is computed once, and that the two panels of
 * a tile are in slots that exist. */
static void count_uploads(const struct mm_tiling *tiling, size_t *of_a, size_t *of_b) {
    enum { PANELS_MAX = 16 };
    bool computed[PANELS_MAX][PANELS_MAX] = {{false}};
    size_t a_has[MM_TILING_SLOTS_MAX], b_has[MM_TILING_SLOTS_MAX];
    memset(a_has, 0xff, sizeof a_has);
    memset(b_has, 0xff, sizeof b_has);
    *of_a = *of_b = 0;
    for (size_t index = 0; index < mm_tiling_count(tiling); index++) {
        const struct mm_tiling_step tile = mm_tiling_tile(tiling, index);
        assert_true(tile.a < tiling->a_panels && tile.b < tiling->b_panels);
        assert_true(tile.a_slot < tiling->a_slots && tile.b_slot < tiling->b_slots);
        assert_false(computed[tile.a][tile.b]);
        computed[tile.a][tile.b] = true;
        *of_a += a_has[tile.a_slot] != tile.a;
        *of_b += b_has[tile.b_slot] != tile.b;
        a_has[tile.a_slot] = tile.a;
        b_has[tile.b_slot] = tile.b;
    }
}

static void each_panel_of_b_is_uploaded_once(void **state) {
    for (struct mm_tiling tiling = {.a_panels = 1}; tiling.a_panels <= 9; tiling.a_panels++)
        for (tiling.b_panels = 1; tiling.b_panels <= 9; tiling.b_panels++)
            for (tiling.a_slots = 1; tiling.a_slots <= tiling.a_panels && tiling.a_slots <= 8;
                 tiling.a_slots++)
                for (tiling.b_slots = 1; tiling.b_slots <= tiling.b_panels && tiling.b_slots <= 8;
                     tiling.b_slots++) {
                    const size_t groups = mm_size_divide_up(tiling.b_panels, tiling.b_slots);
                    size_t of_a, of_b;
                    count_uploads(&tiling, &of_a, &of_b);
                    assert_int_equal(of_b, tiling.b_panels);
                    assert_int_equal(of_a,
                                     tiling.a_panels + (groups - 1) * (tiling.a_panels - tiling.a_slots));
                }
}

/* Three panels of A and two of B are 6 uploads, because a panel of A stays for the second group. C has 6
 * tiles. Panels of B and tiles of C are rows of wider matrices, so they take longer. */
static void forecast_overlaps_copies_and_kernels(void **state) {
    enum { EDGE = 1000 };
    const struct mm_product product = product_of(MM_FLOAT32, 3 * EDGE, EDGE, 2 * EDGE);
    const struct mm_tiling tiling = {.rows = EDGE,
                                     .cols = EDGE,
                                     .a_panels = 3,
                                     .b_panels = 2,
                                     .a_slots = 2,
                                     .b_slots = 1,
                                     .uploads = ALL,
                                     .downloads = true};
    const double a_ns = 4e6 / 55.0, b_ns = (4e6 + EDGE * 6144.0) / 55.0, c_ns = b_ns, launch_ns = 20000.0;
    for (int is_slow = 0; is_slow < 2; is_slow++) {
        const double kernel_ns = is_slow ? 8 * a_ns : a_ns / 8;
        struct mm_plan plan;
        set_device(2e9 / kernel_ns * 1e9);
        assert_int_equal(mm_plan_make(&device, &variant, &product, &plan, NULL), MM_OK);
        const struct mm_tiling_times forecast = mm_tiling_forecast(&tiling, &plan, &product);
        assert_float_equal(forecast.first_ns, a_ns + b_ns, 1.0);
        assert_float_equal(forecast.kernel_ns, 6 * kernel_ns, 1.0);
        assert_float_equal(forecast.upload_ns, 4 * a_ns + 2 * b_ns, 1.0);
        if (is_slow) { /* only the first panels and the second panel of B delay kernels */
            assert_float_equal(forecast.ns, a_ns + 2 * b_ns + 6 * (kernel_ns + launch_ns) + c_ns, 1.0);
            assert_float_equal(forecast.last_ns, c_ns, 1.0);
        } else { /* downloads delay kernels */
            assert_float_equal(forecast.ns, a_ns + b_ns + kernel_ns + launch_ns + 6 * c_ns, 1.0);
        }
    }
}

/* There are two slots for C, so a kernel waits until the tile before the last one was downloaded. */
static void kernels_wait_for_downloads(void **state) {
    const struct mm_product product = product_of(MM_FLOAT32, 6000, 1, 1000);
    const struct mm_tiling tiling = {.rows = 1000,
                                     .cols = 1000,
                                     .a_panels = 6,
                                     .b_panels = 1,
                                     .a_slots = 6,
                                     .b_slots = 1,
                                     .uploads = ALL,
                                     .downloads = true};
    struct mm_plan plan;
    set_device(2e6 / 1e-6); /* a tile takes 1 µs */
    assert_int_equal(mm_plan_make(&device, &variant, &product, &plan, NULL), MM_OK);
    const struct mm_tiling_times forecast = mm_tiling_forecast(&tiling, &plan, &product);
    assert_float_equal(forecast.last_ns, 2 * 4e6 / 55.0 - 21000.0, 1.0);
}

/* The products and the memory of the requirement: a quarter of what the whole product needs. */
static void quarter_of_the_memory_costs_a_tenth(void **state) {
    static const struct {
        enum mm_dtype dtype;
        size_t edge;
        double rate;
        size_t workspace;
    } cases[] = {
        {MM_FLOAT32, 24576, 201e12, 4}, {MM_BFLOAT16, 32768, 700e12, 0}, {MM_FLOAT64, 16384, 120e12, 0}};
    for (size_t index = 0; index < COUNT(cases); index++) {
        const size_t edge = cases[index].edge;
        const struct mm_product product = product_of(cases[index].dtype, edge, edge, edge);
        struct mm_tiling tiling;
        struct mm_plan plan;
        workspace = cases[index].workspace;
        set_device(cases[index].rate);
        const size_t bytes = mm_product_bytes(&product) + 2 * edge * edge * workspace;
        assert_true(make(&product, bytes / 4, &tiling, &plan));
        assert_in_range(mm_tiling_bytes(&tiling), bytes / 8, bytes / 4);
        const struct mm_tiling_times forecast = mm_tiling_forecast(&tiling, &plan, &product);
        const double longer_ns =
            forecast.kernel_ns > forecast.upload_ns ? forecast.kernel_ns : forecast.upload_ns;
        const double part = (longer_ns + forecast.first_ns + forecast.last_ns) / forecast.ns;
        assert_true(part >= 0.9);
    }
    workspace = 0;
}

static size_t rounded(size_t elements) {
    return mm_size_round_up(elements * sizeof(float), 256);
}

/* Returns the bytes of all slots and the workspace. */
static size_t bytes_of(const struct mm_tiling *tiling, const struct mm_product *product) {
    const size_t m = mm_size_min(tiling->rows, product->m), n = mm_size_min(tiling->cols, product->n);
    return tiling->a_slots * rounded(m * product->k) + tiling->b_slots * rounded(product->k * n) +
           2 * rounded(m * n) + workspace * (m + n) * product->k;
}

/* A few shapes, and less and less memory. The tiles fit, and tiles of 128 by 128 are tried before giving up.
 */
static void tiles_fit_in_little_memory(void **state) {
    static const size_t shapes[][3] = {
        {1, 1, 1}, {5000, 100, 3}, {3, 100, 5000}, {700, 33, 900}, {129, 4000, 127}};
    set_device(1e12);
    for (workspace = 0; workspace < 2; workspace++)
        for (size_t index = 0; index < COUNT(shapes); index++) {
            const struct mm_product product =
                product_of(MM_FLOAT32, shapes[index][0], shapes[index][1], shapes[index][2]);
            struct mm_tiling tiling;
            struct mm_plan plan;
            size_t bytes = 4 * mm_product_bytes(&product) + 16384;
            for (; make(&product, bytes, &tiling, &plan); bytes = bytes * 9 / 10) {
                const struct mm_tiling_step last = {.a = tiling.a_panels - 1, .b = tiling.b_panels - 1};
                const struct mm_product part = mm_tiling_part(&tiling, &product, &last);
                assert_true(mm_tiling_bytes(&tiling) <= bytes);
                assert_int_equal(mm_tiling_bytes(&tiling), bytes_of(&tiling, &product));
                assert_int_equal(tiling.rows * last.a + part.m, product.m);
                assert_int_equal(tiling.cols * last.b + part.n, product.n);
                assert_int_equal(part.k, product.k);
            }
            const size_t m = mm_size_min(product.m, 128), n = mm_size_min(product.n, 128);
            const size_t least = (2 * m + n) * product.k * sizeof(float) + 2 * m * n * sizeof(float) +
                                 workspace * (m + n) * product.k;
            assert_true(bytes < least + 5 * 256); /* each slot is rounded up */
        }
    workspace = 0;
}

/* Without rates, only copies count. If B fits beside some panels of A, each operand is uploaded once. */
static void unknown_rates_give_few_uploads(void **state) {
    const struct mm_product product = product_of(MM_FLOAT32, 2000, 20000, 2000);
    const size_t bytes = mm_matrix_bytes(&product.a);
    struct mm_tiling tiling;
    struct mm_plan plan;
    device = (struct mm_device){.backend = &backend};
    assert_true(make(&product, bytes + bytes / 4, &tiling, &plan));
    assert_float_equal(mm_tiling_forecast(&tiling, &plan, &product).upload_ns, 2.0 * (double)bytes * 0.02,
                       1.0);
}

/* An addend needs memory and uploads. */
static void addend_belongs_to_the_tile(void **state) {
    struct mm_product product = product_of(MM_FLOAT32, 4096, 256, 4096);
    struct mm_tiling without, with;
    struct mm_plan plan;
    set_device(1e12);
    assert_true(make(&product, (size_t)32 << 20, &without, &plan));
    const double without_ns = mm_tiling_forecast(&without, &plan, &product).upload_ns;
    product.addend = product.c;
    assert_true(make(&product, (size_t)32 << 20, &with, &plan));
    const double with_ns = mm_tiling_forecast(&with, &plan, &product).upload_ns;
    assert_int_equal(with.c_bytes, 2 * with.rows * with.cols * sizeof(float));
    assert_true(with_ns >= without_ns + (double)mm_matrix_bytes(&product.addend) / 55.0);
}

/* The operands are vectors. */
static void huge_c_gets_no_tiles(void **state) {
    const struct mm_product product = product_of(MM_FLOAT32, 1 << 27, 1, 1 << 27);
    struct mm_tiling tiling;
    struct mm_plan plan;
    set_device(1e15);
    assert_false(make(&product, (size_t)16 << 30, &tiling, &plan));
}

/* Operands that the device generates or has take no time, and other operands do. */
static void only_host_memory_is_uploaded(void **state) {
    const struct mm_product product = product_of(MM_FLOAT32, 4096, 4096, 4096);
    for (unsigned uploads = 0; uploads < 4; uploads++) {
        const double least_ns =
            (uploads & 1) + (uploads >> 1) == 0 ? 0.0 : (double)mm_matrix_bytes(&product.a) / 55.0;
        struct mm_tiling tiling;
        struct mm_plan plan;
        set_device(1e15);
        assert_int_equal(mm_plan_make(&device, &variant, &product, &plan, NULL), MM_OK);
        tiling = (struct mm_tiling){.uploads = uploads, .in_place = 3 & ~uploads};
        assert_true(mm_tiling_make(&plan, &product, (size_t)64 << 20, &tiling));
        assert_int_equal(tiling.a_bytes > 0, uploads & 1);
        assert_int_equal(tiling.b_bytes > 0, uploads >> 1);
        const struct mm_tiling_times forecast = mm_tiling_forecast(&tiling, &plan, &product);
        assert_int_equal(forecast.upload_ns > 0.0, uploads != 0);
        assert_true(forecast.upload_ns >= least_ns);
        assert_int_equal(forecast.first_ns > 0.0, uploads != 0);
        assert_true(forecast.last_ns == 0.0); /* C is not wanted */
    }
}

RUN_TESTS(each_panel_of_b_is_uploaded_once, forecast_overlaps_copies_and_kernels, kernels_wait_for_downloads,
          quarter_of_the_memory_costs_a_tenth, tiles_fit_in_little_memory, unknown_rates_give_few_uploads,
          addend_belongs_to_the_tile, only_host_memory_is_uploaded, huge_c_gets_no_tiles)
