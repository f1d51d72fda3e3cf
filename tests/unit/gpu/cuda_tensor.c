/* Tests the workspace, tensor maps and clusters of `tensor`. Kernels and the CUDA driver are fakes. */
#include "fake_tensor.h"

static const enum mm_dtype dtypes[] = {MM_FLOAT32, MM_FLOAT16, MM_BFLOAT16, MM_FLOAT8_E4M3FN, MM_FLOAT8_E5M2,
                                       MM_INT8,    MM_UINT8,   MM_BOOL,     MM_INT32,         MM_FLOAT64};

/* Checks the number of lines (rows of A or columns of B) in a box of the tensor map. A K-major operand is
 * loaded in one box, and other operands in squares of 128 bytes. An unaligned operand has no tensor map,
 * because threads copy it. */
static void expect_lines(const CUtensorMap *map, const struct mm_matrix *unaligned, unsigned lines,
                         size_t all, unsigned whole, unsigned square) {
    const size_t least = all < whole ? all : whole;
    assert_in_range(lines, least, whole);
    assert_int_equal(lines % (square > 0 ? square : 8), 0);
    assert_true(lines < least + (square > 0 ? square : 8));
    assert_int_equal(read_map(map).lines, unaligned->data != NULL ? 0 : square > 0 ? square : lines);
}

static void each_shape_has_its_memory(void **state) {
    static const size_t shapes[][3] = {{1, 1, 1},          {16, 64, 16},       {127, 129, 131},
                                       {256, 512, 256},    {64, 16384, 64},    {1, 4096, 4096},
                                       {4096, 4096, 1},    {4096, 4096, 4096}, {4095, 4097, 4099},
                                       {1, 0x7fffffff, 1}, {256, 8192, 256}};
    for (size_t type = 0; type < COUNT(dtypes); type++) {
        for (size_t index = 0; index < COUNT(shapes) * 4; index++) {
            const size_t *shape = shapes[index / 4];
            const struct mm_product product =
                product_of(dtypes[type], shape[0], shape[1], shape[2], index % 4);
            const size_t bytes = mm_dtype_bytes(dtypes[type]);
            const bool turns = bytes != 2 && bytes != 8, copies = bytes == 8;
            const bool splits = dtypes[type] == MM_INT32;
            const bool is_odd_a = product.a.ld * bytes % 16 != 0, is_odd_b = product.b.ld * bytes % 16 != 0;
            const unsigned square = turns ? 0 : 128 / (unsigned)bytes;
            if (splits && product.k > MM_TENSOR_LIMBS_K_MAX)
                continue;
            launch(&product);
            assert_int_equal(seen.copied,
                             (unsigned)(splits || (turns && product.transpose_a) || (is_odd_a && !copies)) +
                                 (splits || (turns && !product.transpose_b) || (is_odd_b && !copies)));
            assert_ptr_equal(seen.plan.unaligned_a.data, is_odd_a && copies ? operands : NULL);
            assert_ptr_equal(seen.plan.unaligned_b.data, is_odd_b && copies ? operands : NULL);
            expect_lines(&seen.plan.a, &seen.plan.unaligned_a, seen.plan.a_lines, product.m, seen.plan.rows,
                         product.transpose_a ? square : 0);
            expect_lines(&seen.plan.b, &seen.plan.unaligned_b, seen.plan.b_lines, product.n,
                         seen.plan.cols / seen.plan.cluster, product.transpose_b ? 0 : square);
            assert_int_equal(seen.plan.maps_c,
                             !copies && product.c.ld * mm_dtype_bytes(product.c.dtype) % 16 == 0);
            assert_int_equal(seen.maps, 2 - (copies && is_odd_a) - (copies && is_odd_b) + seen.plan.maps_c);
        }
    }
}

static void each_part_of_k_has_steps(void **state) {
    for (unsigned is_double = 0; is_double < 2; is_double++) {
        unsigned cut = 0;
        for (size_t edge = 64; edge <= 512; edge *= 2)
            for (size_t k = 512; k <= 16384; k += 192) {
                const struct mm_product product =
                    product_of(is_double ? MM_FLOAT64 : MM_BFLOAT16, edge, k, edge, 2);
                launch(&product);
                cut += seen.plan.schedule.sharers > 0;
            }
        assert_true(cut > 100);
    }
}

