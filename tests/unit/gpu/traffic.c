/* Compares the models of the kernels' memory traffic with numbers derived by hand, and with a count over all
 * warps of small products. bench/counters.sh compares the models with a GPU. */
#include "gpu/cuda/variants.h"
#include "gpu/lab/traffic/kernels.h"
#include "tests/unit/unit.h"

#include <stdio.h>

enum { A = 1, B = 2 }; /* bits of the operands that are stored transposed */

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

static struct mm_traffic predict(mm_variant_traffic *of, const struct mm_product *product, unsigned tile) {
    struct mm_traffic traffic;
    assert_true(of(product, tile, &traffic));
    return traffic;
}

static void expect(const struct mm_traffic *traffic, const char *name,
                   const uint64_t figures[MM_TRAFFIC_COUNT]) {
    for (enum mm_traffic_figure figure = 0; figure < MM_TRAFFIC_COUNT; figure++)
        if (traffic->figures[figure] != figures[figure])
            fail_msg("%s: %s is %llu, not %llu", name, mm_traffic_name(figure),
                     (unsigned long long)traffic->figures[figure], (unsigned long long)figures[figure]);
}

#define MI (UINT64_C(1) << 20) /* 1024², so 1024³/32 is 32·MI */

/* The models ignore spilled registers in local memory, and passes in which asynchronous copies arrive. */
static bool is_left_out(const char *name, enum mm_traffic_figure figure) {
    if (strcmp(name, "spilling") == 0)
        return figure == MM_GLOBAL_LOAD_SECTORS || figure == MM_GLOBAL_STORE_SECTORS;
    return strcmp(name, "warp_tiled") == 0 &&
           (figure == MM_SHARED_STORE_PASSES || figure == MM_BANK_CONFLICT_PASSES);
}

static const struct mm_variant *find_variant(enum mm_op op, const char *name) {
    for (size_t row = 0; row < MM_CUDA_VARIANT_COUNT; row++)
        if (mm_cuda_variants[row].op == op && strcmp(mm_cuda_variants[row].name, name) == 0)
            return &mm_cuda_variants[row];
    return NULL;
}

/* Reads a row of a counter table: the name, then for each figure the predicted and the counted number and
 * their difference. Returns whether the variant has a model. */
static bool expect_counters(enum mm_op op, const struct mm_product *product, const char *row) {
    char name[32];
    unsigned tile = 0;
    int length = 0;
    assert_true(sscanf(row, "| `%31[a-z0-9_]%n/%u%n", name, &length, &tile, &length) > 0);
    const struct mm_variant *variant = find_variant(op, name);
    assert_non_null(variant);
    if (variant->traffic == NULL)
        return false;
    const struct mm_traffic traffic = predict(variant->traffic, product, tile > 0 ? tile : variant->tile);
    row = strchr(row + length, '|');
    for (enum mm_traffic_figure figure = MM_GLOBAL_LOAD_SECTORS; figure < MM_TRAFFIC_COUNT; figure++) {
        unsigned long long counted;
        assert_int_equal(sscanf(row, "|%*[^|]| %llu |%*[^|]%n", &counted, &length), 1);
        row += length;
        if (traffic.figures[figure] != counted && !is_left_out(name, figure))
            fail_msg("%s: predicted %s are %llu, but %llu were counted", name, mm_traffic_name(figure),
                     (unsigned long long)traffic.figures[figure], counted);
    }
    return true;
}

static void counters(void **state) {
    const struct {
        const char *heading;
        enum mm_op op;
        struct mm_product product;
        unsigned rows;
    } tables[] = {
        {"## 1024³\n", MM_MATMUL, make_product(1024, 1024, 1024, 0, MM_FLOAT32), 23},
        {"## 1024³, B stored transposed\n", MM_MATMUL, make_product(1024, 1024, 1024, B, MM_FLOAT32), 4},
        {"## 228×240 · 240×112\n", MM_MATMUL, make_product(228, 240, 112, 0, MM_FLOAT32), 21},
        {"## 4096×4096 transposed, float32\n", MM_TRANSPOSE, make_transposition(4096, 4096, MM_FLOAT32), 4},
    };
    char line[1024];
    for (size_t table = 0; table < COUNT(tables); table++) {
        FILE *page = fopen(COUNTERS, "r");
        unsigned rows = 0;
        assert_non_null(page);
        while (fgets(line, sizeof line, page) != NULL && strcmp(line, tables[table].heading) != 0)
            continue;
        while (fgets(line, sizeof line, page) != NULL && line[0] != '#')
            rows += strncmp(line, "| `", 3) == 0 &&
                    expect_counters(tables[table].op, &tables[table].product, line);
        fclose(page);
        assert_int_equal(rows, tables[table].rows);
    }
}

