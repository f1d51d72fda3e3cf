/* Models of `naive`, `naive_uncoalesced`, `staged_copy`, and of kernels whose blocks stage square tiles of A
 * and B. Reads are as wide as in the compiled code. `naive` kernels load both factors of each multiplication.
 * Tiled kernels read one word of b_tile at a time, and 16 bytes of a_tile if the words are neighbours.
 * `tiled_dynamic` reads single words, because the compiler does not know its tile. */
#include "gpu/lab/traffic/count.h"
#include "gpu/lab/traffic/kernels.h"

/* Counts a naive kernel. A warp computes 32 neighbours in a row of C, or in a column if `is_down` is set. A
 * line is a row of op(A) or a column of op(B). For each k, all lanes read the same element of one operand.
 * From the other operand, each lane reads an element of another line. */
static bool count_naive(const struct mm_product *product, bool is_down, struct mm_traffic *traffic) {
    const struct mm_share along = {1, MM_WARP_LANES, 1, 1, MM_WARP_LANES};
    const struct mm_share down = {MM_WARP_LANES, 1, 1, 1, MM_WARP_LANES};
    const struct mm_matrix *spread = is_down ? &product->a : &product->b;
    const bool is_along = is_down ? product->transpose_a : !product->transpose_b;
    const size_t lines = is_down ? product->m : product->n; /* a warp reads 32 of these lines */
    const size_t others = is_down ? product->n : product->m;
    *traffic =
        (struct mm_traffic){.figures = {
                                [MM_GLOBAL_LOADS] = (uint64_t)lines * others * product->k,
                                [MM_GLOBAL_LOAD_SECTORS] =
                                    (uint64_t)mm_size_divide_up(lines, MM_WARP_LANES) * others * product->k,
                            }};
    mm_count_loads(traffic, spread, is_along ? &along : &down, others);
    mm_count_stores(traffic, &product->c, is_down ? &down : &along);
    return true;
}

MM_TRAFFIC_MODEL(naive, count_naive(product, false, traffic))
MM_TRAFFIC_MODEL(naive_uncoalesced, count_naive(product, true, traffic))

/* Counts `naive`, and for each multiplication two stores to shared memory and two loads. */
bool mm_traffic_staged_copy(const struct mm_product *product, unsigned tile, struct mm_traffic *traffic) {
    const uint64_t warps = (uint64_t)mm_size_divide_up(product->n, MM_WARP_LANES) * product->m;
    count_naive(product, false, traffic);
    traffic->figures[MM_SHARED_STORE_PASSES] = traffic->figures[MM_SHARED_LOAD_PASSES] =
        2 * warps * product->k;
    return true;
}

/* How the variants with tiles differ. */
struct kind {
    bool is_as_stored; /* a transposed operand stays transposed in its tile */
    unsigned padding;  /* unused words at the end of b_tile's rows */
    bool is_joined;    /* one read takes 16 bytes of a_tile instead of one word */
    bool zeroes_first; /* a block first fills both tiles with zeros */
};

/* Counts reads by a warp. Thread (x, y) of the warp reads at word x·right + y·down. */
static void count_reads(struct mm_traffic *traffic, unsigned side, unsigned right, unsigned down,
                        unsigned word_bytes, unsigned bytes, uint64_t times) {
    uint32_t offsets[MM_WARP_LANES];
    for (unsigned lane = 0; lane < MM_WARP_LANES; lane++) {
        const unsigned word = lane % side * right + lane / side * down;
        offsets[lane] = lane < side * side ? word * word_bytes : MM_LANE_INACTIVE;
    }
    mm_count_shared(traffic, MM_SHARED_LOAD_PASSES, offsets, bytes, times);
}

/* Counts a kernel with tiles of edge×edge. A block has side×side threads, each of which computes each×each
 * elements of C. */
static bool count_tiled(const struct mm_product *product, unsigned edge, struct kind kind,
                        struct mm_traffic *traffic) {
    enum { JOINED_BYTES = 16, SIDE_MAX = 32 };
    const unsigned side = edge < SIDE_MAX ? edge : SIDE_MAX, each = edge / side;
    const unsigned lanes = (unsigned)mm_size_min(MM_WARP_LANES, side * side);
    const unsigned word_bytes = (unsigned)mm_dtype_bytes(mm_dtype_sum(product->a.dtype));
    const struct mm_share share = {edge, edge, 1, 1, lanes};
    const bool turns_a = product->transpose_a && !kind.is_as_stored;
    const bool turns_b = product->transpose_b && !kind.is_as_stored;
    const bool a_is_down = product->transpose_a && kind.is_as_stored;
    const bool b_is_down = product->transpose_b && kind.is_as_stored;
    const struct mm_tile_layout a_tile = {edge, word_bytes, turns_a};
    const struct mm_tile_layout b_tile = {edge + kind.padding, word_bytes, turns_b};
    const uint64_t block_rows = mm_size_divide_up(product->m, edge);
    const uint64_t block_cols = mm_size_divide_up(product->n, edge);
    const uint64_t steps = block_rows * block_cols * mm_size_divide_up(product->k, edge);
    const uint64_t reads = steps * (side * side / lanes) * edge * each; /* reads of one word by a warp */
    *traffic = (struct mm_traffic){0};
    mm_count_loads(traffic, &product->a, &share, block_cols);
    mm_count_loads(traffic, &product->b, &share, block_rows);
    mm_count_stores(traffic, &product->c, &share);
    mm_count_staging(traffic, &share, &a_tile, steps);
    mm_count_staging(traffic, &share, &b_tile, steps);
    if (kind.zeroes_first)
        mm_count_staging(traffic, &share, &(struct mm_tile_layout){edge, word_bytes, false},
                         2 * block_rows * block_cols);
    if (kind.is_joined && !a_is_down)
        count_reads(traffic, side, 0, edge, word_bytes, JOINED_BYTES, reads * word_bytes / JOINED_BYTES);
    else
        count_reads(traffic, side, 0, a_is_down ? 1 : edge, word_bytes, word_bytes, reads);
    count_reads(traffic, side, b_is_down ? edge + kind.padding : 1, 0, word_bytes, word_bytes, reads);
    return true;
}

#define TILED(NAME, ...)                                                                                     \
    MM_TRAFFIC_MODEL(NAME, count_tiled(product, tile, (struct kind){__VA_ARGS__}, traffic))
TILED(tiled, .is_joined = true)
TILED(tiled_racy, .is_joined = true, .zeroes_first = true)
TILED(tiled_dynamic, .is_joined = false)
TILED(tiled_padded, .is_as_stored = true, .padding = 1, .is_joined = true)
TILED(tiled_conflicted, .is_as_stored = true, .is_joined = true)
