/* simt: our fastest float32 product without tensor cores, for any shape. The function `choose` picks the
 * shape of the blocks by an estimate of the time:
 *
 * - Large products use blocks of 64×128 or 128×256 elements of C.
 * - If C has too few blocks for all multiprocessors, k is split (split-K). Each block adds up one part of k
 *   and stores partial sums in a workspace. A second kernel adds the partial sums.
 * - If C is narrow, blocks are narrow.
 * - If an operand has at most four rows or columns, simt_vectors.cuh has the kernel.
 *
 * simt.cuh has the kernel for the other products. Measured on an H200: 1024³ takes 0.0577 ms and 4096³ takes
 * 2.83 ms, which is 112% and 95% of the speed of cuBLAS. */
#include "gpu/cuda/variants/simt.h"

#include "gpu/device/backend.h"
#include "gpu/cuda/variants/simt.cuh"
#include "gpu/cuda/variants/simt_vectors.cuh"
#include "gpu/cuda/variants.h"

namespace {

constexpr unsigned SUM_THREADS = 128;
constexpr unsigned SPLITS_MAX = 64;
constexpr unsigned BATCH_SPLITS_MAX = 8; /* splits of k in a batch, where one block computes all splits */
constexpr unsigned BATCH_SUMS_MAX = 64;  /* sums of a thread in a batch */
constexpr size_t SPLIT_ELEMENTS_MAX = size_t(1) << 26; /* elements of C if k is split */

/* Arguments of the kernel that adds partial sums. Split s has rows s·m to (s+1)·m - 1 of the workspace. */
struct sum_params {
    struct mm_product product;
    struct mm_matrix workspace;
    unsigned splits;
    const unsigned *run_flag;
};

/* Adds the partial sums of a quad (quad.cuh). The order is fixed, so equal products have identical bits. */
__global__ void __launch_bounds__(SUM_THREADS) simt_sum(const __grid_constant__ struct sum_params params) {
    const unsigned quads = static_cast<unsigned>(params.workspace.ld) / MM_QUAD; /* quads of a row */
    const unsigned index = blockIdx.x * SUM_THREADS + threadIdx.x;
    const unsigned row = index / quads;
    const unsigned col = index % quads * MM_QUAD;
    mm_trigger_dependent_launch();
    mm_wait_for_kernel_before();
    if (!mm_simt_should_run(params.run_flag) || row >= params.product.m)
        return;
    const float *from = static_cast<const float *>(params.workspace.data) + row * params.workspace.ld + col;
    float sums[MM_QUAD] = {};
#pragma unroll 8
    for (unsigned split = 0; split < params.splits; split++) {
        float next[MM_QUAD];
        mm_read_quad(next, from + split * params.product.m * params.workspace.ld);
#pragma unroll
        for (unsigned i = 0; i < MM_QUAD; i++)
            sums[i] += next[i];
    }
    if (params.product.epilogue.is_set)
        mm_cuda_finish_sums<true>(
            mm_product_terms(&params.product), params.product.m, params.product.n, sums,
            [=](unsigned) { return row; }, [=](unsigned i) { return col + i; });
    mm_store_quad(params.product, mm_is_wide(params.product.c), row, col, sums);
}

struct tile {
    struct mm_simt_shape shape;
    unsigned threads;
    void (*kernels[2][2])(struct mm_simt_params);      /* indexed by transpose_a, transpose_b */
    void (*batch_kernels[2][2])(struct mm_cuda_items); /* nullptr if the tile has no batch kernels */
    unsigned batch_splits_max;
    unsigned shared_bytes[2][2];
};

/* Returns nullptr for large tiles, because a batch has only small products. */
template <class TILE, bool TRANSPOSE_A, bool TRANSPOSE_B>
constexpr void (*batch_kernel_of())(struct mm_cuda_items) {
    if constexpr (TILE::THREAD_ROWS * TILE::THREAD_COLS <= BATCH_SUMS_MAX)
        return mm_simt_each<TILE, TRANSPOSE_A, TRANSPOSE_B>;
    else
        return nullptr;
}

template <class TILE, bool TRANSPOSE_A, bool TRANSPOSE_B> constexpr void add_kernels(struct tile *tile) {
    tile->kernels[TRANSPOSE_A][TRANSPOSE_B] = mm_simt_tiles<TILE, TRANSPOSE_A, TRANSPOSE_B>;
    tile->batch_kernels[TRANSPOSE_A][TRANSPOSE_B] = batch_kernel_of<TILE, TRANSPOSE_A, TRANSPOSE_B>();
    tile->shared_bytes[TRANSPOSE_A][TRANSPOSE_B] =
        TILE::STAGES * MM_SIMT_STAGE_WORDS<TILE, TRANSPOSE_A, TRANSPOSE_B> * 4;
}

template <class TILE> constexpr struct tile tile_of() {
    struct tile tile = {};
    tile.shape = TILE::SHAPE;
    tile.threads = TILE::THREADS;
    tile.batch_splits_max = MM_SIMT_ADDS_SPLITS<TILE> ? BATCH_SPLITS_MAX : 1;
    add_kernels<TILE, false, false>(&tile);
    add_kernels<TILE, false, true>(&tile);
    add_kernels<TILE, true, false>(&tile);
    add_kernels<TILE, true, true>(&tile);
    return tile;
}

constexpr struct tile tiles[] = {
    tile_of<mm_simt_tile<0>>(), tile_of<mm_simt_tile<1>>(), tile_of<mm_simt_tile<2>>(),
    tile_of<mm_simt_tile<3>>(), tile_of<mm_simt_tile<4>>(), tile_of<mm_simt_tile<5>>(),
};
static_assert(sizeof tiles / sizeof tiles[0] == sizeof mm_simt_shapes / sizeof mm_simt_shapes[0],
              "each shape is a tile");

struct choice {
    const struct tile *tile; /* nullptr if a kernel of simt_vectors.cuh computes the product */
    unsigned split_depth;
    unsigned splits;
};

constexpr float WAVE_OVERHEAD = 2000.0f; /* cycles before and after a block's multiplications */
constexpr float LAUNCH = 4000.0f;        /* cycles to launch the second kernel of split-K */

/* Estimates the cycles of a product. Reduces *splits until no split is empty, and sets *split_depth to the
 * elements of k in a split. A multiprocessor runs `resident` blocks at a time, which are called a wave. Each
 * wave has a fixed overhead, and the last wave may have fewer blocks. Split-K adds a launch, and stores and
 * loads of partial sums. The constants are those of an H200, but the choice depends only on their
 * proportions. */
float cycles_of(const struct tile *tile, const struct mm_product *product, unsigned multiprocessors,
                unsigned *splits, unsigned *split_depth) {
    constexpr float L2_ELEMENTS_PER_CYCLE = 4.0f; /* loads and stores per multiprocessor */
    constexpr float FMAS_PER_CYCLE = 128.0f;      /* multiply-adds per multiprocessor */
    const size_t slabs = mm_size_divide_up(product->k, tile->shape.depth);
    *split_depth = static_cast<unsigned>(mm_size_divide_up(slabs, *splits) * tile->shape.depth);
    *splits = *split_depth == 0 ? 1 : static_cast<unsigned>(mm_size_divide_up(product->k, *split_depth));
    const size_t blocks = mm_size_divide_up(product->m, tile->shape.rows) *
                          mm_size_divide_up(product->n, tile->shape.cols) * *splits *
                          mm_product_count(product);
    const size_t blocks_per_multiprocessor = mm_size_divide_up(blocks, multiprocessors);
    const float block = static_cast<float>(tile->shape.rows * tile->shape.cols) *
                        static_cast<float>(*split_depth) / FMAS_PER_CYCLE;
    const float rest = static_cast<float>(blocks_per_multiprocessor % tile->shape.resident);
    float cycles = static_cast<float>(blocks_per_multiprocessor / tile->shape.resident) *
                   (block * static_cast<float>(tile->shape.resident) / tile->shape.rate + WAVE_OVERHEAD);
    if (rest > 0.0f)
        cycles += rest * block / fminf(tile->shape.rate, rest * tile->shape.rate_alone) + WAVE_OVERHEAD;
    if (*splits > 1)
        cycles += LAUNCH + static_cast<float>(2 * *splits + 1) * static_cast<float>(product->m * product->n) /
                               (L2_ELEMENTS_PER_CYCLE * static_cast<float>(multiprocessors));
    return cycles;
}

/* Returns the tile and the number of splits with the fewest estimated cycles. */
struct choice choose(const struct mm_product *product, unsigned multiprocessors, size_t shared_bytes_max) {
    static const unsigned counts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, SPLITS_MAX};
    struct choice best = {};
    float least = INFINITY;
    for (const struct tile &tile : tiles) {
        if (&tile != tiles &&
            tile.shared_bytes[product->transpose_a][product->transpose_b] > shared_bytes_max)
            continue;
        if (product->stack != nullptr && tile.batch_kernels[0][0] == nullptr)
            continue;
        for (const unsigned count : counts) {
            unsigned splits = count;
            unsigned split_depth;
            /* Stop if further splits would be empty or slower. A stack has enough blocks without splits. */
            if (count > 1 && ((count - 1) * tile.shape.depth >= product->k || product->stack != nullptr ||
                              least <= LAUNCH + WAVE_OVERHEAD))
                break;
            const float cycles = cycles_of(&tile, product, multiprocessors, &splits, &split_depth);
            if (cycles >= least || (splits > 1 && product->m * product->n > SPLIT_ELEMENTS_MAX))
                continue;
            least = cycles;
            best = {&tile, split_depth, splits};
        }
    }
    return best;
}