/* A multiprocessor runs two blocks of 64×64 at the same time. */
static void blocks_share_multiprocessors(void **state) {
    const struct mm_product product = product_of(MM_FLOAT64, 1024, 1024, 1024, 0);
    launch(&product);
    assert_int_equal(seen.grid.x, 256);
}

/* An operand has a tensor map only if its address is a multiple of 16. */
static void unaligned_operands_are_copied_by_threads(void **state) {
    struct mm_product product = product_of(MM_FLOAT64, 64, 64, 64, 0);
    product.b.data = operands + 8;
    launch(&product);
    assert_null(seen.plan.unaligned_a.data);
    assert_ptr_equal(seen.plan.unaligned_b.data, operands + 8);
    assert_int_equal(seen.maps, 1);
}

/* Without a tile in the request, the fastest tile is chosen. */
static void tiles_are_chosen(void **state) {
    static const struct {
        size_t m, k, n;
        unsigned tile, rows, wide;
        bool is_shared;
        enum mm_dtype dtype;
    } cases[] = {
        {512, 512, 512, 32, 64, 64},
        {512, 512, 512, 64, 64, 128},
        {1024, 1024, 1024, 0, 64, 128},
        {512, 512, 512, 128, 128, 128},
        {512, 512, 512, 192, 128, 192},
        {512, 512, 512, 256, 128, 256},
        {4096, 4096, 4096, 0, 128, 256},
        {2304, 2304, 2304, 0, 128, 192},
        {512, 512, 512, 0, 64, 64},
        {256, 8192, 256, 0, 64, 64, true},
        {512, 512, 512, 32, 32, 32, false, MM_FLOAT64},
        {1024, 1024, 1024, 64, 64, 64, false, MM_FLOAT64},
        {4096, 4096, 4096, 128, 128, 128, true, MM_FLOAT64},
        {128, 128, 128, 0, 32, 32, false, MM_FLOAT64},
        {1024, 1024, 1024, 0, 64, 64, false, MM_FLOAT64},
        {8192, 8192, 8192, 0, 128, 128, true, MM_FLOAT64},
        {2048, 2048, 2048, 0, 128, 128, false, MM_FLOAT8_E4M3FN},
        {3072, 3072, 3072, 0, 128, 192, false, MM_FLOAT8_E5M2},
        {4096, 4096, 4096, 0, 128, 128, false, MM_FLOAT8_E4M3FN},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        const enum mm_dtype dtype = cases[index].dtype == 0 ? MM_BFLOAT16 : cases[index].dtype;
        struct mm_product product = product_of(dtype, cases[index].m, cases[index].k, cases[index].n, 2);
        product.tile = cases[index].tile;
        launch(&product);
        assert_int_equal(seen.plan.rows, cases[index].rows);
        assert_int_equal(seen.plan.cols, cases[index].wide);
        assert_int_equal(seen.plan.schedule.sharers > 0, cases[index].is_shared);
    }
}

/* Returns the rows from `row` on, and the columns from `col` on. */
static struct mm_product last_share(const struct mm_product *product, size_t row, size_t col) {
    struct mm_product share =
        mm_product_part(product, MM_MATMUL, row, product->m - row, col, product->n - col);
    share.whole = (struct mm_whole){product->m, product->n, row, col};
    return share;
}

/* A share alone would have other tiles. The last share has the tiles that clusters share, other shares have
 * none. */
