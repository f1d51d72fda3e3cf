/* Models of the transpositions in gpu/cuda/variants. */
#include "gpu/lab/traffic/count.h"
#include "gpu/lab/traffic/kernels.h"

/* Neighbouring lanes load from one row of A, and store to one column of C. */
bool mm_traffic_transpose_naive(const struct mm_product *product, unsigned tile, struct mm_traffic *traffic) {
    const struct mm_share along = {1, MM_WARP_LANES, 1, 1, MM_WARP_LANES};
    const struct mm_share down = {MM_WARP_LANES, 1, 1, 1, MM_WARP_LANES};
    *traffic = (struct mm_traffic){0};
    mm_count_loads(traffic, &product->a, &along, 1);
    mm_count_stores(traffic, &product->c, &down);
    return true;
}

/* Adds accesses to shared memory by the first `lanes` lanes of a warp. The lanes' words are `step` bytes
 * apart. */
static void count_lanes(struct mm_traffic *traffic, enum mm_traffic_figure passes, size_t lanes, size_t step,
                        size_t bytes, uint64_t times) {
    uint32_t offsets[MM_WARP_LANES];
    for (unsigned lane = 0; lane < MM_WARP_LANES; lane++)
        offsets[lane] = lane < lanes ? (uint32_t)(lane * step) : MM_LANE_INACTIVE;
    mm_count_shared(traffic, passes, offsets, (unsigned)bytes, times);
}

/* A and C are accessed along their rows. The last warp of a row may have fewer active lanes. Warps write
 * along rows of the tile, and read down columns of the tile. */
static bool count_by_tile(const struct mm_product *product, unsigned padding, struct mm_traffic *traffic) {
    const size_t bytes = mm_dtype_bytes(product->a.dtype);
    const size_t pitch = (MM_WARP_LANES + padding) * bytes;
    const size_t m = product->m, n = product->n;
    const struct mm_share along = {1, MM_WARP_LANES, 1, 1, MM_WARP_LANES};
    *traffic = (struct mm_traffic){0};
    mm_count_loads(traffic, &product->a, &along, 1);
    mm_count_stores(traffic, &product->c, &along);
    count_lanes(traffic, MM_SHARED_STORE_PASSES, MM_WARP_LANES, bytes, bytes, n * (m / MM_WARP_LANES));
    count_lanes(traffic, MM_SHARED_STORE_PASSES, m % MM_WARP_LANES, bytes, bytes, n);
    count_lanes(traffic, MM_SHARED_LOAD_PASSES, MM_WARP_LANES, pitch, bytes, m * (n / MM_WARP_LANES));
    count_lanes(traffic, MM_SHARED_LOAD_PASSES, n % MM_WARP_LANES, pitch, bytes, m);
    return true;
}

MM_TRAFFIC_MODEL(transpose_shared, count_by_tile(product, 0, traffic))
MM_TRAFFIC_MODEL(transpose_padded, count_by_tile(product, 1, traffic))

enum { EDGE = 64, PLACES = 8, VECTOR_BYTES = 16 };

/* Returns the byte offset of an element in the swizzled tile. */
static uint32_t swizzled(unsigned row, unsigned col, unsigned length) {
    const unsigned vectors = EDGE / length;
    return (row * vectors + (col / length ^ row / length % PLACES)) * VECTOR_BYTES +
           col % length * (VECTOR_BYTES / length);
}

/* Counts `times` accesses of a warp to the tile. If `is_wide` is set, each lane accesses a vector, else an
 * element. */
