/* The schedule of the tensor core kernels: which cluster of blocks computes which part of C (stream-K). A
 * block computes a tile of C. A cluster computes a cluster tile: tiles one below the other, which share
 * columns of B. Clusters first compute whole cluster tiles, round robin. Then they share the steps of the
 * remaining cluster tiles (the rest) evenly. The fix-up adds up the partial sums of a shared tile. In
 * `fp32_tensor` the cluster with the tile's first step runs the fix-up, in `tensor` a second kernel. */
#pragma once

#include "gpu/names.h"

#include <stddef.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* Rows of cluster tiles in a band. Cluster tiles are numbered band by band, and column by column in a band,
 * so clusters that run at one time read few different lines of the operands. */
enum { MM_BAND_ROWS = 4 };

/* A divisor d without a division: for n below 2^31, n / d is n * multiplier >> shift (Granlund and
 * Montgomery, 1994). A division has many instructions, which a kernel must fetch before its first tile. */
struct mm_divisor {
    unsigned multiplier;
    unsigned shift;
};

/* A share begins and ends at the edge of a tile, or at least so many steps from an edge. */
enum { MM_SHARE_STEPS_MIN = 4 };

struct mm_schedule {
    unsigned steps;               /* steps of a tile along k */
    unsigned cluster_tile_rows;   /* rows of cluster tiles in one product's C */
    unsigned cluster_tile_cols;   /* columns of cluster tiles in one product's C */
    struct mm_divisor band;       /* divides by the cluster tiles of a band */
    unsigned clusters;            /* clusters of the launch */
    unsigned whole_cluster_tiles; /* cluster tiles of all products that are not shared; the rest follows */
    unsigned sharers;             /* clusters 0 to sharers - 1 share the rest; 0: there is no rest */
    unsigned share;               /* steps of a share */
    unsigned longer_shares;       /* shares that have one more step, evenly spread */
};

/* Returns the step of the rest at which a cluster's share begins; for other clusters, the end of the rest.
 * schedule->sharers is not 0. A boundary fewer than MM_SHARE_STEPS_MIN steps from a tile's edge moves to that
 * edge. No share is empty. If the sharers are a multiple of the rest's tiles, no share crosses a tile's edge.
 */
MM_HOST_AND_DEVICE unsigned mm_share_begin(const struct mm_schedule *schedule, unsigned cluster) {
    const unsigned sharer = cluster < schedule->sharers ? cluster : schedule->sharers;
    const unsigned begin = sharer * schedule->share + sharer * schedule->longer_shares / schedule->sharers;
    const unsigned within = begin % schedule->steps;
    if (within < MM_SHARE_STEPS_MIN)
        return begin - within;
    return schedule->steps - within < MM_SHARE_STEPS_MIN ? begin - within + schedule->steps : begin;
}

/* Returns how many cluster tiles are shared. */
MM_HOST_AND_DEVICE unsigned mm_shared_tiles(const struct mm_schedule *schedule) {
    return schedule->sharers == 0
               ? 0
               : (schedule->sharers * schedule->share + schedule->longer_shares) / schedule->steps;
}

/* The clusters whose shares begin inside a shared tile, past its first step: from `first` to `end` - 1. */
struct mm_sharers {
    unsigned first;
    unsigned end; /* equals `first` if there are no such clusters */
};

/* Returns the sharers of tile `tile` of the rest. The search starts at the cluster that would have the tile's
 * first step if all shares were longer ones, because no earlier cluster can have that step. */
MM_HOST_AND_DEVICE struct mm_sharers mm_sharers_of(const struct mm_schedule *schedule, unsigned tile) {
    const unsigned begin = tile * schedule->steps;
    struct mm_sharers sharers;
    sharers.first = begin / (schedule->share + 1);
    while (mm_share_begin(schedule, sharers.first) <= begin)
        sharers.first++;
    sharers.end = sharers.first;
    while (mm_share_begin(schedule, sharers.end) < begin + schedule->steps)
        sharers.end++;
    return sharers;
}

/* The time of the fix-up, in steps. */
struct mm_fix_up_cost {
    double fixed; /* steps for any fix-up */
    double each;  /* steps for each cluster that shares a tile */
    double all;   /* steps for each stored tile of partial sums of the product */
};

/* Returns the fastest schedule, by mm_schedule_steps, of `count` products with at most clusters_max clusters.
 * `steps` is not 0, and there are fewer than 2^31 cluster tiles. */
struct mm_schedule mm_schedule_of(size_t count, unsigned cluster_tile_rows, unsigned cluster_tile_cols,
                                  unsigned steps, unsigned clusters_max, const struct mm_fix_up_cost *fix_up);

/* Estimates the time of a schedule, in steps. */
double mm_schedule_steps(const struct mm_schedule *schedule, const struct mm_fix_up_cost *fix_up);

__END_DECLS
