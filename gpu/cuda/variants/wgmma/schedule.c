/* Chooses the fastest schedule (schedule.h). */
#include "gpu/cuda/variants/wgmma/schedule.h"

#include "gpu/matrix/matrix.h"

#include <math.h>
#include <stdint.h>

static unsigned common_divisor(unsigned a, unsigned b) {
    return b == 0 ? a : common_divisor(b, a % b);
}

double mm_schedule_steps(const struct mm_schedule *schedule, const struct mm_fix_up_cost *fix_up) {
    const double steps = schedule->steps, clusters = schedule->clusters;
    double taken = ceil(schedule->whole_cluster_tiles / clusters) * steps;
    if (schedule->sharers > 0) {
        const unsigned tiles = mm_shared_tiles(schedule);
        const double share = (double)schedule->share + (schedule->longer_shares > 0);
        const double partial_sums = schedule->sharers + tiles - common_divisor(schedule->sharers, tiles);
        taken += share + fix_up->fixed + fix_up->each * ceil(steps / share) + fix_up->all * partial_sums;
    }
    return taken;
}

/* The fewest steps of a cluster's share. mm_share_begin moves a share's boundaries by at most
 * MM_SHARE_STEPS_MIN - 1 steps, so the boundaries of such a share never meet. */
enum { SHARE_MIN = 2 * MM_SHARE_STEPS_MIN - 1 };

/* Divides the steps of `rest` cluster tiles among `sharers` clusters. Returns false if the shares would be
 * too small, or if the number of steps exceeds 32 bits. */
static bool share_rest(unsigned rest, unsigned sharers, struct mm_schedule *schedule) {
    const size_t steps = (size_t)rest * schedule->steps;
    if (steps > UINT32_MAX || steps / sharers < SHARE_MIN)
        return false;
    schedule->clusters = schedule->clusters > sharers ? schedule->clusters : sharers;
    schedule->whole_cluster_tiles -= rest;
    schedule->sharers = sharers;
    schedule->share = (unsigned)steps / sharers;
    schedule->longer_shares = (unsigned)steps % sharers;
    return true;
}

/* Dividends are below 2^31, so larger divisors can be replaced by 2^31. The multiplier has 32 bits. */
static struct mm_divisor divisor_of(uint64_t divisor) {
    const uint64_t largest = UINT64_C(1) << 31;
    unsigned shift = 31;
    divisor = divisor < largest ? divisor : largest;
    while (UINT64_C(1) << (shift - 31) < divisor)
        shift++;
    return (struct mm_divisor){(unsigned)(((UINT64_C(1) << shift) + divisor - 1) / divisor), shift};
}

/* If the last round is not full, clusters share its tiles. Sharing the tiles of the round before too was
 * slower, because clusters at different k read different parts of both operands. For example, tf32 at 4096³
 * then took 0.50 ms instead of 0.38 ms (H100). */
struct mm_schedule mm_schedule_of(size_t count, unsigned cluster_tile_rows, unsigned cluster_tile_cols,
                                  unsigned steps, unsigned clusters_max,
                                  const struct mm_fix_up_cost *fix_up) {
    const size_t cluster_tiles = count * cluster_tile_rows * cluster_tile_cols;
    const unsigned rest = (unsigned)(cluster_tiles % clusters_max);
    const struct mm_schedule whole = {.steps = steps,
                                      .cluster_tile_rows = cluster_tile_rows,
                                      .cluster_tile_cols = cluster_tile_cols,
                                      .band = divisor_of((uint64_t)MM_BAND_ROWS * cluster_tile_cols),
                                      .clusters = (unsigned)mm_size_min(cluster_tiles, clusters_max),
                                      .whole_cluster_tiles = (unsigned)cluster_tiles};
    struct mm_schedule best = whole;
    double least = mm_schedule_steps(&best, fix_up);
    for (unsigned each = 2; rest > 0; each++) {
        const unsigned sharers = (unsigned)mm_size_min((size_t)each * rest, clusters_max);
        struct mm_schedule shared = whole;
        if (!share_rest(rest, sharers, &shared))
            break;
        const double taken = mm_schedule_steps(&shared, fix_up);
        if (taken < least) {
            best = shared;
            least = taken;
        } else if (best.sharers > 0) {
            break; /* more sharers will not be faster */
        }
        if (sharers == clusters_max)
            break;
    }
    return best;
}

struct mm_cuts mm_schedule_cuts(const struct mm_schedule *whole, size_t rows, size_t cols) {
    const unsigned all_rows = whole->cluster_tile_rows, all_cols = whole->cluster_tile_cols;
    const unsigned shared = mm_shared_tiles(whole);
    const unsigned band_rows = all_rows % MM_BAND_ROWS > 0 ? all_rows % MM_BAND_ROWS : MM_BAND_ROWS;
    const size_t in_last_band = mm_size_min(shared, (size_t)band_rows * all_cols);
    return (struct mm_cuts){
        .rows = MM_BAND_ROWS * rows,
        .cols = cols,
        .tail_rows = 1 + mm_size_divide_up(shared - in_last_band, (size_t)MM_BAND_ROWS * all_cols),
        .tail_cols = shared > in_last_band ? all_cols : mm_size_divide_up(shared, band_rows)};
}

struct mm_schedule mm_schedule_share(const struct mm_schedule *whole, const struct mm_product *product,
                                     size_t rows, size_t cols) {
    const struct mm_whole *at = &product->whole;
    struct mm_schedule share = *whole;
    if (at->m == 0)
        return share;
    const bool is_last = at->row + product->m == at->m && at->col + product->n == at->n;
    const unsigned shared = is_last ? mm_shared_tiles(whole) : 0;
    share.cluster_tile_rows = (unsigned)mm_size_divide_up(product->m, rows);
    share.cluster_tile_cols = (unsigned)mm_size_divide_up(product->n, cols);
    share.band = divisor_of((uint64_t)MM_BAND_ROWS * share.cluster_tile_cols);
    share.whole_cluster_tiles = share.cluster_tile_rows * share.cluster_tile_cols - shared;
    if (shared == 0)
        share.sharers = share.share = share.longer_shares = 0;
    const unsigned clusters = (unsigned)mm_size_min(share.whole_cluster_tiles, whole->clusters);
    share.clusters = clusters > share.sharers ? clusters : share.sharers;
    return share;
}
