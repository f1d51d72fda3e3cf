/* Tests the workspace, tensor maps and clusters of `tensor`. Kernels and the CUDA driver are fakes. */
#include "gpu/cuda/device.h"
#include "gpu/cuda/device_copy.h"
#include "gpu/cuda/variants.h"
#include "gpu/cuda/variants/passes.h"
#include "gpu/cuda/variants/tensor/plan.h"
#include "tests/unit/unit.h"

enum { MULTIPROCESSORS = 132 };

static const char kernels[9];

#define KERNEL(index, rows, cols, cluster, resident)                                                         \
    { &kernels[index], rows, cols, 2 * (rows) + 128, cluster, resident, 1 }
#define K_MAJOR(...)                                                                                         \
    {                                                                                                        \
        { KERNEL(__VA_ARGS__) }                                                                              \
    }
#define ANY_ORDER(...)                                                                                       \
    {                                                                                                        \
        {KERNEL(__VA_ARGS__), KERNEL(__VA_ARGS__)}, {                                                        \
            KERNEL(__VA_ARGS__), KERNEL(__VA_ARGS__)                                                         \
        }                                                                                                    \
    }
#define KERNELS(index, wide, SIZE)                                                                           \
    {                                                                                                        \
        .of = {                                                                                              \
            SIZE(index, 64, 64, 1, 1),                                                                       \
            SIZE(index, 128, 64, 1, 1),                                                                      \
            SIZE(index, 128, 128, 1, 1),                                                                     \
            SIZE(index, 128, 192, 1, 1),                                                                     \
            SIZE(index, 128, wide, 2, 1)                                                                     \
        }                                                                                                    \
    }
const struct mm_tensor_kernels mm_tensor_float16 = KERNELS(0, 256, ANY_ORDER),
                               mm_tensor_bfloat16 = KERNELS(1, 256, ANY_ORDER),
                               mm_tensor_tf32 = KERNELS(2, 256, K_MAJOR),
                               mm_tensor_float8_e4m3fn = KERNELS(3, 192, K_MAJOR),
                               mm_tensor_float8_e5m2 = KERNELS(4, 192, K_MAJOR),
                               mm_tensor_int8 = KERNELS(5, 256, K_MAJOR),
                               mm_tensor_uint8 = KERNELS(6, 256, K_MAJOR),
                               mm_tensor_int32 = KERNELS(8, 256, K_MAJOR),
                               mm_tensor_float64 = {.of = {ANY_ORDER(7, 32, 32, 1, 3),
                                                           ANY_ORDER(7, 64, 64, 1, 2),
                                                           ANY_ORDER(7, 128, 128, 1, 1)},
                                                    .threads_copy = true};

/* Calls since the last launch. */
static struct {
    struct mm_tensor_plan plan;
    struct mm_matrix copies[2];
    dim3 grid; /* grid of the kernel that multiplies */
    struct mm_tensor_split splits[2];
    unsigned copied, maps, enqueued, reduced, loaded_reduce, split, loaded_split, tiled;
    enum mm_dtype sums;
} seen;

static const char reduces[MM_DTYPE_COUNT];

const void *mm_tensor_reduce_of(enum mm_dtype operand) {
    return &reduces[mm_dtype_sum(operand)];
}

static const char small_kernel, small_batch_kernel;

struct mm_layout mm_tensor_small_layout(const struct mm_product *product) {
    return (struct mm_layout){.kernel = &small_kernel, .batch_kernel = &small_batch_kernel};
}

static const char split_kernel;

struct mm_layout mm_tensor_split_layout(void) {
    return (struct mm_layout){.kernel = &split_kernel, .threads_x = 1};
}

unsigned mm_tensor_split_blocks(const struct mm_tensor_split *split) {
    return 1;
}

static _Alignas(256) char operands[1 << 12];
static _Alignas(256) char scratch[1 << 12]; /* never read or written */
static bool is_kept;
static uint64_t keys[2]; /* of the operands' copies */

enum mm_status mm_cuda_tiled_16(const struct mm_product *product, struct mm_plan *plan,
                                struct mm_error *error) {
    seen.tiled++;
    return MM_OK;
}

enum mm_status mm_cuda_copy_operand(mm_cuda_step *run, const struct mm_device *device,
                                    const struct mm_matrix *from, size_t matrices, bool is_turned,
                                    const struct mm_matrix *to, struct mm_lane *lane,
                                    struct mm_error *error) {
    assert_int_equal(to->rows, is_turned ? matrices * from->cols : from->rows);
    assert_int_equal(to->cols, is_turned ? from->rows / matrices : from->cols);
    assert_true(to->ld * mm_dtype_bytes(to->dtype) % 16 == 0 && to->ld >= to->cols);
    assert_true(!is_turned || matrices == 1 ||
                to->ld == to->cols); /* the transposition kernels require this */
    if (run == mm_plan_launch)
        seen.copies[seen.copied++] = *to;
    return MM_OK;
}

