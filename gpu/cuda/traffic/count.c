/* The counting (count.h). It knows no kernel. */
#include "gpu/cuda/traffic/count.h"

/* --- global memory -------------------------------------------------------------------------------- */

/* Rectangles whose first bytes lie alike in a sector, so that they count alike. */
struct span {
    size_t first; /* row, or column, of one of them */
    uint64_t count;
};

enum { SPANS_MAX = MM_SECTOR_BYTES + 1 };

/* Those along one edge of a matrix, `stride` bytes apart. The last one may be cut. */
static unsigned spans_of(size_t length, unsigned edge, size_t stride, struct span spans[SPANS_MAX]) {
    const size_t whole = length / edge;
    const size_t step = stride % MM_SECTOR_BYTES;
    const size_t period = step == 0 ? 1 : MM_SECTOR_BYTES / (step & (~step + 1)); /* its lowest bit */
    unsigned count = 0;
    for (size_t index = 0; index < period && index < whole; index++, count++)
        spans[count] =
            (struct span){.first = index * edge, .count = mm_size_divide_up(whole - index, period)};
    if (length % edge == 0)
        return count;
    spans[count] = (struct span){.first = whole * edge, .count = 1};
    return count + 1;
}

struct asked {
    uint64_t elements;
    uint64_t sectors;
};

/* One instruction of a warp, whose first place is `first`. Its lanes lie in the order of their addresses. */
static void ask(const struct mm_matrix *x, const struct mm_share *share, size_t row, size_t col,
                unsigned first, struct asked *asked) {
    const unsigned across = share->cols / share->each;
    const size_t bytes = mm_dtype_bytes(x->dtype);
    size_t before = SIZE_MAX;
    for (unsigned place = first; place < first + share->lanes && place < share->rows * across; place++) {
        const size_t at_row = row + place / across;
        const size_t at_col = col + (size_t)(place % across) * share->each;
        if (at_row >= x->rows || at_col >= x->cols)
            continue;
        const size_t sector = (at_row * x->ld + at_col) * bytes / MM_SECTOR_BYTES;
        asked->elements += mm_size_min(share->at_once, x->cols - at_col);
        asked->sectors += sector != before;
        before = sector;
    }
}

static struct asked ask_for_matrix(const struct mm_matrix *x, const struct mm_share *share) {
    const size_t bytes = mm_dtype_bytes(x->dtype);
    const unsigned places = share->rows * (share->cols / share->each);
    struct span rows[SPANS_MAX], cols[SPANS_MAX];
    const unsigned row_count = spans_of(x->rows, share->rows, share->rows * x->ld * bytes, rows);
    const unsigned col_count = spans_of(x->cols, share->cols, share->cols * bytes, cols);
    struct asked all = {0};
    for (unsigned span = 0; span < row_count * col_count; span++) {
        const struct span *down = &rows[span / col_count], *right = &cols[span % col_count];
        struct asked one = {0};
        for (unsigned first = 0; first < places; first += share->lanes)
            for (unsigned at = 0; at < share->each; at += share->at_once)
                ask(x, share, down->first, right->first + at, first, &one);
        all.elements += one.elements * down->count * right->count;
        all.sectors += one.sectors * down->count * right->count;
    }
    return all;
}

void mm_count_loads(struct mm_traffic *traffic, const struct mm_matrix *x, const struct mm_share *share,
                    uint64_t times) {
    const struct asked asked = ask_for_matrix(x, share);
    traffic->figures[MM_GLOBAL_LOADS] += asked.elements * times;
    traffic->figures[MM_GLOBAL_LOAD_SECTORS] += asked.sectors * times;
}

void mm_count_stores(struct mm_traffic *traffic, const struct mm_matrix *x, const struct mm_share *share,
                     uint64_t times) {
    traffic->figures[MM_GLOBAL_STORE_SECTORS] += ask_for_matrix(x, share).sectors * times;
}

/* --- shared memory -------------------------------------------------------------------------------- */

enum { BANK_BYTES = 4 };

/* Whether all lanes of a group have the offset of the lane whose number differs in one bit. */
static bool are_pairs(const uint32_t *offsets, unsigned lanes, unsigned bit) {
    for (unsigned lane = 0; lane < lanes; lane++)
        if (offsets[lane] != offsets[lane ^ bit])
            return false;
    return true;
}

/* The passes of the lanes from one transaction; every lane whose number has the bit `skipped` is one of a
 * pair, and the other one has its words. */
static unsigned serve(const uint32_t *offsets, unsigned lanes, unsigned skipped, unsigned pieces) {
    uint32_t words[MM_WARP_LANES] = {0};
    unsigned count = 0;
    for (unsigned lane = 0; lane < lanes; lane++)
        for (unsigned piece = 0; piece < pieces && (lane & skipped) == 0; piece++)
            words[count++] = offsets[lane] / BANK_BYTES * BANK_BYTES + piece * BANK_BYTES;
    for (; count < MM_WARP_LANES; count++)
        words[count] = words[0];
    return mm_banks_predict(words, BANK_BYTES, BANK_BYTES).degree;
}

/* A transaction serves 32 words. So a warp that accesses 8 bytes a lane takes two, and one that accesses 16
 * takes four. Two of these are one if, in the lanes of both, neighbours i and i^1 have the same words
 * everywhere, or i and i^2 do. On an H200 the counters say so of 16 bytes: a read takes 4 passes if its quads
 * are all different (`vectorized`, of B), and 2 else (its A; `warp_tiled`). */
void mm_count_shared(struct mm_traffic *traffic, enum mm_traffic_figure passes,
                     const uint32_t offsets[MM_WARP_LANES], unsigned bytes, uint64_t times) {
    const unsigned pieces = bytes > BANK_BYTES ? bytes / BANK_BYTES : 1;
    const unsigned alone = MM_WARP_LANES / pieces; /* lanes of a transaction */
    const unsigned together = pieces > 1 ? 2 * alone : alone;
    uint64_t needed = 0, transactions = 0;
    for (unsigned first = 0; first < MM_WARP_LANES; first += together) {
        const uint32_t *group = offsets + first;
        const unsigned skipped = pieces == 1                     ? 0
                                 : are_pairs(group, together, 1) ? 1
                                 : are_pairs(group, together, 2) ? 2
                                                                 : 0;
        const unsigned lanes = skipped > 0 ? together : alone;
        for (unsigned lane = 0; lane < together; lane += lanes, transactions++)
            needed += serve(group + lane, lanes, skipped, pieces);
    }
    traffic->figures[passes] += needed * times;
    traffic->figures[MM_BANK_CONFLICT_PASSES] += (needed - transactions) * times;
}

/* All warps of a rectangle have the same pattern, some words further on. */
void mm_count_staging(struct mm_traffic *traffic, const struct mm_share *share,
                      const struct mm_tile_layout *layout, uint64_t times) {
    const unsigned across = share->cols / share->each;
    const uint64_t warps = mm_size_divide_up((size_t)share->rows * across, share->lanes);
    const unsigned stores = layout->is_turned ? share->each : 1;
    uint32_t offsets[MM_WARP_LANES];
    for (unsigned lane = 0; lane < MM_WARP_LANES; lane++) {
        const unsigned place = lane < share->lanes && lane < share->rows * across ? lane : 0;
        const unsigned row = place / across, col = place % across * share->each;
        offsets[lane] =
            layout->word_bytes * (layout->is_turned ? col * layout->pitch + row : row * layout->pitch + col);
    }
    mm_count_shared(traffic, MM_SHARED_STORE_PASSES, offsets, layout->word_bytes * share->each / stores,
                    times * warps * stores);
}
