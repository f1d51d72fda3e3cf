/* The traffic of the variants whose blocks stage slabs of A and B, and whose threads keep fragments in
 * registers: variants/register_tiled.cu, vectorized.cu, warp_tiled.cu and simt.cuh, whose comments say which
 * thread accesses what. The compiled kernels read fragments as their source says: `register_tiled` word by
 * word, the others by quads of 16 bytes. */
#include "gpu/cuda/traffic/count.h"
#include "gpu/cuda/variants.h"
#include "gpu/cuda/variants/simt_shapes.h"

#include <assert.h>

enum { WORD = sizeof(float), QUAD = 4, QUAD_BYTES = QUAD * WORD };

/* Whether aligned quads of X can be one access (quad.cuh). Matrices begin at such a multiple. */
static bool is_wide(const struct mm_matrix *x) {
    return x->ld % QUAD == 0;
}

/* An operand. Its lines are rows of op(A), or columns of op(B). */
struct side {
    const struct mm_matrix *stored;
    bool is_along;  /* a line's elements are neighbours in memory (A as it is, B transposed) */
    unsigned lines; /* of a block */
    unsigned other; /* of C that a block has across them */
    size_t across;  /* of C, in elements, likewise */
};

static void sides_of(const struct mm_product *product, const struct mm_plan *plan, struct side sides[2]) {
    const unsigned rows = plan->layout.block_rows, cols = plan->layout.block_cols;
    sides[0] = (struct side){&product->a, !product->transpose_a, rows, cols, product->n};
    sides[1] = (struct side){&product->b, product->transpose_b, cols, rows, product->m};
}

static uint64_t blocks_of(const struct mm_product *product, const struct mm_plan *plan) {
    return (uint64_t)mm_size_divide_up(product->m, plan->layout.block_rows) *
           mm_size_divide_up(product->n, plan->layout.block_cols);
}

/* Slabs of so many k. A slab has a row of `pitch` words for each k, or for each line if it keeps the order of
 * a matrix that is stored along k. */
static void count_slabs(struct mm_traffic *traffic, const struct side *side, unsigned depth, unsigned each,
                        unsigned at_once, unsigned pitch, bool keeps_order, uint64_t stagings) {
    const struct mm_share share = side->is_along
                                      ? (struct mm_share){side->lines, depth, each, at_once, MM_WARP_LANES}
                                      : (struct mm_share){depth, side->lines, each, at_once, MM_WARP_LANES};
    const struct mm_tile_layout layout = {pitch, WORD, side->is_along && !keeps_order};
    mm_count_loads(traffic, side->stored, &share, mm_size_divide_up(side->across, side->other));
    mm_count_staging(traffic, &share, &layout, stagings);
}

/* Reads of fragments: each lane from its place along the side, places `step` words apart. */
static void count_reads(struct mm_traffic *traffic, const unsigned places[MM_WARP_LANES], unsigned step,
                        unsigned bytes, uint64_t times) {
    uint32_t offsets[MM_WARP_LANES];
    for (unsigned lane = 0; lane < MM_WARP_LANES; lane++)
        offsets[lane] = places[lane] * step * WORD;
    mm_count_shared(traffic, MM_SHARED_LOAD_PASSES, offsets, bytes, times);
}

/* --- blocks of 16×16 threads ----------------------------------------------------------------------- */

/* A thread has 8×8 elements of C, and reads `step` neighbours of its fragments at a time. */
static bool count_square(const struct mm_product *product, const struct mm_plan *plan, unsigned depth,
                         unsigned step, struct mm_traffic *traffic) {
    enum { SIDE = 16, EACH = 8, PADDING = 4, WARPS = SIDE * SIDE / MM_WARP_LANES, STAGED = 8 };
    const uint64_t steps = blocks_of(product, plan) * mm_size_divide_up(product->k, depth);
    const uint64_t reads = steps * depth * WARPS * (EACH / step);
    unsigned places[2][MM_WARP_LANES];
    struct side sides[2];
    *traffic = (struct mm_traffic){0};
    sides_of(product, plan, sides);
    for (unsigned lane = 0; lane < MM_WARP_LANES; lane++) {
        places[0][lane] = lane / SIDE;
        places[1][lane] = lane % SIDE;
    }
    for (unsigned which = 0; which < 2; which++) {
        /* Of an operand that is stored along k, a warp stages 8 k at a time. */
        const struct side *side = &sides[which];
        const unsigned at_once = is_wide(side->stored) ? step : 1;
        const unsigned staged = side->is_along ? STAGED : depth;
        count_slabs(traffic, side, staged, step, at_once, side->lines + PADDING, false,
                    steps * (depth / staged));
        count_reads(traffic, places[which], step, step * WORD, reads);
    }
    const struct mm_share stores = {2, SIDE * step, step, is_wide(&product->c) ? step : 1, MM_WARP_LANES};
    mm_count_stores(traffic, &product->c, &stores, 1);
    return true;
}

