/* How the work is shared out (schedule.h). */
#include "gpu/cuda/variants/wgmma/schedule.h"

#include "gpu/matrix.h"

#include <math.h>
#include <stdint.h>

static size_t cluster_tiles_of(size_t count, const struct mm_schedule *schedule) {
    return count * schedule->cluster_tile_rows * schedule->cluster_tile_cols;
}

double mm_schedule_steps(const struct mm_schedule *schedule, const struct mm_fix_up_cost *fix_up) {
    const double steps = schedule->steps, clusters = schedule->clusters;
    const double share = (double)schedule->share + (schedule->longer_shares > 0);
    double taken = ceil(schedule->whole_cluster_tiles / clusters) * steps;
    if (share > 0.0) /* a tile's steps by one share's: the clusters that share it */
        taken += share + fix_up->fixed + fix_up->each * ceil(steps / share);
    return taken;
}

/* A share that begins past a tile's first step begins with a part of that tile. */
unsigned mm_schedule_partials(const struct mm_schedule *schedule) {
    unsigned count = 0;
    for (unsigned cluster = 0; cluster < schedule->clusters; cluster++) {
        const unsigned begin = mm_share_begin(schedule, cluster);
        count += begin < mm_share_begin(schedule, cluster + 1) && begin % schedule->steps != 0;
    }
    return count;
}

/* All cluster tiles whole. */
static void share_nothing(size_t cluster_tiles, size_t clusters_max, struct mm_schedule *schedule) {
    schedule->clusters = (unsigned)mm_size_min(cluster_tiles, clusters_max);
    schedule->whole_cluster_tiles = (unsigned)cluster_tiles;
}

/* The cluster tiles past the last round of `clusters`. 32 bits count their steps. */
static void share_rest(size_t cluster_tiles, size_t clusters, struct mm_schedule *schedule) {
    schedule->clusters = (unsigned)clusters;
    schedule->whole_cluster_tiles = (unsigned)(cluster_tiles / clusters * clusters);
    const unsigned shared = (unsigned)(cluster_tiles % clusters) * schedule->steps;
    schedule->share = shared / schedule->clusters;
    schedule->longer_shares = shared % schedule->clusters;
}

/* The multiplier is 2^shift / divisor, rounded up, and has 32 bits. Nothing is divided that is as large as
 * the largest divisor. */
static struct mm_divisor divisor_of(uint64_t divisor) {
    const uint64_t largest = UINT64_C(1) << 31;
    unsigned shift = 31;
    divisor = divisor < largest ? divisor : largest;
    while (UINT64_C(1) << (shift - 31) < divisor)
        shift++;
    return (struct mm_divisor){(unsigned)(((UINT64_C(1) << shift) + divisor - 1) / divisor), shift};
}

/* Only what is past the last whole round is shared. To share that round as well, so that fewer clusters meet
 * in a tile, was slower, since clusters that are at different k read different parts of both operands: tf32
 * at 4096³ 0.50 ms in the place of 0.38 (H100). */
struct mm_schedule mm_schedule_of(size_t count, unsigned cluster_tile_rows, unsigned cluster_tile_cols,
                                  unsigned steps, unsigned clusters_max,
                                  const struct mm_fix_up_cost *fix_up) {
    const struct mm_schedule none = {.steps = steps,
                                     .cluster_tile_rows = cluster_tile_rows,
                                     .cluster_tile_cols = cluster_tile_cols,
                                     .band = divisor_of((uint64_t)MM_BAND_ROWS * cluster_tile_cols)};
    const size_t cluster_tiles = cluster_tiles_of(count, &none);
    const size_t countable = mm_size_min(UINT32_MAX / steps, clusters_max);
    struct mm_schedule best = none;
    share_nothing(cluster_tiles, clusters_max, &best);
    double least = mm_schedule_steps(&best, fix_up);
    for (size_t each = 2; each <= steps / MM_SHARE_STEPS_MIN; each++) {
        struct mm_schedule shared = none;
        share_rest(cluster_tiles, mm_size_min(cluster_tiles * each, countable), &shared);
        const double taken = mm_schedule_steps(&shared, fix_up);
        if (taken < least) {
            best = shared;
            least = taken;
        }
        if (shared.clusters == countable)
            break;
    }
    return best;
}