static void shares_are_tiled_as_the_whole(void **state) {
    unsigned sharing = 0;
    for (size_t index = 0; index < COUNT(dtypes); index++) {
        const struct mm_product product = product_of(dtypes[index], 5000, 4096, 4100, 0);
        struct mm_plan plan = {.device = &device.head};
        assert_int_equal(mm_cuda_tensor(&product, &plan, NULL), MM_OK);
        launch(&product);
        const struct mm_tensor_plan whole = seen.plan;
        struct mm_product share = last_share(&product, 4096, 0);
        assert_int_equal(4096 % plan.cuts.rows, 0);
        sharing += whole.schedule.sharers > 0;
        launch(&share);
        assert_int_equal(seen.plan.rows, whole.rows);
        assert_int_equal(seen.plan.cols, whole.cols);
        assert_int_equal(seen.plan.schedule.sharers, whole.schedule.sharers);
        assert_int_equal(seen.plan.schedule.share, whole.schedule.share);
        share = last_share(&share, 0, 0);
        share.whole = (struct mm_whole){9096, 4100, 4096, 0}; /* not the last share */
        launch(&share);
        assert_int_equal(seen.plan.schedule.sharers, 0);
    }
    assert_true(sharing > 0);
}

/* Small products share launches. They need no workspace, and a pass applies their epilogues. */
static void small_products_have_a_batch_kernel(void **state) {
    static const struct {
        enum mm_dtype dtype;
        size_t m, k, n;
        unsigned tile;
        bool is_small, is_stack;
    } cases[] = {
        {MM_BFLOAT16, 256, 256, 256, 0, true},
        {MM_INT8, 1, 1, 1, 0, true},
        {MM_FLOAT8_E5M2, 256, 512, 256, 0, true},
        {MM_FLOAT16, 16, 512, 448, 0, true},
        {MM_FLOAT16, 16, 513, 448, 0, false},
        {MM_FLOAT16, 256, 384, 512, 0, false}, /* more than 1 MiB with a float32 C */
        {MM_UINT8, 418, 418, 418, 0, true},
        {MM_UINT8, 419, 419, 419, 0, false},
        {MM_BOOL, 64, 64, 64, 32, false},
        {MM_BFLOAT16, 4096, 4096, 4096, 16, true},
        {MM_BFLOAT16, 64, 64, 64, 0, false, true},
        {MM_FLOAT64, 64, 64, 64, 0, false},
        {MM_FLOAT32, 64, 64, 64, 0, false},
    };
    const struct mm_stack stack = {.count = 1, .a_count = 1, .b_count = 1, .rank = 1, .dims = {1}};
    for (size_t index = 0; index < COUNT(cases); index++) {
        struct mm_product product =
            product_of(cases[index].dtype, cases[index].m, cases[index].k, cases[index].n, index % 4);
        struct mm_plan plan = {.device = &device.head};
        struct mm_error error;
        product.tile = cases[index].tile;
        product.stack = cases[index].is_stack ? &stack : NULL;
        product.epilogue.is_set = index % 2 != 0;
        product.a.data = operands + 1;
        assert_int_equal(mm_cuda_tensor(&product, &plan, &error), MM_OK);
        if ((plan.layout.batch_kernel == &small_batch_kernel) != cases[index].is_small)
            fail_msg("case %zu", index);
        assert_false(cases[index].is_small && (plan.workspace_bytes > 0 || plan.finishes));
    }
}

