/* The schedule of the tensor core kernels: which cluster of blocks computes what (stream-K). A block computes
 * a tile of C. The blocks of a cluster compute tiles one below the other, a cluster tile, and share B.
 * Clusters compute whole cluster tiles round robin, and share the steps of the remaining ones, the rest,
 * evenly. The fix-up adds up the partial sums of a shared tile: in `fp32_tensor` the cluster with the tile's
 * first step does it, in `tensor` a second kernel. */
#pragma once

#include "gpu/names.h"

#include <stddef.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* Rows of cluster tiles in a band. Cluster tiles are numbered band by band, and column by column in a band.
 * So clusters that run at the same time read the same operands. */
enum { MM_BAND_ROWS = 4 };

/* A divisor d. For n below 2^31, n / d is n * multiplier >> shift (Granlund and Montgomery, 1994). A division
 * is long code, which a kernel must fetch before its first tile. */
struct mm_divisor {
    unsigned multiplier;
    unsigned shift;
};

/* A share begins and ends on the edge of a tile, or at least so many steps away from it. */
enum { MM_SHARE_STEPS_MIN = 4 };

struct mm_schedule {
    unsigned steps;               /* of a tile, along k */
    unsigned cluster_tile_rows;   /* rows of cluster tiles in C of one product */
    unsigned cluster_tile_cols;   /* columns of cluster tiles */
    struct mm_divisor band;       /* cluster tiles in a band */
    unsigned clusters;            /* of the launch */
    unsigned whole_cluster_tiles; /* in all products; the cluster tiles after them are the rest */
    unsigned sharers;             /* clusters 0 to sharers - 1 share the rest; 0 if there is no rest */
    unsigned share;               /* steps of a share */
    unsigned longer_shares;       /* shares that have one step more, evenly spread */
};

/* The step of the rest at which a cluster's share begins; from cluster == sharers on, the end of the rest.
 * sharers is not 0. A boundary fewer than MM_SHARE_STEPS_MIN steps from a tile's edge moves to that edge. No
 * share is empty. If sharers is a multiple of the rest's tiles, no share crosses the edge of a tile. */
MM_HOST_AND_DEVICE unsigned mm_share_begin(const struct mm_schedule *schedule, unsigned cluster) {
    const unsigned sharer = cluster < schedule->sharers ? cluster : schedule->sharers;
    const unsigned begin = sharer * schedule->share + sharer * schedule->longer_shares / schedule->sharers;
    const unsigned within = begin % schedule->steps;
    if (within < MM_SHARE_STEPS_MIN)
        return begin - within;
    return schedule->steps - within < MM_SHARE_STEPS_MIN ? begin - within + schedule->steps : begin;
}

/* How many cluster tiles are shared. */
MM_HOST_AND_DEVICE unsigned mm_shared_tiles(const struct mm_schedule *schedule) {
    return schedule->sharers == 0
               ? 0
               : (schedule->sharers * schedule->share + schedule->longer_shares) / schedule->steps;
}

/* The clusters whose shares begin inside a shared tile, past its first step: first to end - 1. */
struct mm_sharers {
    unsigned first;
    unsigned end; /* first, if there is none */
};

/* The sharers of the rest's tile number `tile`. The search starts at the cluster that would have the tile's
 * first step if all shares were longer ones. The right cluster is that one or a later one. */
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
    double fixed;
    double each; /* for each cluster that shares a tile */
    double all;  /* for each partial sum of the product */
};

/* The schedule of `count` products, with at most clusters_max clusters. As many clusters share a tile as save
 * the most time. steps is not 0, and there are fewer than 2^31 cluster tiles. */
struct mm_schedule mm_schedule_of(size_t count, unsigned cluster_tile_rows, unsigned cluster_tile_cols,
                                  unsigned steps, unsigned clusters_max, const struct mm_fix_up_cost *fix_up);

/* The estimated time of a schedule, in steps. */
double mm_schedule_steps(const struct mm_schedule *schedule, const struct mm_fix_up_cost *fix_up);

__END_DECLS
