/* simt: what float32 can do without tensor cores, for a product of any shape. `warp_tiled` has one shape of
 * block, 128×128 of C by all of k; here it is chosen by the product (choose, below):
 *
 * - Large products take blocks of 64×128, three a multiprocessor, whose waits overlap; or of 128×256, of
 * which a thread owns 8×16: a quarter fewer reads of shared memory for as many multiplications.
 * - Where C has too few blocks to fill the chip, blocks are smaller; and k is cut into parts, whose sums go
 * to scratch memory, and are added up by a second kernel in their order. No result depends on which block was
 * first, so that the same product has the same bits each time.
 * - Where C is narrow, so are the blocks.
 * - Vectors go another way (simt_vectors.cuh).
 *
 * Against `warp_tiled` the kernel itself has two or three slabs under way; a slab of A that lies along rows
 * is kept so, to be moved by copies of 16 bytes, and its elements are read four depths at a time; and the
 * edges of the matrices are looked after only by blocks that lie at one (simt.cuh).
 *
 * It costs up to 248 registers a thread and 73 KiB of shared memory a block; and where k is cut, scratch
 * memory of C's size for each part, and the time to write and read it. */
#include "gpu/cuda/simt.h"

#include "gpu/backend.h"
#include "gpu/cuda/simt.cuh"
#include "gpu/cuda/simt_vectors.cuh"
#include "gpu/cuda/variants.h"