/* A product of 1024³. The figures are elements, sectors loaded and stored, passes of loads and stores, and
 * passes for conflicts. For each k, a warp of `tiled` reads B in one pass and A in half a pass. */
static void products_of_1024(void **state) {
    static const struct {
        const char *name;
        mm_variant_traffic *of;
        unsigned tile;
        unsigned transposed;
        uint64_t figures[MM_TRAFFIC_COUNT];
    } rows[] = {
        {"naive, B", mm_traffic_naive, 0, B, {2048 * MI, 33 * 32 * MI, MI / 8, 0, 0, 0}},
        {"uncoalesced, A", mm_traffic_naive_uncoalesced, 0, A, {2048 * MI, 160 * MI, MI, 0, 0, 0}},
        {"tiled_16, A",
         mm_traffic_tiled,
         16,
         A,
         {128 * MI, 16 * MI, MI / 8, 48 * MI, 2 * MI + 8 * 2 * MI, 7 * 2 * MI}},
        {"conflicted, A", mm_traffic_tiled_conflicted, 32, A, {64 * MI, 8 * MI, MI / 8, 64 * MI, 2 * MI, 0}},
    };
    for (size_t row = 0; row < COUNT(rows); row++) {
        const struct mm_product product = make_product(1024, 1024, 1024, rows[row].transposed, MM_FLOAT32);
        const struct mm_traffic traffic = predict(rows[row].of, &product, rows[row].tile);
        expect(&traffic, rows[row].name, rows[row].figures);
    }
}

/* Transpositions of 4096² elements of 1 or 8 bytes by 4096²/32 = MI/2 warps. For bytes, `vectorized` reads
 * words at a distance of about 17, with one conflict. */
static void transpositions_of_4096(void **state) {
    const uint64_t all = 16 * MI;
    static const struct {
        const char *name;
        mm_variant_traffic *of;
        enum mm_dtype dtype;
        uint64_t figures[MM_TRAFFIC_COUNT - 1];
    } rows[] = {
        {"naive, bytes", mm_traffic_transpose_naive, MM_UINT8, {MI / 2, 16 * MI, 0, 0, 0}},
        {"shared, bytes",
         mm_traffic_transpose_shared,
         MM_UINT8,
         {MI / 2, MI / 2, 8 * MI / 2, MI / 2, 7 * MI / 2}},
        {"padded, float64", mm_traffic_transpose_padded, MM_FLOAT64, {4 * MI, 4 * MI, MI, MI, 0}},
        {"vectorized, float64", mm_traffic_transpose_vectorized, MM_FLOAT64, {4 * MI, 4 * MI, MI, MI, 0}},
        {"vectorized, bytes",
         mm_traffic_transpose_vectorized,
         MM_UINT8,
         {MI / 2, MI / 2, MI / 4, MI / 4, MI / 4}},
    };
    for (size_t row = 0; row < COUNT(rows); row++) {
        const struct mm_product product = make_transposition(4096, 4096, rows[row].dtype);
        const struct mm_traffic traffic = predict(rows[row].of, &product, 0);
        uint64_t figures[MM_TRAFFIC_COUNT] = {all};
        memcpy(figures + 1, rows[row].figures, sizeof rows[row].figures);
        expect(&traffic, rows[row].name, figures);
    }
}

/* Blocks at the edges of C and the last tile of k are only partly used. There is no model for narrow elements
 * that are not aligned. */