/* Returns whether the vectors (simt_vectors.cuh) are columns of op(B). If not, they are rows of op(A). */
bool vectors_are_columns(const struct mm_product *product) {
    return product->n <= MM_SIMT_VECTORS_MAX && product->n <= product->m;
}

bool is_k_contiguous(const struct mm_product *product) {
    return vectors_are_columns(product) ? !product->transpose_a : product->transpose_b;
}

/* Returns whether simt_vectors.cuh computes the product. If k is contiguous in memory, a warp computes a dot
 * product at a time. If k is short too, most of the warp would be idle, so tiles compute the product. */
bool has_few_vectors(const struct mm_product *product) {
    constexpr size_t CONTIGUOUS_MIN = 128;
    const bool few = vectors_are_columns(product) || product->m <= MM_SIMT_VECTORS_MAX;
    return few && (product->k >= CONTIGUOUS_MIN || !is_k_contiguous(product));
}

unsigned line_blocks_of(const struct mm_product *product) {
    const size_t lines = vectors_are_columns(product) ? product->m : product->n;
    return static_cast<unsigned>(mm_size_divide_up(lines, is_k_contiguous(product) ? MM_SIMT_CONTIGUOUS_LINES
                                                                                   : MM_SIMT_STRIDED_LINES));
}

/* Splits k for about four blocks per multiprocessor, but at most one split for each MM_SIMT_CHUNK of k. */
struct choice choose_for_vectors(const struct mm_product *product, unsigned multiprocessors) {
    const size_t chunks = mm_size_divide_up(product->k, MM_SIMT_CHUNK);
    const unsigned blocks = line_blocks_of(product);
    const size_t wanted_splits = blocks == 0 ? 1 : 4 * static_cast<size_t>(multiprocessors) / blocks;
    size_t splits = wanted_splits < chunks ? wanted_splits : chunks;
    if (splits > SPLITS_MAX)
        splits = SPLITS_MAX;
    if (splits <= 1 || product->m * product->n > SPLIT_ELEMENTS_MAX)
        return {nullptr, static_cast<unsigned>(product->k), 1};
    const size_t split_depth = mm_size_round_up(mm_size_divide_up(product->k, splits), MM_QUAD);
    return {nullptr, static_cast<unsigned>(split_depth),
            static_cast<unsigned>(mm_size_divide_up(product->k, split_depth))};
}

