/* Lists the work of a cluster according to a schedule (schedule.h). */
#pragma once

#include "gpu/cuda/variants/wgmma/schedule.h"

#include <cstdint>

/* Work of a cluster: steps `begin` to `end` - 1 of a cluster tile. */
struct mm_work_tile {
    unsigned cluster_tile;
    unsigned begin;
    unsigned end;
};

struct mm_tile_scheduler {
    unsigned cluster;
    unsigned cluster_tile; /* the next whole cluster tile */
    unsigned at;           /* the next step of the cluster's share */
    unsigned end;          /* end of the cluster's share; 0 until it is computed */
};

__device__ __forceinline__ mm_tile_scheduler mm_scheduler_of(unsigned cluster) {
    return {cluster, cluster, 0, 0};
}

/* Sets `next` to the cluster's next work. Returns false if no work is left. Divisions are slow, so the
 * cluster's share is computed only after the whole tiles. If not MAY_SHARE, clusters share no tiles. */
template <bool MAY_SHARE = true>
__device__ __forceinline__ bool mm_next_work_tile(const mm_schedule &schedule, mm_tile_scheduler &scheduler,
                                                  mm_work_tile &next) {
    if (scheduler.cluster_tile < schedule.whole_cluster_tiles) {
        next = {scheduler.cluster_tile, 0, schedule.steps};
        scheduler.cluster_tile += schedule.clusters;
        return true;
    }
    if (!MAY_SHARE || schedule.sharers == 0)
        return false;
    if (scheduler.end == 0) {
        scheduler.at = mm_share_begin(&schedule, scheduler.cluster);
        scheduler.end = mm_share_begin(&schedule, scheduler.cluster + 1);
    }
    if (scheduler.at >= scheduler.end)
        return false;
    next.cluster_tile = schedule.whole_cluster_tiles + scheduler.at / schedule.steps;
    next.begin = scheduler.at % schedule.steps;
    next.end = min(next.begin + (scheduler.end - scheduler.at), schedule.steps);
    scheduler.at += next.end - next.begin;
    return true;
}

/* The position of a cluster tile or tile in C, or of an element in a tile. */
struct mm_tile {
    unsigned row;
    unsigned col;
};

/* Returns the position of a cluster tile in its product's C. The last band may have fewer rows. */
__device__ __forceinline__ mm_tile mm_cluster_tile_of(const mm_schedule &schedule, unsigned cluster_tile) {
    const unsigned band = static_cast<unsigned>(
        static_cast<uint64_t>(cluster_tile) * schedule.band.multiplier >> schedule.band.shift);
    const unsigned within = cluster_tile - band * MM_BAND_ROWS * schedule.cluster_tile_cols;
    const unsigned rows = schedule.cluster_tile_rows - band * MM_BAND_ROWS;
    const unsigned col = rows == 1   ? within
                         : rows == 2 ? within / 2
                         : rows == 3 ? within / 3
                                     : within / MM_BAND_ROWS;
    return {band * MM_BAND_ROWS + within - col * min(rows, static_cast<unsigned>(MM_BAND_ROWS)), col};
}