namespace {

constexpr unsigned SUM_THREADS = 128;
constexpr unsigned PARTS_MAX = 64;
constexpr unsigned BATCH_PARTS_MAX = 8;               /* one block does them all, one after the other */
constexpr size_t PART_ELEMENTS_MAX = size_t(1) << 26; /* of C, where k is cut */

/* C from the parts' sums, which lie under one another in `parts`. */
struct sum_work {
    struct mm_matrix c;
    struct mm_matrix parts;
    unsigned count;
    const unsigned *wanted;
};

/* A quad of C a thread. The parts are added up in their order. */
__global__ void __launch_bounds__(SUM_THREADS) simt_sum(const __grid_constant__ struct sum_work work) {
    const unsigned quads = static_cast<unsigned>(work.parts.ld) / MM_QUAD; /* of a row */
    const unsigned index = blockIdx.x * SUM_THREADS + threadIdx.x;
    const unsigned row = index / quads;
    const unsigned col = index % quads * MM_QUAD;
    mm_let_kernel_behind_begin();
    mm_wait_for_kernel_before();
    if (!mm_simt_is_wanted(work.wanted) || row >= work.c.rows)
        return;
    const float *from = static_cast<const float *>(work.parts.data) + row * work.parts.ld + col;
    float sums[MM_QUAD] = {};
#pragma unroll 8
    for (unsigned part = 0; part < work.count; part++) {
        float more[MM_QUAD];
        mm_read_quad(more, from + part * work.c.rows * work.parts.ld);
#pragma unroll
        for (unsigned i = 0; i < MM_QUAD; i++)
            sums[i] += more[i];
    }
    mm_store_quad(work.c, mm_is_wide(work.c), row, col, sums);
}

/* A tile as the host sees it. */
struct tile {
    void (*kernels[2][2])(struct mm_simt_work);
    void (*batch_kernels[2][2])(struct mm_cuda_items); /* null: there are none */
    unsigned shared_bytes[2][2];
    unsigned rows;
    unsigned cols;
    unsigned depth;
    unsigned threads;
    unsigned resident;
    /* The part of a multiprocessor's multiplications that its blocks do when it holds as many as it can, and
     * that one alone does: measured on an H200 (tests/kernels/tiles). */
    float rate;
    float alone;
};

/* Products that are small enough to go together take small tiles; the others have no registers for another
 * set of sums. */
template <class TILE, bool TRANSPOSE_A, bool TRANSPOSE_B>
constexpr void (*batch_kernel_of())(struct mm_cuda_items) {
    if constexpr (TILE::EACH_ROWS * TILE::EACH_COLS <= 32)
        return mm_simt_each<TILE, TRANSPOSE_A, TRANSPOSE_B>;
    else
        return nullptr;
}

template <class TILE> constexpr struct tile tile_of(float rate, float alone) {
    return {{{mm_simt_tiles<TILE, false, false>, mm_simt_tiles<TILE, false, true>},
             {mm_simt_tiles<TILE, true, false>, mm_simt_tiles<TILE, true, true>}},
            {{batch_kernel_of<TILE, false, false>(), batch_kernel_of<TILE, false, true>()},
             {batch_kernel_of<TILE, true, false>(), batch_kernel_of<TILE, true, true>()}},
            {{TILE::STAGES * MM_SIMT_STAGE<TILE, false, false> * 4,
              TILE::STAGES * MM_SIMT_STAGE<TILE, false, true> * 4},
             {TILE::STAGES * MM_SIMT_STAGE<TILE, true, false> * 4,
              TILE::STAGES * MM_SIMT_STAGE<TILE, true, true> * 4}},
            TILE::ROWS,
            TILE::COLS,
            TILE::DEPTH,
            TILE::THREADS,
            TILE::RESIDENT,
            rate,
            alone};
}

/* The tiles that there are, the most modest in shared memory first: it fits every device. */
constexpr struct tile tiles[] = {
    tile_of<mm_simt_tile<32, 32, 32, 4, 4, 8, 3, 8, true>>(0.584f, 0.242f),
    tile_of<mm_simt_tile<64, 64, 32, 4, 8, 8, 3, 3, true>>(0.656f, 0.540f),
    tile_of<mm_simt_tile<16, 128, 32, 4, 4, 4, 4, 3, true>>(0.594f, 0.446f),
    tile_of<mm_simt_tile<256, 16, 16, 8, 4, 8, 3, 3, true>>(0.479f, 0.249f),
    tile_of<mm_simt_tile<64, 128, 16, 8, 8, 8, 3, 3, false>>(0.732f, 0.621f),
    tile_of<mm_simt_tile<128, 256, 16, 8, 16, 4, 3, 1, false>>(0.727f, 0.726f),
};

/* How a product is computed. */
struct plan {
    const struct tile *tile; /* NULL: by lines and vectors */
    unsigned part_depth;
    unsigned parts;
};

size_t divide_up(size_t whole, size_t by) {
    return (whole + by - 1) / by;
}

/* About as many cycles as a product takes in `parts`, which is made to count those that are not empty. A
 * multiprocessor has so many rounds of as many blocks as it holds, and then the rest, which may be too few to
 * keep it busy; a round has its start and its end; and parts have to be written, read and added up, after
 * another launch. The figures are of an H200, but only what lies between them matters. */
float cycles_of(const struct tile *tile, const struct mm_product *product, unsigned multiprocessors,
                unsigned *parts, unsigned *part_depth) {
    constexpr float ROUND = 2000.0f;   /* cycles before and after a block's multiplications */
    constexpr float LAUNCH = 4000.0f;  /* cycles of a second kernel */
    constexpr float EACH_CYCLE = 4.0f; /* elements that a multiprocessor writes or reads of the L2 cache */
    constexpr float LANES = 128.0f;    /* of a multiprocessor: multiplications a cycle */
    const size_t slabs = divide_up(product->k, tile->depth);
    *part_depth = static_cast<unsigned>(divide_up(slabs, *parts) * tile->depth);
    *parts = *part_depth == 0 ? 1 : static_cast<unsigned>(divide_up(product->k, *part_depth));
    const size_t blocks = divide_up(product->m, tile->rows) * divide_up(product->n, tile->cols) * *parts;
    const size_t each = divide_up(blocks, multiprocessors);
    const float block = static_cast<float>(tile->rows * tile->cols) * static_cast<float>(*part_depth) / LANES;
    const float rest = static_cast<float>(each % tile->resident);
    float cycles = static_cast<float>(each / tile->resident) *
                   (block * static_cast<float>(tile->resident) / tile->rate + ROUND);
    if (rest > 0.0f)
        cycles += rest * block / fminf(tile->rate, rest * tile->alone) + ROUND;
    if (*parts > 1)
        cycles += LAUNCH + static_cast<float>(2 * *parts + 1) * static_cast<float>(product->m * product->n) /
                               (EACH_CYCLE * static_cast<float>(multiprocessors));
    return cycles;
}

/* The tile and the number of parts that should take the fewest cycles. */
struct plan choose(const struct mm_product *product, unsigned multiprocessors, size_t shared_bytes_max) {
    static const unsigned counts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, PARTS_MAX};
    struct plan best = {};
    float least = INFINITY;
    for (const struct tile &tile : tiles) {
        if (&tile != tiles &&
            tile.shared_bytes[product->transpose_a][product->transpose_b] > shared_bytes_max)
            continue;
        for (const unsigned count : counts) {
            unsigned parts = count;
            unsigned part_depth;
            if (count > 1 && (count - 1) * tile.depth >= product->k)
                break; /* more parts than slabs */
            const float cycles = cycles_of(&tile, product, multiprocessors, &parts, &part_depth);
            if (cycles >= least || (parts > 1 && product->m * product->n > PART_ELEMENTS_MAX))
                continue;
            least = cycles;
            best = {&tile, part_depth, parts};
        }
    }
    return best;
}

/* How a product with a few vectors is seen as lines of a matrix. */
bool is_of_columns(const struct mm_product *product) {
    return product->n <= MM_SIMT_VECTORS_MAX && product->n <= product->m;
}