struct choice choice_of(const struct mm_product *product, const struct mm_device *device) {
    const unsigned multiprocessors = device->multiprocessors > 0 ? device->multiprocessors : 1;
    return has_few_vectors(product) && product->stack == nullptr
               ? choose_for_vectors(product, multiprocessors)
               : choose(product, multiprocessors, device->shared_bytes_per_block_max);
}

/* Returns the workspace for partial sums as a matrix with m rows for each split. */
struct mm_matrix workspace_of(const struct mm_plan *plan, const struct mm_product *product, void *memory) {
    struct mm_matrix workspace = product->c;
    workspace.data = memory;
    workspace.rows = plan->splits * product->m;
    workspace.ld = mm_size_round_up(product->n, MM_QUAD);
    return workspace;
}

struct mm_layout layout_of_vectors(const struct choice *choice, const struct mm_product *product) {
    typedef void (*vector_kernel)(struct mm_simt_vector_params);
    static const vector_kernel kernels[2][2] = {
        {mm_simt_vector_kernel<1, false>, mm_simt_vector_kernel<1, true>},
        {mm_simt_vector_kernel<MM_SIMT_VECTORS_MAX, false>,
         mm_simt_vector_kernel<MM_SIMT_VECTORS_MAX, true>}};
    const bool is_one = product->m == 1 || product->n == 1;
    struct mm_layout layout = {};
    layout.kernel = reinterpret_cast<const void *>(kernels[!is_one][is_k_contiguous(product)]);
    layout.threads_x = MM_SIMT_VECTOR_THREADS;
    layout.threads_y = 1;
    layout.split_depth = choice->split_depth;
    return layout;
}

