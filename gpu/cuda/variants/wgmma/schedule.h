/* Which cluster of blocks computes what (stream-K), for kernels that use tensor cores. A block computes a
 * tile of C. The blocks of a cluster compute tiles one below the other, which are a cluster tile, and share
 * B. Clusters take whole cluster tiles round robin, and share the steps of the rest evenly. The partial sums
 * of a tile are then added up: by the cluster with its first step (fix-up, fp32_tensor), or by a second
 * kernel (tensor). */
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
    unsigned sharers;             /* the first clusters, which share the rest; 0: there is none */
    unsigned share;               /* steps of the rest for each of them */
    unsigned longer_shares;       /* so many, evenly spread, have one step more */
};

/* First shared step of a cluster; from cluster == sharers on, the end of the last share. sharers is not 0. A
 * boundary fewer than MM_SHARE_STEPS_MIN steps from a tile's edge moves to that edge. No share is empty. If
 * `sharers` is a multiple of the rest's tiles, each tile is shared by as many clusters, which share no other.
 */
MM_HOST_AND_DEVICE unsigned mm_share_begin(const struct mm_schedule *schedule, unsigned cluster) {
    const unsigned sharer = cluster < schedule->sharers ? cluster : schedule->sharers;
    const unsigned begin = sharer * schedule->share + sharer * schedule->longer_shares / schedule->sharers;
    const unsigned within = begin % schedule->steps;
    if (within < MM_SHARE_STEPS_MIN)
        return begin - within;
    return schedule->steps - within < MM_SHARE_STEPS_MIN ? begin - within + schedule->steps : begin;
}

/* Cluster tiles that are shared. */
MM_HOST_AND_DEVICE unsigned mm_shared_tiles(const struct mm_schedule *schedule) {
    return schedule->sharers == 0
               ? 0
               : (schedule->sharers * schedule->share + schedule->longer_shares) / schedule->steps;
}

/* The clusters that continue shared tile `tile`, counted from 0: from first on, and before end; none if first
 * is end. The search begins where the tile would be if each share had share + 1 steps, as the longer ones
 * have: that is never past its first cluster. */
struct mm_sharers {
    unsigned first;
    unsigned end;
};

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

/* What it costs to add up partial sums, in the time of a step: at all, for each cluster that shares a tile,
 * and for each of all partial sums. */
struct mm_fix_up_cost {
    double fixed;
    double each;
    double all;
};

/* Of `count` products, by at most `clusters_max` clusters. A tile is shared by as many clusters as save the
 * most time. steps is not 0, and there are fewer than 2^31 cluster tiles. */
struct mm_schedule mm_schedule_of(size_t count, unsigned cluster_tile_rows, unsigned cluster_tile_cols,
                                  unsigned steps, unsigned clusters_max, const struct mm_fix_up_cost *fix_up);

/* How long it takes, in the time of a step. */
double mm_schedule_steps(const struct mm_schedule *schedule, const struct mm_fix_up_cost *fix_up);

__END_DECLS