bool lies_along(const struct mm_product *product) {
    return is_of_columns(product) ? !product->transpose_a : product->transpose_b;
}

/* A warp that goes along a line needs some of k for each of its threads. */
bool is_of_vectors(const struct mm_product *product) {
    constexpr size_t ALONG_MIN = 128;
    const bool few = is_of_columns(product) || product->m <= MM_SIMT_VECTORS_MAX;
    return few && (product->k >= ALONG_MIN || !lies_along(product));
}

unsigned line_blocks_of(const struct mm_product *product) {
    const size_t lines = is_of_columns(product) ? product->m : product->n;
    return static_cast<unsigned>(
        divide_up(lines, lies_along(product) ? MM_SIMT_ALONG_LINES : MM_SIMT_ACROSS_LINES));
}

/* As many parts as give each multiprocessor four blocks, with a chunk of k each at least. */
struct plan plan_lines(const struct mm_product *product, unsigned multiprocessors) {
    const size_t chunks = divide_up(product->k, MM_SIMT_CHUNK);
    const unsigned blocks = line_blocks_of(product);
    const size_t wished = blocks == 0 ? 1 : 4 * static_cast<size_t>(multiprocessors) / blocks;
    size_t parts = wished < chunks ? wished : chunks;
    if (parts > PARTS_MAX)
        parts = PARTS_MAX;
    if (parts <= 1 || product->m * product->n > PART_ELEMENTS_MAX)
        return {nullptr, static_cast<unsigned>(product->k), 1};
    const size_t part_depth = divide_up(divide_up(product->k, parts), MM_QUAD) * MM_QUAD;
    return {nullptr, static_cast<unsigned>(part_depth),
            static_cast<unsigned>(divide_up(product->k, part_depth))};
}

/* All that a plan depends on. */
struct question {
    size_t m;
    size_t n;
    size_t k;
    size_t shared_bytes_max;
    unsigned multiprocessors;
    bool transpose_a;
    bool transpose_b;
};

bool is_same(const struct question *a, const struct question *b) {
    return a->m == b->m && a->n == b->n && a->k == b->k && a->shared_bytes_max == b->shared_bytes_max &&
           a->multiprocessors == b->multiprocessors && a->transpose_a == b->transpose_a &&
           a->transpose_b == b->transpose_b;
}

/* A job is planned several times on its way, and many have the shape of the one before: the thread's last
 * answer is kept. */
struct plan plan_of(const struct mm_product *product, const struct mm_lane *lane) {
    static thread_local struct question last = {};
    static thread_local struct plan answer = {};
    const struct mm_device *device = mm_cuda_device_of(lane);
    const struct question asked = {product->m,
                                   product->n,
                                   product->k,
                                   device->shared_bytes_per_block_max,
                                   device->multiprocessors > 0 ? device->multiprocessors : 1,
                                   product->transpose_a,
                                   product->transpose_b};
    if (is_same(&asked, &last))
        return answer;
    answer = is_of_vectors(product) ? plan_lines(product, asked.multiprocessors)
                                    : choose(product, asked.multiprocessors, asked.shared_bytes_max);
    last = asked;
    return answer;
}

/* Scratch memory for the parts' sums: m rows each, which begin at multiples of 16 bytes. */
struct mm_matrix parts_of(const struct plan *plan, const struct mm_product *product, void *scratch) {
    struct mm_matrix parts = product->c;
    parts.data = scratch;
    parts.rows = plan->parts * product->m;
    parts.ld = divide_up(product->n, MM_QUAD) * MM_QUAD;
    return parts;
}

struct mm_cuda_layout layout_of(const struct plan *plan, const struct mm_product *product) {
    typedef void (*line_kernel)(struct mm_simt_lines);
    static const line_kernel line_kernels[2][2] = {
        {mm_simt_by_lines<1, false>, mm_simt_by_lines<1, true>},
        {mm_simt_by_lines<MM_SIMT_VECTORS_MAX, false>, mm_simt_by_lines<MM_SIMT_VECTORS_MAX, true>}};
    struct mm_cuda_layout layout = {};
    layout.threads_y = 1;
    if (plan->parts > 1) {
        const struct mm_matrix parts = parts_of(plan, product, nullptr);
        layout.scratch_bytes = parts.rows * parts.ld * sizeof(float);
    }
    if (plan->tile == nullptr) {
        const bool is_one = product->m == 1 || product->n == 1;
        layout.kernel = reinterpret_cast<const void *>(line_kernels[!is_one][lies_along(product)]);
        layout.threads_x = MM_SIMT_VECTOR_THREADS;
        return layout;
    }
    layout.kernel =
        reinterpret_cast<const void *>(plan->tile->kernels[product->transpose_a][product->transpose_b]);
    if (plan->parts <= BATCH_PARTS_MAX)
        layout.batch_kernel = reinterpret_cast<const void *>(
            plan->tile->batch_kernels[product->transpose_a][product->transpose_b]);
    layout.part_depth = plan->part_depth;
    layout.block_rows = plan->tile->rows;
    layout.block_cols = plan->tile->cols;
    layout.threads_x = plan->tile->threads;
    layout.dynamic_shared_bytes = plan->tile->shared_bytes[product->transpose_a][product->transpose_b];
    return layout;
}