struct mm_layout layout_of_tiles(const struct choice *choice, const struct mm_product *product) {
    const struct tile *tile = choice->tile;
    struct mm_layout layout = {};
    layout.kernel = reinterpret_cast<const void *>(tile->kernels[product->transpose_a][product->transpose_b]);
    if (choice->splits <= tile->batch_splits_max)
        layout.batch_kernel =
            reinterpret_cast<const void *>(tile->batch_kernels[product->transpose_a][product->transpose_b]);
    layout.block_rows = tile->shape.rows;
    layout.block_cols = tile->shape.cols;
    layout.threads_x = tile->threads;
    layout.threads_y = 1;
    layout.split_depth = choice->split_depth;
    layout.dynamic_shared_bytes = tile->shared_bytes[product->transpose_a][product->transpose_b];
    return layout;
}

/* A plan with a kernel of simt_vectors.cuh has no block shape. */
bool uses_vector_kernel(const struct mm_plan *plan) {
    return plan->layout.block_rows == 0;
}

struct mm_simt_vector_params vector_params_of(const struct mm_plan *plan, const struct mm_product *product,
                                              const unsigned *run_flag) {
    const bool are_columns = vectors_are_columns(product);
    const struct mm_matrix *vectors = are_columns ? &product->b : &product->a;
    const bool vectors_are_k_contiguous = are_columns ? product->transpose_b : !product->transpose_a;
    struct mm_simt_vector_params params = {};
    params.product = *product;
    params.are_columns = are_columns;
    params.matrix = are_columns ? product->a : product->b;
    params.lines = static_cast<unsigned>(are_columns ? product->m : product->n);
    params.k = static_cast<unsigned>(product->k);
    params.vectors = static_cast<const float *>(vectors->data);
    params.vector_stride = vectors_are_k_contiguous ? vectors->ld : 1;
    params.depth_stride = vectors_are_k_contiguous ? 1 : vectors->ld;
    params.count = static_cast<unsigned>(are_columns ? product->n : product->m);
    params.split_depth = plan->layout.split_depth;
    params.run_flag = run_flag;
    return params;
}

