/* Implements fake_tensor.h. */
#include "fake_tensor.h"

#include "gpu/cuda/device_copy.h"
#include "gpu/cuda/variants/passes.h"

enum { MULTIPROCESSORS = 132 };

static const char kernels[9], plain_kernels[9];

#define KERNEL(index, rows, cols, cluster, resident)                                                         \
    { &kernels[index], rows, cols, 2 * (rows) + 128, cluster, resident, 1, &plain_kernels[index] }
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
            SIZE(index, 64, 128, 2, 1),                                                                      \
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

struct seen seen;

static bool is_one_of(const char *all, const struct mm_layout *layout) {
    const char *kernel = layout->kernel;
    return kernel >= all && kernel < all + sizeof kernels;
}

static const char reduces[MM_DTYPE_COUNT];

const void *mm_tensor_reduce_of(enum mm_dtype operand) {
    return &reduces[mm_dtype_sum(operand)];
}

static const char small_kernel;
const char small_batch_kernel;

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

_Alignas(256) char operands[1 << 12];
static _Alignas(256) char scratch[1 << 12]; /* never read or written */
bool is_kept;
uint64_t keys[2];

enum mm_status mm_cuda_tiled_16(const struct mm_product *product, struct mm_plan *plan,
                                struct mm_error *error) {
    seen.tiled++;
    return MM_OK;
}

enum mm_status mm_cuda_copy_operand(mm_plan_step *run, const struct mm_device *of,
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
    seen.loaded_full += is_one_of(kernels, layout);
    seen.loaded_plain += is_one_of(plain_kernels, layout);
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

enum mm_status mm_cuda_status(struct mm_cuda_device *failed, cudaError_t code, const char *doing,
                              struct mm_error *error) {
    return code == cudaSuccess ? MM_OK : mm_fail(error, MM_INTERNAL, "%s", doing);
}

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
    seen.is_plain = is_one_of(plain_kernels, layout);
    assert_true(seen.is_plain ? seen.loaded_plain : seen.loaded_full);
    seen.grid = grid;
    const unsigned resident = seen.sums != MM_FLOAT64 ? 1 : seen.plan.rows == 32 ? 3 : 128 / seen.plan.rows;
    assert_in_range(grid.x, 1, MULTIPROCESSORS * resident);
    assert_int_equal(grid.x, seen.plan.schedule.clusters * seen.plan.cluster);
    assert_int_equal(layout->threads_x, 2 * seen.plan.rows + 128);
    return MM_OK;
}

struct map read_map(const CUtensorMap *encoded) {
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

struct mm_cuda_device device = {.head.multiprocessors = MULTIPROCESSORS};

void launch(const struct mm_product *product) {
    struct mm_lane lane = {.device = &device, .scratch = scratch};
    struct mm_plan plan = {.device = &device.head};
    struct mm_error error;
    struct mm_product planned = *product;
    planned.c.data = NULL; /* C has no memory before its job begins */
    memset(&seen, 0, sizeof seen);
    seen.sums = mm_dtype_sum(product->a.dtype);
    assert_int_equal(mm_cuda_tensor(&planned, &plan, &error), MM_OK);
    assert_int_equal(plan.layout.block_rows, 0); /* 0 means that C is not divided into bands of rows */
    assert_int_equal(plan.prepare(&plan, &planned, &lane, &error), MM_OK);
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

struct mm_product product_of(enum mm_dtype dtype, size_t m, size_t k, size_t n, unsigned transposes) {
    struct mm_product product = {.transpose_a = transposes & 1, .transpose_b = transposes & 2};
    product.a = mm_matrix_dense(dtype, product.transpose_a ? k : m, product.transpose_a ? m : k, operands);
    product.b = mm_matrix_dense(dtype, product.transpose_b ? n : k, product.transpose_b ? k : n, operands);
    (void)mm_product_conform(MM_MATMUL, &product, NULL);
    product.c = mm_matrix_dense(mm_dtype_result(dtype), m, n, operands);
    product.tile = mm_cuda_tensor_is_small(&product) ? 32 : 0;
    return product;
}
