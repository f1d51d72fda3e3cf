/* The predicted memory traffic of kernels (gpu/cuda/traffic/), against numbers derived by hand, and against
 * all warps of all blocks of small products, walked one by one. The counters of a GPU are for
 * bench/counters.sh. */
#include "gpu/cuda/variants.h"
#include "gpu/plan/plan.h"
#include "tests/unit/unit.h"

enum { A = 1, B = 2 }; /* operands that are stored transposed */

static struct mm_product make_product(size_t m, size_t k, size_t n, unsigned transposed,
                                      enum mm_dtype dtype) {
    const bool a = (transposed & A) != 0, b = (transposed & B) != 0;
    return (struct mm_product){.m = m,
                               .n = n,
                               .k = k,
                               .a = mm_matrix_dense(dtype, a ? k : m, a ? m : k, NULL),
                               .b = mm_matrix_dense(dtype, b ? n : k, b ? k : n, NULL),
                               .c = mm_matrix_dense(mm_dtype_result(dtype), m, n, NULL),
                               .transpose_a = a,
                               .transpose_b = b};
}

static struct mm_product make_transposition(size_t m, size_t n, enum mm_dtype dtype) {
    return (struct mm_product){.m = m,
                               .n = n,
                               .a = mm_matrix_dense(dtype, n, m, NULL),
                               .c = mm_matrix_dense(dtype, m, n, NULL),
                               .transpose_a = true};
}

static struct mm_traffic predict(mm_variant_traffic *of, const struct mm_product *product,
                                 struct mm_layout layout, unsigned splits) {
    const struct mm_plan plan = {.layout = layout, .splits = splits};
    struct mm_traffic traffic;
    assert_true(of(product, &plan, &traffic));
    return traffic;
}

static void expect(const struct mm_traffic *traffic, const char *name,
                   const uint64_t figures[MM_TRAFFIC_COUNT]) {
    for (enum mm_traffic_figure figure = 0; figure < MM_TRAFFIC_COUNT; figure++)
        if (traffic->figures[figure] != figures[figure])
            fail_msg("%s: %s is %llu, not %llu", name, mm_traffic_name(figure),
                     (unsigned long long)traffic->figures[figure], (unsigned long long)figures[figure]);
}

#define TILE(edge)                                                                                           \
    { .block_rows = edge, .block_cols = edge, .threads_x = edge, .threads_y = edge }
#define OF(function) mm_cuda_traffic_##function
#define BLOCK(rows, cols, threads)                                                                           \
    { .block_rows = rows, .block_cols = cols, .threads_x = threads, .threads_y = 1 }
#define MI (UINT64_C(1) << 20) /* 1024²; 1024³/32 is 32·MI */

/* 1024³. Figures: elements, sectors loaded and stored; passes of loads and stores, and for conflicts. The
 * docs have what a GPU counted. Per k and 32 elements of C, `tiled` reads a word of B, and of A a quarter of
 * a read of two passes. register_tiled reads 16 words for 64 elements of each of 32 threads. */
