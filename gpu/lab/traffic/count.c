#include "gpu/lab/traffic/count.h"

#include <assert.h>

/* A group of rectangles that begin at the same offset within a sector, so all access equally many sectors. */
struct span {
    size_t first; /* first row or column of one of the rectangles */
    uint64_t count;
};

enum { SPANS_MAX = MM_SECTOR_BYTES + 1 };

/* Groups the rectangles along one edge of a matrix. The rectangles are `stride` bytes apart. If the last
 * rectangle is smaller, it has its own group. */
static unsigned spans_of(size_t length, unsigned edge, size_t stride, struct span spans[SPANS_MAX]) {
    const size_t whole = length / edge;
    const size_t step = stride % MM_SECTOR_BYTES;
    const size_t period =
        step == 0 ? 1 : MM_SECTOR_BYTES / (step & (~step + 1)); /* the lowest set bit of `step` */
    unsigned count = 0;
    for (size_t index = 0; index < period && index < whole; index++, count++)
        spans[count] =
            (struct span){.first = index * edge, .count = mm_size_divide_up(whole - index, period)};
    if (length % edge == 0)
        return count;
    spans[count] = (struct span){.first = whole * edge, .count = 1};
    return count + 1;
}

struct counts {
    uint64_t elements;
    uint64_t sectors;
};

/* Counts one instruction of a warp in the rectangle at (row, col). `first` is the first lane's place in the
 * rectangle. */
static void count_instruction(const struct mm_matrix *x, const struct mm_share *share, size_t row, size_t col,
                              unsigned first, struct counts *counts) {
    enum { FAR_BYTES = 1 << 20 }; /* rows this far apart share no sector */
    const unsigned across = share->cols / share->each;
    const unsigned bytes = (unsigned)mm_dtype_bytes(x->dtype);
    const size_t row_bytes = x->ld * bytes;
    const size_t pitch = row_bytes < FAR_BYTES ? row_bytes : FAR_BYTES + row_bytes % MM_SECTOR_BYTES;
    const size_t origin = (row * x->ld + col) * bytes % MM_SECTOR_BYTES;
    uint32_t offsets[MM_WARP_LANES];
    for (unsigned lane = 0; lane < MM_WARP_LANES; lane++) {
        const unsigned down = (first + lane) / across, right = (first + lane) % across * share->each;
        offsets[lane] = MM_LANE_INACTIVE;
        if (lane >= share->lanes || down >= share->rows || row + down >= x->rows || col + right >= x->cols)
            continue;
        offsets[lane] = (uint32_t)(origin + down * pitch + right * bytes);
        counts->elements += mm_size_min(share->at_once, x->cols - col - right);
    }
    counts->sectors += mm_sectors_predict(offsets, share->at_once * bytes).sectors;
}

static struct counts count_matrix(const struct mm_matrix *x, const struct mm_share *share) {
    const size_t bytes = mm_dtype_bytes(x->dtype);
    const unsigned places = share->rows * (share->cols / share->each);
    struct span rows[SPANS_MAX], cols[SPANS_MAX];
    const unsigned row_count = spans_of(x->rows, share->rows, share->rows * x->ld * bytes, rows);
    const unsigned col_count = spans_of(x->cols, share->cols, share->cols * bytes, cols);
    struct counts all = {0};
    for (unsigned span = 0; span < row_count * col_count; span++) {
        const struct span *down = &rows[span / col_count], *right = &cols[span % col_count];
        struct counts one = {0};
        for (unsigned first = 0; first < places; first += share->lanes)
            for (unsigned at = 0; at < share->each; at += share->at_once)
                count_instruction(x, share, down->first, right->first + at, first, &one);
        all.elements += one.elements * down->count * right->count;
        all.sectors += one.sectors * down->count * right->count;
    }
    return all;
}

void mm_count_loads(struct mm_traffic *traffic, const struct mm_matrix *x, const struct mm_share *share,
                    uint64_t times) {
    const struct counts counts = count_matrix(x, share);
    traffic->figures[MM_GLOBAL_LOADS] += counts.elements * times;
    traffic->figures[MM_GLOBAL_LOAD_SECTORS] += counts.sectors * times;
}

void mm_count_stores(struct mm_traffic *traffic, const struct mm_matrix *x, const struct mm_share *share) {
    traffic->figures[MM_GLOBAL_STORE_SECTORS] += count_matrix(x, share).sectors;
}

void mm_count_shared(struct mm_traffic *traffic, enum mm_traffic_figure passes,
                     const uint32_t offsets[MM_WARP_LANES], unsigned bytes, uint64_t times) {
    enum { BANK_BYTES = 4 };
    const struct mm_bank_cost cost = mm_banks_predict(offsets, bytes, BANK_BYTES);
    assert(passes == MM_SHARED_LOAD_PASSES || passes == MM_SHARED_STORE_PASSES);
    traffic->figures[passes] += cost.passes * times;
    traffic->figures[MM_BANK_CONFLICT_PASSES] += (cost.passes - cost.transactions) * times;
}

/* All warps of a rectangle use equal patterns in shared memory, so one warp's cost is multiplied. */
void mm_count_staging(struct mm_traffic *traffic, const struct mm_share *share,
                      const struct mm_tile_layout *layout, uint64_t times) {
    const unsigned across = share->cols / share->each;
    const uint64_t warps = mm_size_divide_up((size_t)share->rows * across, share->lanes);
    const unsigned stores = layout->is_turned ? share->each : 1;
    uint32_t offsets[MM_WARP_LANES];
    for (unsigned lane = 0; lane < MM_WARP_LANES; lane++) {
        const unsigned row = lane / across, col = lane % across * share->each;
        const unsigned word = layout->is_turned ? col * layout->pitch + row : row * layout->pitch + col;
        const bool is_active = lane < share->lanes && lane < share->rows * across;
        offsets[lane] = is_active ? word * layout->word_bytes : MM_LANE_INACTIVE;
    }
    mm_count_shared(traffic, MM_SHARED_STORE_PASSES, offsets, layout->word_bytes * share->each / stores,
                    times * warps * stores);
}
