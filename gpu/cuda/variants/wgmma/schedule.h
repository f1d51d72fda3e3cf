/* Which cluster of blocks computes what (stream-K), for kernels that use wgmma. A block computes a tile of C.
 * The blocks of a cluster compute tiles one below the other, which are a cluster tile, and share B. Clusters
 * take whole cluster tiles round robin, and share the steps of the rest evenly. The cluster with a tile's
 * first step adds the partial sums of the others (fix-up). */
#pragma once

#include "gpu/names.h"

#include <stddef.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* Cluster tiles are ordered in bands of so many rows, so clusters that run at the same time read the same
 * operands. */
enum { MM_BAND_ROWS = 4 };

/* n / d for n below 2^31 is n * multiplier >> shift (Granlund and Montgomery, 1994). A division is long code,
 * and a kernel that has just begun has to fetch it. */
struct mm_divisor {
    unsigned multiplier;
    unsigned shift;
};

/* A share neither begins nor ends fewer than this many steps from a tile's edge, except on the edge. */
enum { MM_SHARE_STEPS_MIN = 4 };

struct mm_schedule {
    unsigned steps;             /* of a tile, along k */
    unsigned cluster_tile_rows; /* of one product */
    unsigned cluster_tile_cols;
    struct mm_divisor band; /* cluster tiles of a band */
    unsigned clusters;
    unsigned whole_cluster_tiles; /* of all products */
    unsigned share;               /* steps of the rest for each cluster */
    unsigned longer_shares;       /* the first longer_shares clusters have one step more */
};

/* First shared step of a cluster; for cluster == clusters, the end of the last share. A boundary fewer than
 * MM_SHARE_STEPS_MIN steps from a tile's edge moves to that edge, so a share can be empty. */
MM_HOST_AND_DEVICE unsigned mm_share_begin(const struct mm_schedule *schedule, unsigned cluster) {
    const unsigned longer = cluster < schedule->longer_shares ? cluster : schedule->longer_shares;
    const unsigned begin = cluster * schedule->share + longer;
    const unsigned within = begin % schedule->steps;
    if (within < MM_SHARE_STEPS_MIN)
        return begin - within;
    return schedule->steps - within < MM_SHARE_STEPS_MIN ? begin - within + schedule->steps : begin;
}

/* The sums of blocks whose tiles other clusters finish, in device memory: one slot a block, since a cluster
 * publishes at most once. Only the first tile of its share can begin past step 0. */
struct mm_partial {
    void *sums;
    unsigned *ready; /* per consumer warpgroup: 1 from when its sums are stored until they are read
                        (mm_lane's) */
};

/* What a fix-up costs, in the time of a step: at all, and for each cluster that shares a tile. */
struct mm_fix_up_cost {
    double fixed;
    double each;
};

/* Of `count` products, by at most `clusters_max` clusters. A tile is shared by as many clusters as save the
 * most time. steps is not 0, and there are fewer than 2^31 cluster tiles. */
struct mm_schedule mm_schedule_of(size_t count, unsigned cluster_tile_rows, unsigned cluster_tile_cols,
                                  unsigned steps, unsigned clusters_max, const struct mm_fix_up_cost *fix_up);

/* How many clusters publish partial sums, which another one adds to its own. */
unsigned mm_schedule_partials(const struct mm_schedule *schedule);

/* How long it takes, in the time of a step. */
double mm_schedule_steps(const struct mm_schedule *schedule, const struct mm_fix_up_cost *fix_up);

__END_DECLS