static void products_of_1024(void **state) {
    static const struct {
        const char *name;
        mm_variant_traffic *of;
        struct mm_layout layout;
        unsigned transposed;
        uint64_t figures[MM_TRAFFIC_COUNT];
    } rows[] = {
        {"naive", OF(naive), BLOCK(8, 32, 32), 0, {2048 * MI, 160 * MI, MI / 8, 0, 0, 0}},
        {"naive, B", OF(naive), BLOCK(8, 32, 32), B, {2048 * MI, 33 * 32 * MI, MI / 8, 0, 0, 0}},
        {"uncoalesced", OF(naive_uncoalesced), BLOCK(32, 8, 32), 0, {2048 * MI, 33 * 32 * MI, MI, 0, 0, 0}},
        {"uncoalesced, A", OF(naive_uncoalesced), BLOCK(32, 8, 32), A, {2048 * MI, 160 * MI, MI, 0, 0, 0}},
        {"tiled_8", OF(tiled), TILE(8), 0, {256 * MI, 32 * MI, MI / 8, 48 * MI, 8 * MI, 0}},
        {"tiled_16", OF(tiled), TILE(16), 0, {128 * MI, 16 * MI, MI / 8, 48 * MI, 4 * MI, 0}},
        {"tiled_32", OF(tiled), TILE(32), 0, {64 * MI, 8 * MI, MI / 8, 48 * MI, 2 * MI, 0}},
        {"tiled_32, B", OF(tiled), TILE(32), B, {64 * MI, 8 * MI, MI / 8, 48 * MI, 33 * MI, 31 * MI}},
        {"tiled_16, A",
         OF(tiled),
         TILE(16),
         A,
         {128 * MI, 16 * MI, MI / 8, 48 * MI, 2 * MI + 8 * 2 * MI, 7 * 2 * MI}},
        {"padded, B", OF(tiled_padded), TILE(32), B, {64 * MI, 8 * MI, MI / 8, 48 * MI, 2 * MI, 0}},
        {"conflicted, B",
         OF(tiled_conflicted),
         TILE(32),
         B,
         {64 * MI, 8 * MI, MI / 8, (32 * 32 + 16) * MI, 2 * MI, 31 * 32 * MI}},
        {"conflicted, A", OF(tiled_conflicted), TILE(32), A, {64 * MI, 8 * MI, MI / 8, 64 * MI, 2 * MI, 0}},
        {"dynamic/16", OF(tiled_dynamic), TILE(16), 0, {128 * MI, 16 * MI, MI / 8, 64 * MI, 4 * MI, 0}},
        {"dynamic/4", OF(tiled_dynamic), TILE(4), 0, {512 * MI, 128 * MI, MI / 4, 128 * MI, 32 * MI, 0}},
        {"dynamic/64",
         OF(tiled_dynamic),
         {.block_rows = 64, .block_cols = 64, .threads_x = 32, .threads_y = 32},
         0,
         {32 * MI, 4 * MI, MI / 8, 32 * MI, MI, 0}},
        {"register_tiled",
         OF(register_tiled),
         BLOCK(128, 128, 16),
         0,
         {16 * MI, 2 * MI, MI / 8, 8 * MI, MI / 2, 0}},
        {"vectorized",
         OF(vectorized),
         BLOCK(128, 128, 16),
         0,
         {16 * MI, 2 * MI, MI / 8, 6 * MI, MI / 4 + MI / 4, 0}},
        {"warp_tiled",
         OF(warp_tiled),
         BLOCK(128, 128, 256),
         0,
         {16 * MI, 2 * MI, MI / 8, 4 * MI + 4096, (MI / 4 + MI / 2) / 64 * 65, MI / 4 / 64 * 65}},
    };
    for (size_t row = 0; row < COUNT(rows); row++) {
        const struct mm_product product = make_product(1024, 1024, 1024, rows[row].transposed, MM_FLOAT32);
        const struct mm_traffic traffic = predict(rows[row].of, &product, rows[row].layout, 1);
        expect(&traffic, rows[row].name, rows[row].figures);
    }
}

/* 4096², of elements of 4 bytes, 1 byte and 8. Warps: 4096²/32 = MI/2. In the tile of `vectorized` for bytes
 * a warp has two times 16 words, 17 words apart or so, and the last one lies in the bank of the first. */
static void transpositions_of_4096(void **state) {
    const uint64_t all = 16 * MI;
    static const struct {
        const char *name;
        mm_variant_traffic *of;
        enum mm_dtype dtype;
        uint64_t figures[MM_TRAFFIC_COUNT - 1];
    } rows[] = {
        {"naive", OF(transpose_naive), MM_FLOAT32, {2 * MI, 16 * MI, 0, 0, 0}},
        {"naive, bytes", OF(transpose_naive), MM_UINT8, {MI / 2, 16 * MI, 0, 0, 0}},
        {"shared", OF(transpose_shared), MM_FLOAT32, {2 * MI, 2 * MI, 16 * MI, MI / 2, 31 * MI / 2}},
        {"shared, bytes", OF(transpose_shared), MM_UINT8, {MI / 2, MI / 2, 8 * MI / 2, MI / 2, 7 * MI / 2}},
        {"padded", OF(transpose_padded), MM_FLOAT32, {2 * MI, 2 * MI, MI / 2, MI / 2, 0}},
        {"padded, float64", OF(transpose_padded), MM_FLOAT64, {4 * MI, 4 * MI, MI, MI, 0}},
        {"vectorized", OF(transpose_vectorized), MM_FLOAT32, {2 * MI, 2 * MI, MI / 2, MI / 2, 0}},
        {"vectorized, float64", OF(transpose_vectorized), MM_FLOAT64, {4 * MI, 4 * MI, MI, MI, 0}},
        {"vectorized, bytes", OF(transpose_vectorized), MM_UINT8, {MI / 2, MI / 2, MI / 4, MI / 4, MI / 4}},
    };
    for (size_t row = 0; row < COUNT(rows); row++) {
        const struct mm_product product = make_transposition(4096, 4096, rows[row].dtype);
        const struct mm_traffic traffic = predict(rows[row].of, &product, (struct mm_layout){0}, 1);
        uint64_t figures[MM_TRAFFIC_COUNT] = {all};
        memcpy(figures + 1, rows[row].figures, sizeof rows[row].figures);
        expect(&traffic, rows[row].name, figures);
    }
}