bool mm_cuda_traffic_register_tiled(const struct mm_product *product, const struct mm_plan *plan,
                                    struct mm_traffic *traffic) {
    return count_square(product, plan, 8, 1, traffic);
}

bool mm_cuda_traffic_vectorized(const struct mm_product *product, const struct mm_plan *plan,
                                struct mm_traffic *traffic) {
    return count_square(product, plan, 16, QUAD, traffic);
}

/* --- blocks of warps, with asynchronous copies ----------------------------------------------------- */

/* Where the lanes of a warp lie in its part of C, down and across. Lanes 2i and 2i + 1 share the longer
 * side's words. */
static void lanes_of(unsigned lane_rows, unsigned places[2][MM_WARP_LANES]) {
    const unsigned lane_cols = MM_WARP_LANES / lane_rows;
    const bool is_tall = lane_rows >= lane_cols;
    const unsigned longer = is_tall ? lane_rows : lane_cols;
    for (unsigned lane = 0; lane < MM_WARP_LANES; lane++) {
        places[!is_tall][lane] = lane / 2 % longer;
        places[is_tall][lane] = lane / 2 / longer * 2 + lane % 2;
    }
}

/* The kernel of a shape: `steps` slabs of all blocks, of which `stagings` are copied, also those past k, and
 * `starts` first fragments, which are read before the main loop. */
static void count_shape(const struct mm_product *product, const struct mm_plan *plan,
                        const struct mm_simt_shape *shape, uint64_t steps, uint64_t stagings, uint64_t starts,
                        struct mm_traffic *traffic) {
    const unsigned warps = plan->layout.threads_x / MM_WARP_LANES;
    const unsigned of_thread[2] = {shape->thread_rows, shape->thread_cols};
    unsigned places[2][MM_WARP_LANES];
    struct side sides[2];
    *traffic = (struct mm_traffic){0};
    sides_of(product, plan, sides);
    lanes_of(shape->lane_rows, places);
    for (unsigned which = 0; which < 2; which++) {
        const struct side *side = &sides[which];
        const bool keeps_order = which == 0 && side->is_along && shape->keeps_k_major;
        const unsigned each = (!side->is_along || keeps_order) && is_wide(side->stored) ? QUAD : 1;
        const unsigned pitch = keeps_order      ? shape->depth + QUAD
                               : side->is_along ? side->lines + QUAD
                                                : side->lines;
        /* A read has four k of a line, or four lines at one k. */
        const uint64_t reads = keeps_order ? of_thread[which] * (steps * (shape->depth / QUAD) + starts)
                                           : of_thread[which] / QUAD * (steps * shape->depth + starts);
        count_slabs(traffic, side, shape->depth, each, each, pitch, keeps_order, stagings);
        count_reads(traffic, places[which], keeps_order ? pitch : QUAD, QUAD_BYTES, reads * warps);
    }
}

/* Its stores to C, or to a workspace: a warp stores a quad of each of its lanes. */
static struct mm_share quads_of(unsigned lane_rows, const struct mm_matrix *to) {
    return (struct mm_share){lane_rows, MM_WARP_LANES / lane_rows * QUAD, QUAD, is_wide(to) ? QUAD : 1,
                             MM_WARP_LANES};
}

/* The copies of the slab past the last one bring zeros, and load nothing. */
bool mm_cuda_traffic_warp_tiled(const struct mm_product *product, const struct mm_plan *plan,
                                struct mm_traffic *traffic) {
    const struct mm_simt_shape shape = {
        .rows = 128, .cols = 128, .depth = 16, .thread_rows = 8, .thread_cols = 8, .lane_rows = 8};
    const struct mm_share stores = quads_of(shape.lane_rows, &product->c);
    const uint64_t blocks = blocks_of(product, plan);
    const uint64_t steps = blocks * mm_size_divide_up(product->k, shape.depth);
    count_shape(product, plan, &shape, steps, steps + blocks, blocks, traffic);
    mm_count_stores(traffic, &product->c, &stores, 1);
    return true;
}