static void count_tile(struct mm_traffic *traffic, enum mm_traffic_figure passes, unsigned length,
                       bool is_wide, uint64_t times) {
    const unsigned vectors = EDGE / length;
    const bool stages = passes == MM_SHARED_STORE_PASSES;
    uint32_t offsets[MM_WARP_LANES];
    for (unsigned lane = 0; lane < MM_WARP_LANES; lane++) {
        const unsigned x = is_wide ? lane % vectors * length : lane, y = is_wide ? lane / vectors : 0;
        offsets[lane] = stages ? swizzled(x, y * length, length) : swizzled(y, x, length);
    }
    mm_count_shared(traffic, passes, offsets, is_wide ? VECTOR_BYTES : VECTOR_BYTES / length, times);
}

/* Whole squares are copied by vectors if the rows of the matrix begin at multiples of a vector. Other
 * squares are copied element by element. */
static void count_vectors(const struct mm_product *product, struct mm_traffic *traffic) {
    const unsigned length = VECTOR_BYTES / (unsigned)mm_dtype_bytes(product->a.dtype);
    const struct mm_share vectors = {2, EDGE, length, length, MM_WARP_LANES};
    const struct mm_share elements = {1, MM_WARP_LANES, 1, 1, MM_WARP_LANES};
    const bool loads_wide = product->a.ld % length == 0, stores_wide = product->c.ld % length == 0;
    const uint64_t whole = (product->m / EDGE) * (product->n / EDGE);
    const uint64_t blocks = mm_size_divide_up(product->m, EDGE) * mm_size_divide_up(product->n, EDGE);
    const uint64_t words =
        EDGE * EDGE / MM_WARP_LANES; /* accesses by warps that copy a square element by element */
    const uint64_t staged = loads_wide ? whole : 0, stored = stores_wide ? whole : 0;
    const uint64_t of_c = product->m * mm_size_divide_up(product->n, MM_WARP_LANES);
    mm_count_loads(traffic, &product->a, loads_wide ? &vectors : &elements, 1);
    mm_count_stores(traffic, &product->c, stores_wide ? &vectors : &elements);
    count_tile(traffic, MM_SHARED_STORE_PASSES, length, true, staged * words / length);
    count_tile(traffic, MM_SHARED_STORE_PASSES, length, false, (blocks - staged) * words);
    count_tile(traffic, MM_SHARED_LOAD_PASSES, length, true, stored * words / length);
    count_tile(traffic, MM_SHARED_LOAD_PASSES, length, false, of_c - stored * words);
}

/* Elements of 1 and 2 bytes are copied as words of 4 bytes if all squares are whole. Each row of the tile
 * has one unused word. A warp stages down the columns of the tile, and reads along its rows. */
static void count_narrow(const struct mm_product *product, struct mm_traffic *traffic) {
    enum { WORD = 4 };
    const unsigned length = WORD / (unsigned)mm_dtype_bytes(product->a.dtype), words = EDGE / length;
    const struct mm_share share = {2, EDGE, length, length, MM_WARP_LANES};
    const uint64_t warps = product->m * product->n / length / MM_WARP_LANES;
    uint32_t staged[MM_WARP_LANES], read[MM_WARP_LANES];
    for (unsigned lane = 0; lane < MM_WARP_LANES; lane++) {
        staged[lane] = (lane % words * (words + 1) + lane / words) * WORD;
        read[lane] = (lane / words * (words + 1) + lane % words) * WORD;
    }
    mm_count_loads(traffic, &product->a, &share, 1);
    mm_count_stores(traffic, &product->c, &share);
    mm_count_shared(traffic, MM_SHARED_STORE_PASSES, staged, WORD, warps);
    mm_count_shared(traffic, MM_SHARED_LOAD_PASSES, read, WORD, warps);
}

bool mm_traffic_transpose_vectorized(const struct mm_product *product, unsigned tile,
                                     struct mm_traffic *traffic) {
    const bool is_narrow = mm_dtype_bytes(product->a.dtype) < 4;
    if (is_narrow && (product->m % EDGE != 0 || product->n % EDGE != 0))
        return false;
    *traffic = (struct mm_traffic){0};
    is_narrow ? count_narrow(product, traffic) : count_vectors(product, traffic);
    return true;
}
