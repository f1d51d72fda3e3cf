/* Tests the schedules of shares: each tile of C is added up in the same parts of k as in the whole product.
 */
#include "gpu/cuda/variants/wgmma/schedule.h"
#include "tests/unit/unit.h"

/* Returns the position of a cluster tile as row · 1000 + col. The band's last rows may be fewer. */
static unsigned position_of(const struct mm_schedule *schedule, unsigned cluster_tile) {
    const unsigned in_band = MM_BAND_ROWS * schedule->cluster_tile_cols;
    const unsigned first = cluster_tile / in_band * MM_BAND_ROWS, within = cluster_tile % in_band;
    const unsigned left = schedule->cluster_tile_rows - first;
    const unsigned rows = left < MM_BAND_ROWS ? left : MM_BAND_ROWS;
    return (first + within % rows) * 1000 + within / rows;
}

/* Returns a hash of the steps at which parts of the tile at this position begin. */
static uint64_t parts_of(const struct mm_schedule *schedule, unsigned position) {
    const unsigned tiles = schedule->cluster_tile_rows * schedule->cluster_tile_cols;
    unsigned tile = 0;
    uint64_t parts = 1;
    while (position_of(schedule, tile) != position)
        assert_true(++tile < tiles);
    if (tile < schedule->whole_cluster_tiles)
        return parts;
    const unsigned begin = (tile - schedule->whole_cluster_tiles) * schedule->steps;
    for (unsigned cluster = 0; cluster < schedule->sharers; cluster++) {
        const unsigned at = mm_share_begin(schedule, cluster);
        if (at > begin && at < begin + schedule->steps)
            parts = parts * 1000003 + (at - begin);
    }
    return parts;
}

static void expect_share(const struct mm_schedule *whole, unsigned row, unsigned rows, unsigned col,
                         unsigned cols) {
    const struct mm_product product = {
        .m = rows, .n = cols, .whole = {whole->cluster_tile_rows, whole->cluster_tile_cols, row, col}};
    const struct mm_schedule share = mm_schedule_share(whole, &product, 1, 1);
    assert_in_range(share.clusters, 1, whole->clusters);
    assert_int_equal(share.whole_cluster_tiles + mm_shared_tiles(&share), rows * cols);
    assert_true(share.sharers <= share.clusters);
    for (unsigned down = 0; down < rows; down++)
        for (unsigned along = 0; along < cols; along++)
            if (parts_of(&share, down * 1000 + along) != parts_of(whole, (row + down) * 1000 + col + along))
                fail_msg("tile %u, %u of %ux%u differs", row + down, col + along, whole->cluster_tile_rows,
                         whole->cluster_tile_cols);
}

/* Cuts at one place along each edge, if the cuts allow it. Returns whether they do. */
static bool cut(const struct mm_schedule *whole, unsigned row, unsigned col) {
    const struct mm_cuts cuts = mm_schedule_cuts(whole, 1, 1);
    const unsigned rows = whole->cluster_tile_rows, cols = whole->cluster_tile_cols;
    const size_t row_units = (rows - row + cuts.rows - 1) / cuts.rows;
    if (row % cuts.rows != 0 || row_units < cuts.tail_rows || cols - col < cuts.tail_cols)
        return false;
    for (unsigned part = 0; part < 4; part++) {
        const unsigned first_row = part / 2 * row, end_row = part / 2 == 0 ? row : rows;
        const unsigned first_col = part % 2 * col, end_col = part % 2 == 0 ? col : cols;
        if (first_row < end_row && first_col < end_col)
            expect_share(whole, first_row, end_row - first_row, first_col, end_col - first_col);
    }
    return true;
}

static void shares_add_up_as_the_whole_does(void **state) {
    static const struct mm_fix_up_cost cheap = {.fixed = 1.0, .each = 0.1};
    static const unsigned shapes[][2] = {{8, 9}, {9, 40}, {13, 7}, {17, 3}, {33, 1}, {12, 11}, {4, 30}};
    unsigned shared = 0, cuts_made = 0, refused = 0;
    for (unsigned index = 0; index < COUNT(shapes); index++)
        for (unsigned clusters = 5; clusters <= 66; clusters += 7)
            for (unsigned row = 0; row < shapes[index][0]; row++)
                for (unsigned col = 0; col < shapes[index][1]; col++) {
                    const struct mm_schedule whole =
                        mm_schedule_of(1, shapes[index][0], shapes[index][1], 64, clusters, &cheap);
                    const bool is_cut = cut(&whole, row, col);
                    shared += is_cut && whole.sharers > 0;
                    cuts_made += is_cut;
                    refused += !is_cut && row % MM_BAND_ROWS == 0;
                }
    assert_true(shared > 100 && cuts_made > shared && refused > 100);
}

RUN_TESTS(shares_add_up_as_the_whole_does)