/* Plain products have a kernel with less code. */
static void plain_products_have_their_kernel(void **state) {
    static const struct {
        enum mm_dtype dtype, c_dtype;
        size_t m, k, n;
        size_t shift; /* bytes from an aligned address to C */
        bool has_epilogue, is_stack, is_plain;
    } cases[] = {
        {MM_BFLOAT16, MM_BFLOAT16, 512, 512, 512, 0, false, false, true},
        {MM_INT8, MM_INT32, 512, 512, 512, 16, false, false, true},
        {MM_BFLOAT16, MM_FLOAT32, 512, 512, 512, 0, false, false, false},
        {MM_FLOAT8_E5M2, MM_FLOAT16, 512, 512, 512, 0, false, false, false},
        {MM_BFLOAT16, MM_BFLOAT16, 512, 512, 508, 0, false, false, false},  /* threads store C */
        {MM_BFLOAT16, MM_BFLOAT16, 512, 512, 512, 8, false, false, false},  /* threads store C */
        {MM_BFLOAT16, MM_BFLOAT16, 256, 8192, 256, 0, false, false, false}, /* clusters share tiles */
        {MM_BFLOAT16, MM_BFLOAT16, 512, 512, 512, 0, true, false, false},
        {MM_BFLOAT16, MM_BFLOAT16, 512, 512, 512, 0, false, true, false},
        {MM_FLOAT64, MM_FLOAT64, 512, 512, 512, 0, false, false, false},
    };
    const struct mm_stack stack = {
        .count = 2, .a_count = 2, .b_count = 2, .rank = 1, .dims = {2}, .a_steps = {1}, .b_steps = {1}};
    for (size_t index = 0; index < COUNT(cases); index++) {
        struct mm_product product =
            product_of(cases[index].dtype, cases[index].m, cases[index].k, cases[index].n, 2);
        product.c =
            mm_matrix_dense(cases[index].c_dtype, product.m, product.n, operands + cases[index].shift);
        product.epilogue.is_set = cases[index].has_epilogue;
        if (cases[index].is_stack) {
            product.a.rows *= 2, product.b.rows *= 2, product.c.rows *= 2;
            product.stack = &stack;
        }
        launch(&product);
        if (seen.is_plain != cases[index].is_plain)
            fail_msg("case %zu", index);
    }
}

/* A stack is one launch, unless its matrices need padded copies. Then each product is a launch. */
static void stacks_have_their_memory(void **state) {
    const struct mm_stack stack = {.count = 6,
                                   .a_count = 6,
                                   .b_count = 3,
                                   .rank = 2,
                                   .dims = {2, 3},
                                   .a_steps = {3, 1},
                                   .b_steps = {0, 1}};
    static const size_t depths[] = {64, 63, 8, 1};
    for (size_t type = 0; type < COUNT(dtypes); type++) {
        for (size_t index = 0; index < COUNT(depths) * 4; index++) {
            struct mm_product product = product_of(dtypes[type], 33, depths[index / 4], 40, index % 4);
            product.a.rows *= stack.a_count;
            product.b.rows *= stack.b_count;
            product.c.rows *= stack.count;
            product.stack = &stack;
            launch(&product);
            if (seen.plan.unaligned_a.data != NULL)
                assert_int_equal(seen.plan.unaligned_a.rows, product.transpose_a ? product.k : product.m);
            if (seen.plan.unaligned_b.data != NULL)
                assert_int_equal(seen.plan.unaligned_b.rows, product.transpose_b ? product.n : product.k);
        }
    }
    const struct mm_product even = product_of(MM_BFLOAT16, 64, 64, 64, 0);
    struct mm_product product = even;
    product.a.rows *= stack.a_count;
    product.b.rows *= stack.b_count;
    product.c.rows *= stack.count;
    product.stack = &stack;
    launch(&product);
    assert_int_equal(seen.plan.rank, 2);
    assert_int_equal(seen.plan.product.c.rows, 64);
    assert_memory_equal(seen.plan.b_steps, ((unsigned[]){0, 1}), 2 * sizeof(unsigned));
}

