/* Models of `register_tiled`, `vectorized` and `warp_tiled`. Each block stages slabs of A and B for 128×128
 * elements of C, and each thread keeps fragments in registers. The compiled `register_tiled` reads fragments
 * word by word, and the other kernels read quads of 16 bytes. */
#include "gpu/lab/traffic/count.h"
#include "gpu/lab/traffic/kernels.h"

enum { EDGE = 128, WORD = sizeof(float), QUAD = 4 };

/* Whether all rows of X begin at multiples of a quad (quad.cuh). If so, one access reads an aligned quad. */
static bool is_wide(const struct mm_matrix *x) {
    return x->ld % QUAD == 0;
}

/* An operand, A or B. A line is a row of op(A) or a column of op(B). */
struct side {
    const struct mm_matrix *stored;
    bool is_along; /* the elements of a line are neighbours in memory */
    size_t across; /* columns of C for A; rows of C for B */
};

static void sides_of(const struct mm_product *product, struct side sides[2]) {
    sides[0] = (struct side){&product->a, !product->transpose_a, product->n};
    sides[1] = (struct side){&product->b, product->transpose_b, product->m};
}

static uint64_t blocks_of(const struct mm_product *product) {
    return (uint64_t)mm_size_divide_up(product->m, EDGE) * mm_size_divide_up(product->n, EDGE);
}

/* A slab covers `depth` values of k. Each value has a row of `pitch` words in the slab. */
static void count_slabs(struct mm_traffic *traffic, const struct side *side, unsigned depth, unsigned each,
                        unsigned at_once, unsigned pitch, uint64_t stagings) {
    const struct mm_share share = side->is_along
                                      ? (struct mm_share){EDGE, depth, each, at_once, MM_WARP_LANES}
                                      : (struct mm_share){depth, EDGE, each, at_once, MM_WARP_LANES};
    const struct mm_tile_layout layout = {pitch, WORD, side->is_along};
    mm_count_loads(traffic, side->stored, &share, mm_size_divide_up(side->across, EDGE));
    mm_count_staging(traffic, &share, &layout, stagings);
}

/* Each lane reads `words` neighbours, beginning at word places[lane]·words of the slab's row. */
static void count_reads(struct mm_traffic *traffic, const unsigned places[MM_WARP_LANES], unsigned words,
                        uint64_t times) {
    uint32_t offsets[MM_WARP_LANES];
    for (unsigned lane = 0; lane < MM_WARP_LANES; lane++)
        offsets[lane] = places[lane] * words * WORD;
    mm_count_shared(traffic, MM_SHARED_LOAD_PASSES, offsets, words * WORD, times);
}

/* Each thread computes 8×8 elements of C. One access reads `step` neighbours of a fragment. */
static bool count_square(const struct mm_product *product, unsigned depth, unsigned step,
                         struct mm_traffic *traffic) {
    enum { SIDE = 16, EACH = 8, PADDING = 4, WARPS = SIDE * SIDE / MM_WARP_LANES, STAGED = 8 };
    const uint64_t steps = blocks_of(product) * mm_size_divide_up(product->k, depth);
    const uint64_t reads = steps * depth * WARPS * (EACH / step);
    unsigned places[2][MM_WARP_LANES];
    struct side sides[2];
    *traffic = (struct mm_traffic){0};
    sides_of(product, sides);
    for (unsigned lane = 0; lane < MM_WARP_LANES; lane++) {
        places[0][lane] = lane / SIDE;
        places[1][lane] = lane % SIDE;
    }
    for (unsigned which = 0; which < 2; which++) {
        /* If an operand is stored along k, a warp stages 8 elements along k at a time. */
        const struct side *side = &sides[which];
        const unsigned at_once = is_wide(side->stored) ? step : 1;
        const unsigned staged = side->is_along ? STAGED : depth;
        count_slabs(traffic, side, staged, step, at_once, EDGE + PADDING, steps * (depth / staged));
        count_reads(traffic, places[which], step, reads);
    }
    const struct mm_share stores = {2, SIDE * step, step, is_wide(&product->c) ? step : 1, MM_WARP_LANES};
    mm_count_stores(traffic, &product->c, &stores);
    return true;
}

MM_TRAFFIC_MODEL(register_tiled, count_square(product, 8, 1, traffic))
MM_TRAFFIC_MODEL(vectorized, count_square(product, 16, QUAD, traffic))

/* The 32 lanes of a warp form a grid of 8×4, and each lane computes 8×8 elements of C. Lanes 2i and 2i + 1
 * read the same words of A. After the last slab, the kernel stages an additional slab, which loads nothing
 * and stores zeros. The kernel also reads the first fragments before its main loop. */
bool mm_traffic_warp_tiled(const struct mm_product *product, unsigned tile, struct mm_traffic *traffic) {
    enum { DEPTH = 16, THREAD = 8, LANE_ROWS = 8, LANE_COLS = MM_WARP_LANES / LANE_ROWS, WARPS = 8 };
    const uint64_t blocks = blocks_of(product), steps = blocks * mm_size_divide_up(product->k, DEPTH);
    const uint64_t reads = THREAD / QUAD * (steps * DEPTH + blocks) * WARPS;
    const unsigned at_once = is_wide(&product->c) ? QUAD : 1;
    const struct mm_share stores = {LANE_ROWS, LANE_COLS * QUAD, QUAD, at_once, MM_WARP_LANES};
    unsigned places[2][MM_WARP_LANES];
    struct side sides[2];
    *traffic = (struct mm_traffic){0};
    sides_of(product, sides);
    for (unsigned lane = 0; lane < MM_WARP_LANES; lane++) {
        places[0][lane] = lane / 2 % LANE_ROWS;
        places[1][lane] = lane / 2 / LANE_ROWS * 2 + lane % 2;
    }
    for (unsigned which = 0; which < 2; which++) {
        const struct side *side = &sides[which];
        const unsigned each = !side->is_along && is_wide(side->stored) ? QUAD : 1;
        const unsigned pitch = side->is_along ? EDGE + QUAD : EDGE;
        count_slabs(traffic, side, DEPTH, each, each, pitch, steps + blocks);
        count_reads(traffic, places[which], QUAD, reads);
    }
    mm_count_stores(traffic, &product->c, &stores);
    return true;
}