static void edges(void **state) {
    const struct mm_product product = make_product(228, 240, 112, 0, MM_FLOAT32);
    const struct mm_product odd = make_transposition(100, 50, MM_FLOAT32),
                            bytes = make_transposition(100, 50, MM_INT8);
    struct mm_traffic traffic = predict(mm_traffic_tiled, &product, 32);
    /* 8×4 blocks with 8 steps of k. A row of A has 30 sectors, and a row of B or C has 14. */
    const uint64_t blocks = 8 * 4 * 8, warps = 32;
    expect(&traffic, "tiled_32",
           (uint64_t[]){228 * 240 * 4 + 240 * 112 * 8, 228 * 30 * 4 + 240 * 14 * 8, 228 * 14,
                        blocks * warps * (32 + 8 * 2), blocks * warps * 2, 0});
    /* 4 warps read the 100 words of a row of A. In every second row, 32 words lie in 5 sectors. */
    traffic = predict(mm_traffic_transpose_shared, &odd, 0);
    assert_int_equal(traffic.figures[MM_SHARED_LOAD_PASSES], 100 * (32 + 18));
    assert_int_equal(traffic.figures[MM_BANK_CONFLICT_PASSES], 100 * (31 + 17));
    assert_int_equal(traffic.figures[MM_GLOBAL_LOAD_SECTORS], 25 * (3 * 4 + 1) + 25 * (3 * 5 + 1));
    assert_false(mm_traffic_transpose_vectorized(&bytes, 0, &traffic));
}

/* Returns the number of different sectors that a warp accesses. Elements outside the matrix do not count. */
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

/* Returns the sectors that a block of side×side threads accesses, one element of op(X) per thread. */
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

/* A warp computes 32 columns of a row. Lanes outside C are inactive. */
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
            const struct mm_traffic tiled = predict(mm_traffic_tiled, &product, side);
            walk_tiled(&product, side, &loaded, &stored);
            assert_int_equal(tiled.figures[MM_GLOBAL_LOAD_SECTORS], loaded);
            assert_int_equal(tiled.figures[MM_GLOBAL_STORE_SECTORS], stored);
        }
        const struct mm_traffic naive = predict(mm_traffic_naive, &product, 0);
        walk_naive(&product, &loaded, &stored);
        assert_int_equal(naive.figures[MM_GLOBAL_LOAD_SECTORS], loaded);
        assert_int_equal(naive.figures[MM_GLOBAL_STORE_SECTORS], stored);
    }
}

/* Every kernel must at least load each element of A and B once, and store each element of C. */
static bool covers(const struct mm_variant *variant, const struct mm_product *product) {
    struct mm_traffic traffic;
    if (variant->traffic == NULL || !mm_variant_has_dtype(variant, MM_FLOAT32) ||
        !mm_variant_supports_shape(variant, product))
        return false;
    assert_true(variant->traffic(product, variant->tile, &traffic));
    const uint64_t loaded = product->a.rows * product->a.cols + product->b.rows * product->b.cols;
    assert_true(traffic.figures[MM_GLOBAL_LOADS] >= loaded);
    assert_true(traffic.figures[MM_GLOBAL_LOAD_SECTORS] * 8 >= loaded);
    assert_true(traffic.figures[MM_GLOBAL_STORE_SECTORS] * 8 >= product->m * product->n);
    return true;
}

static void all_kernels(void **state) {
    static const size_t shapes[][3] = {
        {1024, 1024, 1024}, {228, 240, 112}, {1, 1, 1}, {511, 33, 4097}, {4096, 512, 1}};
    unsigned known = 0;
    for (size_t row = 0; row < MM_CUDA_VARIANT_COUNT; row++)
        for (size_t index = 0; index < COUNT(shapes) * 4; index++) {
            const struct mm_variant *variant = &mm_cuda_variants[row];
            const size_t *shape = shapes[index / 4];
            const struct mm_product product =
                variant->op == MM_TRANSPOSE
                    ? make_transposition(shape[0], shape[1], MM_FLOAT32)
                    : make_product(shape[0], shape[1], shape[2], index % 4, MM_FLOAT32);
            known += covers(variant, &product);
        }
    /* 19 variants of products, of which two run only one of the shapes, and 4 of transpositions. */
    assert_int_equal(known, (23 * COUNT(shapes) - 2 * (COUNT(shapes) - 1)) * 4);
}

RUN_TESTS(counters, all_kernels, products_of_1024, transpositions_of_4096, edges, all_warps)