/* Both operands of int32 are split into planes. The planes of A and B have opposite orders. */
static void int32_is_split(void **state) {
    static const struct {
        size_t m, k, n;
        struct mm_tensor_groups groups;
    } cases[] = {
        {3, 1, 5, {32, {0, 1, 2, 3, 4}}},
        {64, 33, 8, {64, {0, 2, 4, 5, 6}}},
        {128, 4096, 256, {4096, {0, 128, 224, 288, 320}}},
    };
    const struct mm_stack stack = {
        .count = 2, .a_count = 2, .b_count = 2, .rank = 1, .dims = {2}, .a_steps = {1}, .b_steps = {1}};
    for (size_t index = 0; index < COUNT(cases) * 8; index++) {
        const size_t m = cases[index / 8].m, k = cases[index / 8].k, n = cases[index / 8].n;
        const struct mm_tensor_groups *groups = &cases[index / 8].groups;
        struct mm_product product = product_of(MM_INT32, m, k, n, index % 4);
        const size_t matrices = index % 8 < 4 ? 1 : 2;
        if (matrices == 2) {
            product.a.rows *= 2, product.b.rows *= 2, product.c.rows *= 2;
            product.stack = &stack;
        }
        launch(&product);
        assert_memory_equal(&seen.plan.groups, groups, sizeof *groups);
        assert_int_equal(seen.plan.schedule.steps, groups->begin[MM_TENSOR_LIMBS]);
        assert_int_equal(seen.split, 2);
        for (unsigned slot = 0; slot < 2; slot++) {
            const struct mm_tensor_split *split = &seen.splits[slot];
            assert_int_equal(split->descends, slot == 1);
            assert_int_equal(split->is_k_major, slot == 0 ? !product.transpose_a : product.transpose_b);
            assert_int_equal(split->matrices, split->is_k_major ? 1 : matrices);
            assert_int_equal(split->matrices * split->lines, matrices * (slot == 0 ? m : n));
            assert_int_equal(split->k, k);
            assert_int_equal(split->depth, groups->depth);
            assert_ptr_equal(split->to, read_map(slot == 0 ? &seen.plan.a : &seen.plan.b).address);
        }
    }
}

/* The aligned copy of a stored operand is made once. */
static void copies_are_kept(void **state) {
    const struct mm_product product = product_of(MM_INT8, 256, 256, 256, 0);
    launch(&product);
    assert_int_equal(seen.copied, 1);
    assert_ptr_equal(read_map(&seen.plan.b).address, seen.copies[0].data);
    is_kept = true;
    launch(&product);
    is_kept = false;
    assert_int_equal(seen.copied, 0);
    assert_ptr_equal(read_map(&seen.plan.b).address, operands);
}

/* A matrix that is multiplied by its own transpose needs two copies, because the planes of A and B have
 * opposite orders. */
static void copies_of_a_and_b_differ(void **state) {
    const struct mm_product product = product_of(MM_INT32, 64, 64, 64, 2);
    launch(&product);
    assert_int_not_equal(keys[0], keys[1]);
}

static void other_kernels_compute_without_k(void **state) {
    const struct mm_product empty = product_of(MM_INT8, 5, 0, 7, 0);
    const struct mm_product long_int32 = product_of(MM_INT32, 1, MM_TENSOR_LIMBS_K_MAX + 1, 1, 0);
    struct mm_plan plan = {.device = &device.head};
    struct mm_error error;
    memset(&seen, 0, sizeof seen);
    assert_int_equal(mm_cuda_tensor(&long_int32, &plan, &error), MM_OK);
    assert_int_equal(seen.tiled, 1);
    seen.tiled = 0;
    assert_int_equal(mm_cuda_tensor(&empty, &plan, &error), MM_OK);
    assert_int_equal(seen.tiled, 1);
    assert_false(plan.finishes); /* the other kernel applies no epilogue, so a pass must follow it */
    struct mm_product with_epilogue = product_of(MM_INT8, 16, 32, 12, 0);
    with_epilogue.epilogue = (struct mm_epilogue){.is_set = true, .activation = MM_ACTIVATION_RELU};
    plan = (struct mm_plan){.device = &device.head};
    assert_int_equal(mm_cuda_tensor(&with_epilogue, &plan, &error), MM_OK);
    assert_true(plan.finishes);
}

static void a_tile_that_a_type_lacks_is_refused(void **state) {
    struct mm_product product = product_of(MM_FLOAT64, 8, 8, 8, 0);
    struct mm_plan plan = {.device = &device.head, .variant = &(const struct mm_variant){.name = "tensor"}};
    struct mm_error error;
    product.tile = 192;
    assert_int_equal(mm_cuda_tensor(&product, &plan, &error), MM_UNSUPPORTED);
    assert_string_equal(error.field, "tile");
    assert_string_equal(error.detail, "tensor of float64 has no tiles of 192; choose 32, 64 or 128");
}