enum mm_status enqueue_main(const struct mm_plan *plan, const struct mm_product *product,
                            struct mm_lane *lane, const unsigned *run_flag, struct mm_error *error) {
    struct mm_layout layout = plan->layout;
    /* If there is a flag, an earlier kernel of the plan sets it, and this kernel follows that kernel.
     * Otherwise this kernel comes first. */
    layout.follows = run_flag != nullptr && mm_kernels_wait();
    if (uses_vector_kernel(plan)) {
        struct mm_simt_vector_params params = vector_params_of(plan, product, run_flag);
        void *arguments[] = {&params};
        return mm_cuda_enqueue(&layout, dim3(line_blocks_of(product), plan->splits), arguments, lane, error);
    }
    struct mm_simt_params params = {*product, layout.split_depth, run_flag};
    void *arguments[] = {&params};
    const size_t blocks =
        mm_size_divide_up(product->m, layout.block_rows) * mm_size_divide_up(product->n, layout.block_cols);
    return mm_cuda_enqueue(&layout, dim3(static_cast<unsigned>(blocks), plan->splits), arguments, lane,
                           error);
}

struct mm_layout sum_layout() {
    struct mm_layout layout = {};
    layout.kernel = reinterpret_cast<const void *>(simt_sum);
    layout.follows = mm_kernels_wait();
    layout.threads_x = SUM_THREADS;
    layout.threads_y = 1;
    return layout;
}

enum mm_status enqueue_sum(const struct mm_plan *plan, const struct mm_product *product,
                           const struct mm_matrix *workspace, struct mm_lane *lane, const unsigned *run_flag,
                           struct mm_error *error) {
    const struct mm_layout layout = sum_layout();
    struct sum_params params = {*product, *workspace, plan->splits, run_flag};
    void *arguments[] = {&params};
    const size_t quads = product->m * (workspace->ld / MM_QUAD);
    return mm_cuda_enqueue(&layout, dim3(static_cast<unsigned>(mm_size_divide_up(quads, SUM_THREADS))),
                           arguments, lane, error);
}

enum mm_status launch(const struct mm_plan *plan, const struct mm_product *product, struct mm_lane *lane,
                      struct mm_error *error) {
    return mm_cuda_simt_enqueue(plan, product, lane, lane->scratch, nullptr, error);
}

} // namespace

enum mm_status mm_cuda_simt_prepare(const struct mm_plan *plan, const struct mm_product *product,
                                    struct mm_lane *lane, struct mm_error *error) {
    const struct mm_layout sum = sum_layout();
    (void)product;
    const enum mm_status status = mm_cuda_load(&plan->layout, lane, error);
    return status == MM_OK && plan->splits > 1 ? mm_cuda_load(&sum, lane, error) : status;
}

enum mm_status mm_cuda_simt_enqueue(const struct mm_plan *plan, const struct mm_product *product,
                                    struct mm_lane *lane, void *workspace, const unsigned *run_flag,
                                    struct mm_error *error) {
    if (plan->splits == 1)
        return enqueue_main(plan, product, lane, run_flag, error);
    struct mm_product splits = *product;
    splits.c = workspace_of(plan, product, workspace);
    splits.epilogue.is_set = false; /* simt_sum applies it */
    const enum mm_status status = enqueue_main(plan, &splits, lane, run_flag, error);
    return status == MM_OK ? enqueue_sum(plan, product, &splits.c, lane, run_flag, error) : status;
}

enum mm_status mm_cuda_simt(const struct mm_product *product, struct mm_plan *plan, struct mm_error *) {
    const struct mm_product whole = mm_product_whole(product);
    const struct choice choice = choice_of(&whole, plan->device);
    plan->launch = launch;
    plan->finishes = product->stack == nullptr;
    plan->prepare = mm_cuda_simt_prepare;
    plan->splits = choice.splits;
    plan->layout =
        choice.tile == nullptr ? layout_of_vectors(&choice, product) : layout_of_tiles(&choice, product);
    plan->cuts.rows = plan->layout.block_rows; /* 0 for the kernel for vectors */
    plan->cuts.cols = plan->layout.block_cols;
    if (choice.splits > 1) {
        const struct mm_matrix workspace = workspace_of(plan, product, nullptr);
        plan->workspace_bytes = workspace.rows * workspace.ld * sizeof(float);
    }
    return MM_OK;
}