struct mm_simt_lines lines_of(const struct plan *plan, const struct mm_product *product,
                              const struct mm_matrix *to, const unsigned *wanted) {
    const bool of_columns = is_of_columns(product);
    const struct mm_matrix *vectors = of_columns ? &product->b : &product->a;
    const bool vectors_lie_along = of_columns ? product->transpose_b : !product->transpose_a;
    struct mm_simt_lines lines = {};
    lines.matrix = of_columns ? product->a : product->b;
    lines.lines = static_cast<unsigned>(of_columns ? product->m : product->n);
    lines.k = static_cast<unsigned>(product->k);
    lines.vectors = static_cast<const float *>(vectors->data);
    lines.vector_stride = vectors_lie_along ? vectors->ld : 1;
    lines.depth_stride = vectors_lie_along ? 1 : vectors->ld;
    lines.count = static_cast<unsigned>(of_columns ? product->n : product->m);
    lines.part_depth = plan->part_depth;
    lines.to = static_cast<float *>(to->data);
    lines.to_vector = of_columns ? 1 : to->ld;
    lines.to_line = of_columns ? to->ld : 1;
    lines.to_part = product->m * to->ld;
    lines.wanted = wanted;
    return lines;
}

enum mm_status enqueue_main(const struct plan *plan, const struct mm_product *product,
                            const struct mm_matrix *to, struct mm_lane *lane, const unsigned *wanted,
                            struct mm_error *error) {
    struct mm_cuda_layout layout = layout_of(plan, product);
    layout.follows = wanted != nullptr && mm_kernels_wait(); /* without a question it is the first */
    if (plan->tile == nullptr) {
        struct mm_simt_lines lines = lines_of(plan, product, to, wanted);
        void *arguments[] = {&lines};
        return mm_cuda_enqueue(&layout, dim3(line_blocks_of(product), plan->parts), arguments, lane, error);
    }
    struct mm_simt_work work = {*product, *to, plan->part_depth, wanted};
    void *arguments[] = {&work};
    const size_t blocks = divide_up(product->m, plan->tile->rows) * divide_up(product->n, plan->tile->cols);
    return mm_cuda_enqueue(&layout, dim3(static_cast<unsigned>(blocks), plan->parts), arguments, lane, error);
}

enum mm_status enqueue_sum(const struct plan *plan, const struct mm_product *product,
                           const struct mm_matrix *parts, struct mm_lane *lane, const unsigned *wanted,
                           struct mm_error *error) {
    struct mm_cuda_layout layout = {};
    struct sum_work work = {product->c, *parts, plan->parts, wanted};
    void *arguments[] = {&work};
    layout.kernel = reinterpret_cast<const void *>(simt_sum);
    layout.follows = mm_kernels_wait();
    layout.threads_x = SUM_THREADS;
    layout.threads_y = 1;
    const size_t quads = product->m * (parts->ld / MM_QUAD);
    return mm_cuda_enqueue(&layout, dim3(static_cast<unsigned>(divide_up(quads, SUM_THREADS))), arguments,
                           lane, error);
}

} // namespace

struct mm_cuda_layout mm_cuda_simt_layout(const struct mm_product *product, const struct mm_lane *lane) {
    const struct plan plan = plan_of(product, lane);
    return layout_of(&plan, product);
}

enum mm_status mm_cuda_simt_enqueue(const struct mm_product *product, struct mm_lane *lane, void *scratch,
                                    const unsigned *wanted, struct mm_error *error) {
    const struct plan plan = plan_of(product, lane);
    if (plan.parts == 1)
        return enqueue_main(&plan, product, &product->c, lane, wanted, error);
    const struct mm_matrix parts = parts_of(&plan, product, scratch);
    const enum mm_status status = enqueue_main(&plan, product, &parts, lane, wanted, error);
    if (status != MM_OK)
        return status;
    return enqueue_sum(&plan, product, &parts, lane, wanted, error);
}

enum mm_status mm_cuda_simt(const struct mm_product *product, struct mm_lane *lane, struct mm_error *error) {
    const enum mm_status status = mm_cuda_judge_dimensions(product, error);
    if (status != MM_OK)
        return status;
    if (lane->purpose == MM_CUDA_DESCRIBE) {
        lane->noted = mm_cuda_simt_layout(product, lane);
        return MM_OK;
    }
    return mm_cuda_simt_enqueue(product, lane, lane->scratch, nullptr, error);
}