static const struct mm_simt_shape *shape_of(const struct mm_layout *layout) {
    unsigned index = 0;
    while (mm_simt_shapes[index].rows != layout->block_rows ||
           mm_simt_shapes[index].cols != layout->block_cols)
        index++;
    assert(index < sizeof mm_simt_shapes / sizeof mm_simt_shapes[0]);
    return &mm_simt_shapes[index];
}

/* The second kernel of split-K goes through the workspace, whose rows are whole quads, and through C, as if
 * each were one row. */
static void count_sum(const struct mm_product *product, const struct mm_matrix *sums, unsigned splits,
                      struct mm_traffic *traffic) {
    const struct mm_matrix all = mm_matrix_dense(MM_FLOAT32, splits, sums->rows * sums->ld, NULL);
    const bool is_one = sums->ld == product->c.ld;
    const struct mm_matrix c =
        is_one ? mm_matrix_dense(MM_FLOAT32, 1, sums->rows * sums->ld, NULL) : product->c;
    const struct mm_share loads = {1, MM_WARP_LANES * QUAD, QUAD, QUAD, MM_WARP_LANES};
    const struct mm_share stores = {1, MM_WARP_LANES * QUAD, QUAD, is_one ? QUAD : 1, MM_WARP_LANES};
    mm_count_loads(traffic, &all, &loads, 1);
    mm_count_stores(traffic, &c, &stores, 1);
}

/* A product with a vector or a few (simt_vectors.cuh): the matrix is loaded once, 128 neighbours a warp, and
 * the vectors once for each block. Its lines store a sum each. Passes over shared memory are not predicted.
 */
static void count_vectors(const struct mm_product *product, const struct mm_plan *plan,
                          struct mm_traffic *traffic) {
    enum { VECTORS_MAX = 4, STRIDED_LINES = 128, CONTIGUOUS_LINES = 8 };
    const bool are_columns = product->n <= VECTORS_MAX && product->n <= product->m;
    const struct mm_matrix *matrix = are_columns ? &product->a : &product->b;
    const struct mm_matrix *vectors = are_columns ? &product->b : &product->a;
    const bool is_along = are_columns ? !product->transpose_a : product->transpose_b;
    const bool vectors_are_along = are_columns ? product->transpose_b : !product->transpose_a;
    const size_t lines = are_columns ? product->m : product->n;
    const struct mm_share quads = {1, MM_WARP_LANES * QUAD, QUAD, QUAD, MM_WARP_LANES};
    const struct mm_share words = {1, MM_WARP_LANES, 1, 1, MM_WARP_LANES};
    const struct mm_share down = {MM_WARP_LANES, 1, 1, 1, MM_WARP_LANES};
    const struct mm_share alone = {1, 1, 1, 1, 1};
    mm_count_loads(traffic, matrix, is_wide(matrix) ? &quads : &words, 1);
    mm_count_loads(traffic, vectors, vectors_are_along ? &words : &down,
                   mm_size_divide_up(lines, is_along ? CONTIGUOUS_LINES : STRIDED_LINES));
    mm_count_stores(traffic, &product->c,
                    is_along      ? &alone
                    : are_columns ? &down
                                  : &words,
                    plan->splits > 1 ? plan->splits : 1);
    traffic->figures[MM_SHARED_LOAD_PASSES] = traffic->figures[MM_SHARED_STORE_PASSES] =
        traffic->figures[MM_BANK_CONFLICT_PASSES] = MM_TRAFFIC_UNKNOWN;
}

bool mm_cuda_traffic_simt(const struct mm_product *product, const struct mm_plan *plan,
                          struct mm_traffic *traffic) {
    const unsigned splits = plan->splits > 1 ? plan->splits : 1;
    struct mm_matrix out = product->c;
    if (splits > 1)
        out.ld = mm_size_round_up(product->n, QUAD);
    *traffic = (struct mm_traffic){0};
    if (plan->layout.block_rows == 0) {
        count_vectors(product, plan, traffic);
    } else {
        const struct mm_simt_shape *shape = shape_of(&plan->layout);
        const struct mm_share stores = quads_of(shape->lane_rows, &out);
        const uint64_t blocks = blocks_of(product, plan);
        const uint64_t steps = blocks * mm_size_divide_up(product->k, shape->depth);
        count_shape(product, plan, shape, steps, steps, blocks * splits, traffic);
        mm_count_stores(traffic, &out, &stores, splits);
    }
    if (splits > 1)
        count_sum(product, &out, splits, traffic);
    return true;
}