/* Blocks at the edges of C, and tiles at those of k. Elements of the narrow transposition that are shifted
 * into place are not described. */
static void edges(void **state) {
    const struct mm_product product = make_product(228, 240, 112, 0, MM_FLOAT32);
    const struct mm_product odd = make_transposition(100, 50, MM_FLOAT32),
                            bytes = make_transposition(100, 50, MM_INT8);
    const struct mm_plan plan = {.splits = 1};
    struct mm_traffic traffic = predict(mm_cuda_traffic_tiled, &product, (struct mm_layout)TILE(32), 1);
    /* 8×4 blocks, 8 steps of k. A has 30 sectors a row, and B and C 14. */
    const uint64_t blocks = 8 * 4 * 8, warps = 32;
    expect(&traffic, "tiled_32",
           (uint64_t[]){228 * 240 * 4 + 240 * 112 * 8, 228 * 30 * 4 + 240 * 14 * 8, 228 * 14,
                        blocks * warps * (32 + 8 * 2), blocks * warps * 2, 0});
    /* Rows of A begin anywhere in a sector: 100 words in 4 warps, 32 words in 5 sectors if not aligned. Those
     * of C have 50 words. */
    traffic = predict(mm_cuda_traffic_transpose_shared, &odd, (struct mm_layout){0}, 1);
    assert_int_equal(traffic.figures[MM_SHARED_LOAD_PASSES], 100 * (32 + 18));
    assert_int_equal(traffic.figures[MM_BANK_CONFLICT_PASSES], 100 * (31 + 17));
    assert_int_equal(traffic.figures[MM_GLOBAL_LOAD_SECTORS], 25 * (3 * 4 + 1) + 25 * (3 * 5 + 1));
    assert_false(mm_cuda_traffic_transpose_vectorized(&bytes, &plan, &traffic));
}

/* Two splits of k=64 in blocks of 32×32, of a C of 64×64: 8 blocks of a step of 32 k, two warps each. A
 * thread reads 4 k of 4 rows by 4 reads, and a k of 4 columns by one. Partial sums are stored, loaded and
 * added up. */
static void splits_of_simt(void **state) {
    const struct mm_product product = make_product(64, 64, 64, 0, MM_FLOAT32);
    const struct mm_traffic traffic =
        predict(mm_cuda_traffic_simt, &product, (struct mm_layout)BLOCK(32, 32, 64), 2);
    const uint64_t c = 64 * 64, reads = 8 * 2 * (32 + 4 + 32 + 1);
    expect(
        &traffic, "simt",
        (uint64_t[]){2 * 2 * c + 2 * c, (4 * c + 2 * c) / 8, (2 * c + c) / 8, reads * 2, 8 * (8 + 8) * 4, 0});
    const struct mm_product vector = make_product(4096, 4096, 1, 0, MM_FLOAT32);
    assert_int_equal(
        predict(mm_cuda_traffic_simt, &vector, (struct mm_layout){0}, 1).figures[MM_GLOBAL_LOAD_SECTORS],
        2 * MI + 512 * 512);
}

/* --- every warp of every block ----------------------------------------------------------------------- */