/* The tensor memory accelerator counts in signed 32-bit numbers. */
static void too_many_tiles_are_refused(void **state) {
    static const struct {
        size_t count;
        enum mm_status status;
    } cases[] = {{INT32_MAX, MM_OK}, {(size_t)INT32_MAX + 1, MM_UNSUPPORTED}};
    for (size_t index = 0; index < COUNT(cases); index++) {
        const struct mm_stack stack = {
            .count = cases[index].count, .a_count = 1, .b_count = 1, .rank = 1, .dims = {cases[index].count}};
        struct mm_product product = product_of(MM_BFLOAT16, 8, 8, 8, 0);
        struct mm_plan plan = {.device = &device.head,
                               .variant = &(const struct mm_variant){.name = "tensor"}};
        struct mm_error error;
        product.c.rows *= stack.count;
        product.stack = &stack;
        assert_int_equal(mm_cuda_tensor(&product, &plan, &error), cases[index].status);
    }
}

/* Another kernel applies the epilogue if the wgmma kernels cannot. The wgmma kernels load the addend by TMA
 * and the bias in pairs. They have no activation except relu. */
static void epilogues_that_kernels_lack_are_a_pass(void **state) {
    static const struct {
        enum mm_dtype dtype;
        enum mm_activation activation;
        size_t n;
        size_t extra;      /* elements between the rows of the addend */
        size_t shift;      /* bytes from an aligned address to the addend */
        size_t bias_shift; /* bytes from an aligned address to the bias */
        bool transpose_addend;
        bool is_pass;
    } cases[] = {
        {MM_FLOAT16, MM_ACTIVATION_RELU, 16, 0, 0, 0, false, false},
        {MM_FLOAT16, MM_ACTIVATION_GELU, 16, 0, 0, 0, false, true},
        {MM_FLOAT16, MM_ACTIVATION_NONE, 12, 0, 0, 0, false, true},
        {MM_FLOAT16, MM_ACTIVATION_NONE, 16, 1, 0, 0, false, true},
        {MM_FLOAT16, MM_ACTIVATION_NONE, 16, 0, 8, 0, false, true},
        {MM_FLOAT16, MM_ACTIVATION_NONE, 16, 0, 0, 8, false, false},
        {MM_FLOAT16, MM_ACTIVATION_NONE, 16, 0, 0, 2, false, true},
        {MM_FLOAT16, MM_ACTIVATION_NONE, 16, 0, 0, 0, true, true},
        {MM_INT8, MM_ACTIVATION_RELU, 12, 4, 16, 8, false, false},
        {MM_FLOAT64, MM_ACTIVATION_RELU, 15, 1, 8, 8, true, false},
        {MM_FLOAT64, MM_ACTIVATION_TANH, 16, 0, 0, 0, false, true},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        const size_t n = cases[index].n;
        struct mm_product product = product_of(cases[index].dtype, 16, 32, n, 0);
        struct mm_plan plan = {.device = &device.head};
        struct mm_error error;
        memset(&seen, 0, sizeof seen);
        product.epilogue = (struct mm_epilogue){.is_set = true, .activation = cases[index].activation};
        product.addend = mm_matrix_dense(product.c.dtype, 16, n, operands + cases[index].shift);
        product.bias = mm_matrix_dense(product.c.dtype, 1, n, operands + cases[index].bias_shift);
        product.addend.ld += cases[index].extra;
        product.transpose_addend = cases[index].transpose_addend;
        assert_int_equal(mm_cuda_tensor(&product, &plan, &error), MM_OK);
        if (plan.finishes == cases[index].is_pass)
            fail_msg("case %zu", index);
    }
}

RUN_TESTS(each_shape_has_its_memory, each_part_of_k_has_steps, tiles_are_chosen,
          small_products_have_a_batch_kernel, plain_products_have_their_kernel, stacks_have_their_memory,
          int32_is_split, copies_are_kept, copies_of_a_and_b_differ, other_kernels_compute_without_k,
          blocks_share_multiprocessors, unaligned_operands_are_copied_by_threads,
          epilogues_that_kernels_lack_are_a_pass, a_tile_that_a_type_lacks_is_refused,
          too_many_tiles_are_refused, shares_are_tiled_as_the_whole)