bool mm_cuda_is_aligned(const struct mm_matrix *matrix) {
    return (uintptr_t)matrix->data % 16 == 0 && matrix->ld * mm_dtype_bytes(matrix->dtype) % 16 == 0;
}

enum mm_status mm_cuda_launch_whole(const struct mm_plan *plan, const struct mm_product *product,
                                    size_t first, size_t count, struct mm_lane *lane,
                                    struct mm_error *error) {
    return plan->launch(plan, product, lane, error);
}

enum mm_status mm_cuda_load(const struct mm_layout *layout, struct mm_lane *lane, struct mm_error *error) {
    seen.loaded_reduce += layout->threads_x == MM_TENSOR_REDUCE_THREADS;
    seen.loaded_split += layout->kernel == &split_kernel;
    return MM_OK;
}

enum mm_status mm_cuda_prepare(const struct mm_plan *plan, const struct mm_product *product,
                               struct mm_lane *lane, struct mm_error *error) {
    return MM_OK;
}

void *mm_cuda_acquire_derived(struct mm_lane *lane, unsigned slot, const void *from, uint64_t key,
                              size_t bytes, bool *is_filled) {
    keys[slot] = key;
    *is_filled = is_kept;
    return is_kept ? operands : NULL;
}

cudaError_t mm_cuda_note_derived(struct mm_lane *lane, unsigned slot) {
    return cudaErrorUnknown; /* an existing copy must not be made again */
}

enum mm_status mm_cuda_status(struct mm_cuda_device *device, cudaError_t code, const char *doing,
                              struct mm_error *error) {
    return code == cudaSuccess ? MM_OK : mm_fail(error, MM_INTERNAL, "%s", doing);
}

/* What the fake driver writes into a tensor map. */
struct map {
    const void *address;
    unsigned lines; /* number of lines in a box */
};

/* Checks what the driver requires of a tensor map. */
static CUresult encode(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                       const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
                       const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
                       CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                       CUtensorMapFloatOOBfill fill) {
    const size_t bytes = type == CU_TENSOR_MAP_DATA_TYPE_UINT8     ? 1
                         : type == CU_TENSOR_MAP_DATA_TYPE_UINT16  ? 2
                         : type == CU_TENSOR_MAP_DATA_TYPE_FLOAT64 ? 8
                                                                   : 4;
    assert_int_equal(rank, 3);
    assert_int_equal((uintptr_t)address % 16, 0);
    for (unsigned dim = 0; dim < rank; dim++)
        assert_true(dims[dim] >= 1 && dims[dim] <= UINT32_MAX && box[dim] >= 1 && box[dim] <= 256);
    assert_true(strides[0] % 16 == 0 && strides[0] >= dims[0] * bytes);
    assert_true(strides[1] % 16 == 0 && strides[1] >= strides[0] * dims[1]);
    assert_int_equal(box[0] * bytes, 128); /* width of the swizzle */
    memcpy(map, &(const struct map){address, box[1]}, sizeof(struct map));
    seen.maps++;
    return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result) {
    assert_string_equal(symbol, "cuTensorMapEncodeTiled");
    *function = (void *)encode;
    return cudaSuccess;
}

enum mm_status mm_cuda_enqueue(const struct mm_layout *layout, dim3 grid, void **arguments,
                               struct mm_lane *lane, struct mm_error *error) {
    if (layout->kernel == &split_kernel) {
        const struct mm_tensor_split *split = arguments[0];
        seen.splits[seen.split++] = *split;
        seen.copies[seen.copied++] = mm_matrix_dense(MM_UINT8, split->matrices * split->lines,
                                                     (size_t)MM_TENSOR_LIMBS * split->depth, split->to);
        return MM_OK;
    }
    seen.plan = *(const struct mm_tensor_plan *)arguments[0];
    if (layout->threads_x == MM_TENSOR_REDUCE_THREADS) {
        assert_ptr_equal(layout->kernel, &reduces[seen.sums]);
        assert_int_equal(grid.x, mm_shared_tiles(&seen.plan.schedule) * seen.plan.cluster);
        assert_int_equal(grid.y * MM_TENSOR_REDUCE_THREADS * 4, seen.plan.rows * seen.plan.cols);
        seen.reduced++;
        return MM_OK;
    }
    seen.enqueued++;
    seen.grid = grid;
    const unsigned resident = seen.sums != MM_FLOAT64 ? 1 : seen.plan.rows == 32 ? 3 : 128 / seen.plan.rows;
    assert_in_range(grid.x, 1, MULTIPROCESSORS * resident);
    assert_int_equal(grid.x, seen.plan.schedule.clusters * seen.plan.cluster);
    assert_int_equal(layout->threads_x, 2 * seen.plan.rows + 128);
    return MM_OK;
}