/* A warp's access: the sectors of its lanes' elements that the matrix has, each once. */
static uint64_t sectors_of(const struct mm_matrix *x, const size_t rows[32], const size_t cols[32]) {
    size_t seen[32] = {0}, count = 0;
    for (unsigned lane = 0; lane < 32; lane++) {
        const size_t sector = (rows[lane] * x->ld + cols[lane]) * mm_dtype_bytes(x->dtype) / 32;
        size_t index = 0;
        while (index < count && seen[index] != sector)
            index++;
        if (index == count && rows[lane] < x->rows && cols[lane] < x->cols)
            seen[count++] = sector;
    }
    return count;
}

/* The sectors of element (row, col) of op(X) for each thread of a block of side×side. */
static uint64_t sectors_of_block(const struct mm_matrix *x, bool transposed, size_t row, size_t col,
                                 unsigned side) {
    uint64_t sectors = 0;
    for (unsigned first = 0; first < side * side; first += 32) {
        size_t rows[32], cols[32];
        for (unsigned lane = 0; lane < 32; lane++) {
            const unsigned thread = first + lane;
            rows[lane] = thread < side * side ? (transposed ? col : row) + thread / side : SIZE_MAX;
            cols[lane] = (transposed ? row : col) + thread % side;
        }
        sectors += sectors_of(x, rows, cols);
    }
    return sectors;
}

static void walk_tiled(const struct mm_product *product, unsigned side, uint64_t *loaded, uint64_t *stored) {
    *loaded = *stored = 0;
    for (size_t row = 0; row < product->m; row += side)
        for (size_t col = 0; col < product->n; col += side) {
            for (size_t k = 0; k < product->k; k += side)
                *loaded += sectors_of_block(&product->a, product->transpose_a, row, k, side) +
                           sectors_of_block(&product->b, product->transpose_b, k, col, side);
            *stored += sectors_of_block(&product->c, false, row, col, side);
        }
}

/* A warp has 32 columns of a row. Those past C take no part. */
static void walk_naive(const struct mm_product *product, uint64_t *loaded, uint64_t *stored) {
    *loaded = *stored = 0;
    for (size_t row = 0; row < product->m; row++)
        for (size_t col = 0; col < product->n; col += 32)
            for (size_t k = 0; k <= product->k; k++) {
                size_t rows[32], cols[32];
                for (unsigned lane = 0; lane < 32; lane++) {
                    rows[lane] = k == product->k ? row : product->transpose_b ? col + lane : k;
                    cols[lane] = k < product->k && product->transpose_b ? k : col + lane;
                }
                if (k == product->k)
                    *stored += sectors_of(&product->c, rows, cols);
                else
                    *loaded += 1 + sectors_of(&product->b, rows, cols);
            }
}

static void all_warps(void **state) {
    static const size_t shapes[][3] = {{1, 1, 1},   {17, 3, 5},   {33, 35, 37},
                                       {70, 9, 41}, {5, 66, 130}, {64, 40, 36}};
    static const enum mm_dtype dtypes[] = {MM_FLOAT32, MM_UINT8, MM_FLOAT64};
    for (size_t which = 0; which < COUNT(shapes) * COUNT(dtypes) * 4; which++) {
        const size_t *shape = shapes[which / 4 / COUNT(dtypes)];
        const struct mm_product product =
            make_product(shape[0], shape[1], shape[2], which % 4, dtypes[which / 4 % COUNT(dtypes)]);
        uint64_t loaded, stored;
        for (unsigned side = 4; side <= 32; side *= 2) {
            const struct mm_traffic tiled =
                predict(mm_cuda_traffic_tiled, &product, (struct mm_layout)TILE(side), 1);
            walk_tiled(&product, side, &loaded, &stored);
            assert_int_equal(tiled.figures[MM_GLOBAL_LOAD_SECTORS], loaded);
            assert_int_equal(tiled.figures[MM_GLOBAL_STORE_SECTORS], stored);
        }
        const struct mm_traffic naive = predict(mm_cuda_traffic_naive, &product, (struct mm_layout){0}, 1);
        walk_naive(&product, &loaded, &stored);
        assert_int_equal(naive.figures[MM_GLOBAL_LOAD_SECTORS], loaded);
        assert_int_equal(naive.figures[MM_GLOBAL_STORE_SECTORS], stored);
    }
}

RUN_TESTS(products_of_1024, transpositions_of_4096, edges, splits_of_simt, all_warps)
