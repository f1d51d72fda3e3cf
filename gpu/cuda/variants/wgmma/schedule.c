/* How the work is shared out (schedule.h). */
#include "gpu/cuda/variants/wgmma/schedule.h"

#include "gpu/matrix.h"

#include <stdint.h>

double mm_schedule_steps(const struct mm_schedule *schedule, unsigned fix_up_steps) {
    const double whole = (double)(schedule->whole_cluster_tiles / schedule->clusters) * schedule->steps;
    const unsigned share = schedule->share + (schedule->longer_shares > 0);
    const bool is_uneven = schedule->whole_cluster_tiles % schedule->clusters != 0;
    return whole + (is_uneven ? schedule->steps : 0.0) + (share > 0 ? share + fix_up_steps : 0.0);
}

/* `clusters` of them, which share the cluster tiles past the last that is a round of all. */
static void share_rest(size_t cluster_tiles, size_t clusters, struct mm_schedule *schedule) {
    schedule->clusters = (unsigned)clusters;
    schedule->whole_cluster_tiles = (unsigned)(cluster_tiles / clusters * clusters);
    const unsigned shared = (unsigned)(cluster_tiles % clusters) * schedule->steps;
    schedule->share = shared / schedule->clusters;
    schedule->longer_shares = shared % schedule->clusters;
}

struct mm_schedule mm_schedule_of(size_t count, unsigned cluster_tile_rows, unsigned cluster_tile_cols,
                                  unsigned steps, unsigned clusters_max, unsigned fix_up_steps) {
    const size_t cluster_tiles = count * cluster_tile_rows * cluster_tile_cols;
    const size_t shares_max =
        steps < 2 * MM_SHARE_STEPS_MIN ? cluster_tiles : cluster_tiles * (steps / MM_SHARE_STEPS_MIN);
    /* Fewer cluster tiles are shared than there are clusters, and 32 bits count their steps. */
    const size_t countable = UINT32_MAX / steps;
    const struct mm_schedule each = {
        .steps = steps, .cluster_tile_rows = cluster_tile_rows, .cluster_tile_cols = cluster_tile_cols};
    struct mm_schedule alone = each, shared = each;
    alone.clusters = (unsigned)mm_size_min(cluster_tiles, clusters_max);
    alone.whole_cluster_tiles = (unsigned)cluster_tiles;
    share_rest(cluster_tiles, mm_size_min(mm_size_min(countable, clusters_max), shares_max), &shared);
    return mm_schedule_steps(&shared, fix_up_steps) < mm_schedule_steps(&alone, fix_up_steps) ? shared
                                                                                              : alone;
}