static struct map read_map(const CUtensorMap *encoded) {
    struct map map;
    memcpy(&map, encoded, sizeof map);
    return map;
}

static void expect_band(const struct mm_schedule *schedule, uint64_t band, uint64_t cluster_tile) {
    assert_int_equal(cluster_tile * schedule->band.multiplier >> schedule->band.shift, cluster_tile / band);
}

/* Checks that the clusters compute each step of k of each tile exactly once. */
static void expect_all_work(const struct mm_schedule *schedule, size_t count) {
    const size_t tiles = count * schedule->cluster_tile_rows * schedule->cluster_tile_cols;
    const size_t shared = tiles - schedule->whole_cluster_tiles;
    assert_true(schedule->whole_cluster_tiles <= tiles && schedule->clusters >= 1);
    assert_true(shared * schedule->steps ==
                (size_t)schedule->share * schedule->sharers + schedule->longer_shares);
    assert_true(schedule->sharers <= schedule->clusters && shared <= schedule->sharers);
    const uint64_t band = (uint64_t)MM_BAND_ROWS * schedule->cluster_tile_cols;
    for (uint64_t number = INT32_MAX; number > 0; number /= 3) {
        const uint64_t begin = number / band * band;
        expect_band(schedule, band, number);
        expect_band(schedule, band, begin);
        expect_band(schedule, band, begin - (begin > 0));
    }
}

/* The shares of the clusters follow each other without gaps. If the number of clusters is a multiple of the
 * number of tiles, each share stays within one tile. */
static void expect_shares(const struct mm_schedule *schedule) {
    const unsigned tiles = mm_shared_tiles(schedule);
    unsigned begin = 0, at_edges = 0, continuing = 0;
    for (unsigned cluster = 0; cluster < schedule->sharers; cluster++) {
        const struct mm_sharers sharers = mm_sharers_of(schedule, begin / schedule->steps);
        const bool continues = begin % schedule->steps != 0;
        assert_int_equal(mm_share_begin(schedule, cluster), begin);
        assert_int_equal(cluster >= sharers.first && cluster < sharers.end, continues);
        at_edges += !continues;
        const unsigned end = mm_share_begin(schedule, cluster + 1);
        assert_true(end >= begin + MM_SHARE_STEPS_MIN);
        begin = end;
    }
    assert_int_equal(begin, tiles * schedule->steps);
    assert_true(tiles == 0 || schedule->sharers % tiles != 0 || at_edges == tiles);
    for (unsigned tile = 0; tile < tiles; tile++)
        continuing += mm_sharers_of(schedule, tile).end - mm_sharers_of(schedule, tile).first;
    assert_int_equal(continuing, schedule->sharers - at_edges);
}

static struct mm_cuda_device device = {.head.multiprocessors = MULTIPROCESSORS};

/* Plans and enqueues a product. A stack without its own kernel needs a launch for each product, so only the
 * last product is launched. All data must fit into the workspace. */
static void launch(const struct mm_product *product) {
    struct mm_lane lane = {.device = &device, .scratch = scratch};
    struct mm_plan plan = {.device = &device.head};
    struct mm_error error;
    memset(&seen, 0, sizeof seen);
    seen.sums = mm_dtype_sum(product->a.dtype);
    assert_int_equal(mm_cuda_tensor(product, &plan, &error), MM_OK);
    assert_int_equal(plan.layout.block_rows, 0); /* 0 means that C is not divided into bands of rows */
    assert_int_equal(plan.prepare(&plan, product, &lane, &error), MM_OK);
    const struct mm_product last = mm_product_item(product, mm_product_count(product) - 1);
    const bool is_one = product->stack == NULL || plan.launch_stack != NULL;
    assert_int_equal(product->stack != NULL && is_one
                         ? plan.launch_stack(&plan, product, 0, product->stack->count, &lane, &error)
                         : plan.launch(&plan, is_one ? product : &last, &lane, &error),
                     MM_OK);
    assert_int_equal(seen.enqueued, 1);
    assert_int_equal(seen.reduced, seen.plan.schedule.sharers > 0);
    assert_int_equal(seen.loaded_reduce, seen.reduced); /* loaded before the job's time starts */
    assert_int_equal(seen.loaded_split, product->a.dtype == MM_INT32 ? 2 : 0);
    expect_shares(&seen.plan.schedule);
    expect_all_work(&seen.plan.schedule, is_one ? mm_product_count(product) : 1);
    size_t end = 0;
    if (seen.reduced > 0) { /* memory for the sums of clusters that share tiles, and of shared tiles */
        end = (size_t)((char *)seen.plan.sums - scratch);
        end += (size_t)(seen.plan.schedule.sharers + mm_shared_tiles(&seen.plan.schedule)) *
               seen.plan.cluster * seen.plan.rows * seen.plan.cols * mm_dtype_bytes(seen.sums);
    }
    for (unsigned index = 0; index < seen.copied; index++) {
        const struct mm_matrix *copy = &seen.copies[index];
        assert_true((char *)copy->data >= scratch + end);
        end = (size_t)((char *)copy->data - scratch) + copy->rows * copy->ld * mm_dtype_bytes(copy->dtype);
    }
    assert_true(end <= plan.workspace_bytes);
}

/* Returns a product for the kernels of wgmma and float64. Small products choose a tile, because otherwise
 * they would use another kernel. */
static struct mm_product product_of(enum mm_dtype dtype, size_t m, size_t k, size_t n, unsigned transposes) {
    struct mm_product product = {.transpose_a = transposes & 1, .transpose_b = transposes & 2};
    product.a = mm_matrix_dense(dtype, product.transpose_a ? k : m, product.transpose_a ? m : k, operands);
    product.b = mm_matrix_dense(dtype, product.transpose_b ? n : k, product.transpose_b ? k : n, operands);
    (void)mm_product_conform(MM_MATMUL, &product, NULL);
    product.c = mm_matrix_dense(mm_dtype_result(dtype), m, n, operands);
    product.tile = mm_cuda_tensor_is_small(&product) ? 32 : 0;
    return product;
}

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
        {512, 512, 512, 64, 128, 64},
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
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        const enum mm_dtype dtype = cases[index].dtype == MM_FLOAT64 ? MM_FLOAT64 : MM_BFLOAT16;
        struct mm_product product = product_of(dtype, cases[index].m, cases[index].k, cases[index].n, 2);
        product.tile = cases[index].tile;
        launch(&product);
        assert_int_equal(seen.plan.rows, cases[index].rows);
        assert_int_equal(seen.plan.cols, cases[index].wide);
        assert_int_equal(seen.plan.schedule.sharers > 0, cases[index].is_shared);
    }
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

static void other_kernels_compute_without_k_or_memory(void **state) {
    const struct mm_product empty = product_of(MM_INT8, 5, 0, 7, 0), full = product_of(MM_INT8, 5, 3, 7, 0);
    const struct mm_product long_int32 = product_of(MM_INT32, 1, MM_TENSOR_LIMBS_K_MAX + 1, 1, 0);
    struct mm_plan plan = {.device = &device.head};
    struct mm_error error;
    memset(&seen, 0, sizeof seen);
    assert_int_equal(mm_cuda_tensor(&long_int32, &plan, &error), MM_OK);
    assert_int_equal(seen.tiled, 1);
    seen.tiled = 0;
    assert_int_equal(mm_cuda_tensor(&empty, &plan, &error), MM_OK);
    assert_int_equal(seen.tiled, 1);
    plan = (struct mm_plan){.device = &device.head, .is_frugal = true};
    assert_int_equal(mm_cuda_tensor(&full, &plan, &error), MM_OK);
    assert_int_equal(seen.tiled, 2);
    /* The other kernel applies no epilogue, so a pass must follow it. */
    struct mm_product with_epilogue = product_of(MM_INT8, 16, 32, 12, 0);
    with_epilogue.epilogue = (struct mm_epilogue){.is_set = true, .activation = MM_ACTIVATION_RELU};
    plan = (struct mm_plan){.device = &device.head};
    assert_int_equal(mm_cuda_tensor(&with_epilogue, &plan, &error), MM_OK);
    assert_true(plan.finishes);
    plan = (struct mm_plan){.device = &device.head, .is_frugal = true};
    assert_int_equal(mm_cuda_tensor(&with_epilogue, &plan, &error), MM_OK);
    assert_false(plan.finishes);
    assert_int_equal(seen.tiled, 3);
    /* A product without padded copies must work even if there is no memory for partial sums. */
    const struct mm_product aligned = product_of(MM_FLOAT64, 256, 16384, 256, 0);
    plan = (struct mm_plan){.device = &device.head, .is_frugal = true};
    assert_int_equal(mm_cuda_tensor(&aligned, &plan, &error), MM_OK);
    assert_int_equal(seen.tiled, 3);
    assert_int_equal(plan.workspace_bytes, 0);
    plan = (struct mm_plan){.device = &device.head};
    assert_int_equal(mm_cuda_tensor(&aligned, &plan, &error), MM_OK);
    assert_int_not_equal(plan.workspace_bytes, 0);
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
          small_products_have_a_batch_kernel, stacks_have_their_memory, int32_is_split, copies_are_kept,
          copies_of_a_and_b_differ, other_kernels_compute_without_k_or_memory, blocks_share_multiprocessors,
          unaligned_operands_are_copied_by_threads, epilogues_that_kernels_lack_are_a_pass,
          a_tile_that_a_type_lacks_is_refused, too_many_tiles_are_refused)
